"""What a policy keeps beside the tally, if it keeps anything.

These are the tallies of :class:`Forgetting`'s blocks, and the observations and points of logistic policies. A memory
holds nothing that could not be computed anew from the tally, but for this; so whoever saves, moves or grows a tally
takes it along. Blocks are those of [GarivierMoulines2011]_, kept whole.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from superarm.arrays import Floats
from superarm.parameters import has_method
from superarm.policies.base import Policy, prepare
from superarm.problem import Problem
from superarm.tally import Tally


class KeptRows(NamedTuple):
    """The observations that a logistic policy keeps, and its last refits: see ``contextual.kept_observations``.

    ``rows`` (n, 7 + n_user + n_pair) has the parts of each observation side by side, in an order that does not depend
    on that in which they came. ``bounds`` (2,) are the round from which on none is kept and the present frame, ``maps``
    the maps of earlier frames, ``point`` (n_groups, d) the points and ``marks`` (n_groups, 2) the round and the
    information of the refit of each.
    """

    rows: Floats
    bounds: Floats
    maps: Floats
    point: Floats
    marks: Floats


class PolicyState(NamedTuple):
    """What a policy keeps.

    The number of the newest block of rounds, -1 before any, and the tallies of the last blocks, newest first; and the
    observations of a logistic policy.
    """

    newest: int
    blocks: list[Tally]
    kept: KeptRows | None = None

    def changed(self, change: Callable[[Tally], Tally]) -> "PolicyState":
        """The same with another tally in the place of each."""
        return self._replace(blocks=[change(block) for block in self.blocks])


def save_state(policy: Policy, memory: Any) -> PolicyState | None:
    """What ``policy`` keeps in ``memory`` beside the tally; None for most policies."""
    hooks: Any = policy
    return hooks.save_state(memory) if has_method(policy, "save_state") else None


def restore_memory(policy: Policy, problem: Problem, tally: Tally, held: PolicyState | None) -> Any:
    """The memory of ``tally``, and of what was kept beside it."""
    memory = prepare(policy, problem, tally)
    hooks: Any = policy
    if held is not None and has_method(policy, "restore_state"):
        hooks.restore_state(memory, held)
    return memory


def memory_with_actions(policy: Policy, problem: Problem, tally: Tally, former: tuple[Policy, Any]) -> Any:
    """The memory of a policy for another action set, from the policy and the memory for the problem's own."""
    if bool(getattr(policy, "any_actions", False)):
        return former[1]
    return restore_memory(policy, problem, tally, save_state(*former))


def plan_refit(policy: Policy, problem: Problem, memory: Any, t: int) -> Any:
    """The refit that is due after the choice of round ``t``, a ``Refit``; None if there is none."""
    hooks: Any = policy
    return hooks.plan_refit(problem, memory, t) if has_method(policy, "plan_refit") else None


def forgets(policy: Policy) -> bool:
    """Whether ``policy`` weighs what was observed by its age, so that the round of feedback matters."""
    return has_method(policy, "age")


def block_age(policy: Policy, memory: Any, t: int) -> int:
    """How many blocks older than the newest the block of round ``t`` is; negative if it has not begun.

    0 where the policy does not forget: then all rounds are alike.
    """
    hooks: Any = policy
    return hooks.age(memory, t) if forgets(policy) else 0


def forget_alike(one: Any, other: Any) -> bool:
    """Whether both policies keep the same blocks of rounds, or neither keeps any."""
    if not (forgets(one) and forgets(other)):
        return not forgets(one) and not forgets(other)
    return bool(one.block == other.block and len(one.weights) == len(other.weights))
