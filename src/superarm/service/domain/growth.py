"""The action set and the support of a problem that gets more arms."""

from superarm.actions import Actions
from superarm.core.support import Sparse
from superarm.learner import Learner, Names
from superarm.learner.growth import support_with_arms
from superarm.service.domain.action_sets import ActionSpec, to_actions


def enlarge(
    learner: Learner, add: list[str], actions: ActionSpec | None, support: list[list[int]] | None
) -> tuple[Actions | None, Sparse | None]:
    """The action set and the support of a problem with more arms; None where they stay what they are."""
    names = Names([*learner.arms.all, *add], "arms")
    more = None if support is None else support_with_arms(learner.problem.support, support)
    return None if actions is None else to_actions(actions, names), more
