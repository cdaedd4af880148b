"""What a policy keeps beside the tally, if it keeps anything: the tallies of :class:`Forgetting`'s blocks.

A memory holds nothing that could not be computed anew from the tally, but for this; so whoever saves, moves or
grows a tally takes it along. Blocks are those of [GarivierMoulines2011]_, kept whole.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from superarm.parameters import has_method
from superarm.policies.base import Policy, prepare
from superarm.problem import Problem
from superarm.tally import Tally


class PolicyState(NamedTuple):
    """The number of the newest block of rounds, -1 before any, and the tallies of the last blocks, newest first."""

    newest: int
    blocks: list[Tally]

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
