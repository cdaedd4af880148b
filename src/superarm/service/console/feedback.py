"""The health of feedback: what is seen, its likely reason, and the remedy."""

from typing import NamedTuple

from superarm.service.console.markup import Html, tag, with_code
from superarm.service.console.times import duration
from superarm.service.console.view import scrollable, section
from superarm.service.domain.problem import ProblemState

FEW = 20
"""Below so many finished decisions nothing is concluded."""

NOTED_SHARE = 0.1
"""A share of decisions from which on something is worth a remark."""

ALARMING_SHARE = 0.5


class Finding(NamedTuple):
    """What is seen, its likely reason, what to do, and whether it harms what is learnt."""

    seen: str
    reason: str
    remedy: str
    harms: bool = True


def find_faults(learner: ProblemState, pending: int) -> list[Finding]:
    """What is wrong with the feedback of a problem, as far as counts can tell."""
    return [*_missing(learner, pending), *_disputed(learner), *_pending(learner, pending)]


def _missing(learner: ProblemState, pending: int) -> list[Finding]:
    history, window = learner.history, learner.settings.window_s
    finished, found = history.complete + history.expired, list[Finding]()
    if learner.decisions >= FEW and not finished:
        reason = (
            "No feedback arrives, or decisions are told in part: one is complete when each of its entries is known."
        )
        remedy = (
            "Send feedback for the ids that decisions have; name the `items` that a decision is about, or set window_s."
        )
        return [Finding(f"None of {learner.decisions:,} decisions has finished.", reason, remedy)]
    if finished >= FEW and history.expired > NOTED_SHARE * finished:
        seen = f"{history.expired / finished:.0%} of decisions ended with their window, without all their feedback."
        if history.late > 0.5 * history.expired:
            reason = f"Feedback comes, but later than the window of {duration(window or 0.0)}."
            remedy = "Lengthen window_s, or set late to learn, so that it counts when it comes."
        else:
            reason = "Feedback is not sent for some decisions, or only for some of their entries."
            remedy = "Send 0 for what was shown without success; name the `items` of a decision if only these are told."
        found.append(Finding(seen, reason, remedy, history.expired > ALARMING_SHARE * finished))
    elif history.late:
        reason = "It came after the window: the sender was slow, or sent its queue after a pause."
        found.append(
            Finding(f"{_times(history.late)} feedback was late.", reason, "Lengthen window_s if there are many.", False)
        )
    return found


def _disputed(learner: ProblemState) -> list[Finding]:
    history, found = learner.history, list[Finding]()
    if history.conflicting:
        seen = f"{_times(history.conflicting)} feedback contradicted earlier feedback, and was refused (409)."
        reason = (
            "Two senders report the same entry, or a correction was sent as if it were new. The first value counts."
        )
        found.append(Finding(seen, reason, "Let one sender report an entry; send corrections with amend: true."))
    if history.repeated > NOTED_SHARE * max(FEW, history.complete):
        seen = f"{_times(history.repeated)} feedback was sent again."
        reason = "Clients repeat requests whose answer was lost, or two of them report the same."
        found.append(Finding(seen, reason, "Nothing has to be done: equal feedback counts once.", False))
    return found


def _pending(learner: ProblemState, pending: int) -> list[Finding]:
    limit = learner.settings.max_pending
    if pending < 0.8 * limit:
        return []
    seen = f"{pending:,} decisions await feedback; at {limit:,} new ones are refused (429)."
    if learner.settings.window_s is None:
        reason, remedy = "No window ends: decisions without feedback stay pending for ever.", "Set window_s."
    else:
        reason, remedy = (
            "More decisions are made within a window than feedback comes.",
            "Shorten window_s, or raise max_pending.",
        )
    return [Finding(seen, reason, remedy)]


def _times(n: int) -> str:
    return "Once" if n == 1 else f"{n:,} times"


def feedback(learner: ProblemState, pending: int, worker: str, public: bool) -> Html:
    """Counts of feedback and, unless the page is public, what is wrong with it."""
    history = learner.history
    counts = (
        ("complete", history.complete, "decisions with all their feedback"),
        ("expired", history.expired, "windows that ended before all of it came"),
        ("late", history.late, "feedback after the window"),
        ("repeated", history.repeated, "equal to earlier feedback; changed nothing"),
        ("conflicting", history.conflicting, "different from earlier feedback; refused"),
        ("pending", pending, "decisions that await feedback"),
    )
    cells = [tag("div", tag("dt", name), tag("dd", n, tag("span", said, class_="note"))) for name, n, said in counts]
    note = "Repeated and conflicting feedback is counted by the worker that got it."
    if worker:
        note += f" This is {worker}."
    findings = None if public else _findings(find_faults(learner, pending), history.complete + history.expired)
    return section("feedback", "Feedback", tag("dl", cells, class_="counts"), findings, note=note)


def _findings(found: list[Finding], finished: int) -> Html:
    if not found:
        words = "Nothing stands out." if finished >= FEW else "Too few decisions have finished to judge feedback."
        return tag("p", words, class_="quiet")
    heads = [tag("th", word, scope="col") for word in ("Seen", "Likely reason", "Remedy")]
    rows = [
        tag(
            "tr",
            tag("th", one.seen, scope="row", class_="bad" if one.harms else None),
            tag("td", one.reason),
            tag("td", with_code(one.remedy)),
        )
        for one in found
    ]
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows), class_="words")
    return scrollable("Findings", table)
