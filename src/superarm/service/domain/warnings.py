"""Settings of a problem that contradict one another, or what its decisions look like."""

from superarm.service.domain.problem import ProblemState

MANY_DECISIONS = 20
LARGE_SHARE = 0.2


def list_warnings(learner: ProblemState) -> list[str]:
    """What the owner of a problem should look at, a sentence each; nothing is refused because of it."""
    return _from_settings(learner) + _from_decisions(learner)


def _from_settings(learner: ProblemState) -> list[str]:
    settings, found = learner.settings, []
    if settings.at_window_end != "ignore" and settings.window_s is None:
        found.append("at_window_end has no effect: window_s is null, so no window ends")
    if settings.late == "learn" and settings.window_s is None:
        found.append("late has no effect: window_s is null, so no feedback is late")
    if settings.explore > 0.0 and settings.mode != "online":
        found.append(f"explore has no effect: mode {settings.mode} answers with the baseline")
    if settings.control > 0.0 and settings.mode != "online":
        found.append(f"control has no effect: mode {settings.mode} answers with the baseline")
    if isinstance(settings.control_slate, list):
        gone = [arm for arm in settings.control_slate if learner.retired[learner.arms.numbers([arm])[0]]]
        if gone and settings.control > 0.0:
            found.append(f"control has no effect: {gone[0]!r} of control_slate is retired")
    if settings.at_window_end != "ignore" and settings.window_s is not None and learner.problem.n_items > 1:
        found.append(
            f"at_window_end counts every entry that is not told within the window as {settings.at_window_end:g}: "
            "if feedback tells of some items only, name them in `items` of the decision, or set at_window_end to ignore"
        )
    return found


def _from_decisions(learner: ProblemState) -> list[str]:
    history, found = learner.history, []
    finished = history.complete + history.expired
    if finished < MANY_DECISIONS:
        return []
    if history.filled_in_part > LARGE_SHARE * finished:
        found.append(
            f"of {finished} finished decisions, {history.filled_in_part} were told in part and filled with "
            "at_window_end: estimates are biased towards it unless what was not told is really that value; "
            "name the `items` of a decision, or set at_window_end to ignore"
        )
    if history.unvalued > LARGE_SHARE * finished and history.filled_in_part == 0:
        found.append(
            f"of {finished} finished decisions, {history.unvalued} ended with entries of which nothing is known, so "
            "that their rewards are unknown; name the `items` that a decision is about, if these are what is told"
        )
    return found
