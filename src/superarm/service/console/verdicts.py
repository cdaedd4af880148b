"""The tiles at the top of a problem's page: answers as data.

The questions and explanations that go with them are in ``templates/verdicts.html``.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from superarm.output.table import format_number
from superarm.service.domain.lift import MeanInterval, mean_interval, measure_lift
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import guard_of
from superarm.service.domain.warnings import say_lift, say_missing

FEW = 20
"""Below so many finished decisions nothing is concluded."""

ALARMING_SHARE = 0.5
"""The share of decisions without all their feedback from which on that harms what is learnt."""

NEARLY_ZERO = 5e-5


class Tile(NamedTuple):
    """An answer: a word (``kind`` is good, bad or open), one line, and ``facts`` for the explanation."""

    name: str
    word: str
    line: str
    kind: str = "open"
    facts: Mapping[str, Any] = MappingProxyType({})


class Health(NamedTuple):
    """The state of the process: ``status`` as ``/health`` says it, and what is ``wrong``, empty if nothing is."""

    status: str
    wrong: str
    pending: int


def number(value: float | None, digits: int = 4) -> str:
    """A number as people read it; one that is nearly 0 is 0.

    >>> number(7.07112, 3), number(1.4e-9)
    ('7.07', '0')
    """
    return format_number(0.0 if value is not None and abs(value) < NEARLY_ZERO else value, digits)


def signed(value: float, digits: int = 3) -> str:
    """A difference, with its sign.

    >>> signed(0.1234), signed(-2.0)
    ('+0.123', '−2.00')
    """
    return f"{'+' if value > 0.0 else ''}{number(value, digits)}"


def plus_minus(mean: MeanInterval) -> str:
    """How far an interval reaches; nothing if that is not known."""
    return f" ± {number(mean.reach, 2)}" if math.isfinite(mean.reach) else ""


def list_tiles(state: ProblemState, stratum: int | None, health: Health) -> list[Tile]:
    """The answers about a problem, or about one of its strata."""
    found = [tell_earnings(state, stratum), judge_lift(state, stratum), judge_guard(state), judge_health(state, health)]
    return [tile for tile in found if tile is not None]


def tell_earnings(state: ProblemState, stratum: int | None) -> Tile | None:
    """The reward that people gave, beside that of the control in the same time, and what was estimated."""
    words, earned = state.words, state.history.earned(state.weighty_items, stratum)
    if earned is None:
        return Tile("earnings", "–", f"no {words.one('decision')} with a known reward yet")
    line = f"{'' if words.unit else 'reward '}per {words.one('decision')}{plus_minus(earned.realised)}, newest quarter"
    if beside := mean_interval(state.history.recent().baseline.of(stratum), state.weighty_items):
        line += f"; baseline or control {number(beside.value, 3)}{plus_minus(beside)}"
    if earned.gap is not None:
        estimated = number(earned.realised.value - earned.gap.value, 3)
        line += f"; estimated {estimated}, difference {signed(earned.gap.value, 2)}{plus_minus(earned.gap)}"
    return Tile("earnings", f"{number(earned.realised.value, 3)} {words.unit}".strip(), line)


def judge_lift(state: ProblemState, stratum: int | None) -> Tile:
    """Whether the policy earns more than the control share since it began; the interval holds at all times."""
    words, sums = state.words, state.history.lift
    measured = [(one, measure_lift(one, stratum=stratum)) for one in reversed(state.history.earlier)]
    earlier = [(one, say_lift(found, one.policy.count(stratum), words)) for one, found in measured]
    facts: dict[str, Any] = {"earlier": [one for one in earlier if one[1]]}
    if state.settings.control == 0.0 and not sums.control.count():
        return Tile("alone", "Unknown", say_missing(state), facts=facts)
    found = measure_lift(sums, stratum=stratum)
    counts = [one.count(stratum) for one in (sums.policy, sums.control)]
    facts |= {"policy": counts[0], "other": counts[1], "fallback": sums.fallback.count(), "method": found.method}
    if found.difference is None:
        return Tile("control", "Too early", say_missing(state, stratum), facts=facts)
    line = say_lift(found, counts[0], words)
    word, kind = {"better": ("Better", "good"), "worse": ("Worse", "bad"), "open": ("Open", "open")}[found.verdict]
    return Tile("control", word, line, kind, facts)


def judge_guard(state: ProblemState) -> Tile | None:
    """Whether the guardrail shows the control slate; None without a guardrail."""
    guard, settings = guard_of(state), state.settings
    if guard is None or settings.guardrail is None:
        return None
    kept = f"{100.0 * (1.0 - settings.guardrail):.3g} % of what the control slate earns"
    facts = {"earned": guard.earned, "needed": guard.needed}
    if state.guarded or not guard.holds:
        return Tile("guard", "Fallback", f"the control slate is shown until {kept} is sure", "bad", facts)
    return Tile("guard", "Yes", f"{kept} is sure", "good", facts)


def judge_health(state: ProblemState, health: Health) -> Tile:
    """Whether decisions are made and feedback comes."""
    history, limit, many = state.history, state.settings.max_pending, state.words.many("decision")
    explored = history.explored / history.slots if history.slots else 0.0
    facts = {"limit": limit, "explored": explored, "explore": state.settings.explore}
    finished, silent = history.expired + history.complete, history.expired - history.filled
    if health.wrong:
        word = "Stopping" if health.status == "stopping" else "Not ready"
        return Tile("health", word, f"{many} are refused: {health.wrong}", "bad", facts)
    if health.pending >= limit:
        return Tile("health", "Full", f"new {many} are refused until feedback comes or windows end", "bad", facts)
    if finished >= FEW and silent > ALARMING_SHARE * finished:
        facts |= {"late": history.late > 0.5 * silent}
        return Tile("health", "Starved", f"{silent / finished:.0%} of {many} ended without all feedback", "bad", facts)
    if (seen := history.behaviour).programs:
        line = f"{seen.whole / seen.decisions:.1%} of {many} are of programs, which are counted as people"
        return Tile("health", "Programs", line, "bad", facts)
    if state.decisions >= FEW and not finished:
        return Tile("health", "Waiting", f"no feedback yet on {state.decisions:,} {many}", "open", facts)
    return Tile("health", "Yes", f"{health.pending:,} {many} await feedback", "good", facts)
