"""What an agent in this process and a problem of a running service have in common."""

from collections.abc import Sequence
from typing import Any, Protocol

from superarm import catalog, policies
from superarm.agent.decisions import Decision
from superarm.agent.explanations import Explanation
from superarm.arrays import Floats
from superarm.errors import InvalidArgument
from superarm.policies import Policy
from superarm.policies.traits import is_policy


class DecisionAgent(Protocol):
    """Hands out batches and learns from them: ``Agent``, and ``RemoteAgent`` of a service.

    Code that is written for it runs with both; ``tests/service/test_agent_contract.py`` plays the same script with
    each. Arms and items are given by their names.
    """

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of all arms."""
        ...

    @property
    def items(self) -> tuple[str, ...]:
        """The names of all items."""
        ...

    @property
    def t(self) -> int:
        """The last round that a decision was made for."""
        ...

    def estimates(self) -> tuple[Floats, Floats]:
        """Mean and variance of every entry, (n_arms, n_items), or flat if the problem is sparse; NaN where unseen."""
        ...

    def ask(
        self,
        eligible: Sequence[str] | None = None,
        id: str | None = None,
        *,
        pinned: Sequence[str] | None = None,
        context: Any = None,
        pairs: Any = None,
    ) -> Decision:
        """The batch to play next; with an ``id``, asking again gives the same decision again."""
        ...

    def tell(self, decision: Decision | str, outcome: Any, seen: Any = None, arms: Sequence[str] | None = None) -> bool:
        """What came of a decision; False if it was told before, ``ConflictingFeedback`` if something else was told."""
        ...

    def untell(
        self, decision: Decision | str, outcome: Any, seen: Any = None, arms: Sequence[str] | None = None
    ) -> None:
        """Take back, exactly, what was told of a decision."""
        ...

    def cancel(self, decision: Decision | str) -> None:
        """Forget a decision that was never played; it is pending no longer."""
        ...

    def explain(self, decision: Decision | str, most: int = 5) -> Explanation:
        """Why these arms, by what is known now."""
        ...

    def change_policy(self, policy: str, /, **parameters: float) -> object:
        """Choose by another policy of the catalogue from now on; everything that was observed stays."""
        ...

    def add_arms(self, arms: Sequence[str]) -> None:
        """Add arms by name; they will be tried first. A retired arm comes back with what was learnt about it."""
        ...

    def retire_arms(self, arms: Sequence[str]) -> None:
        """Take arms out of all further decisions."""
        ...

    def add_items(self, items: Sequence[str], weights: Any = None) -> None:
        """Add items by name, with weights (1 by default)."""
        ...

    def retire_items(self, items: Sequence[str]) -> None:
        """Give items the weight 0."""
        ...


def find_policy(policy: Policy | str, parameters: dict[str, float]) -> Policy:
    """A policy as it is, or by its name in the catalogue with its parameters.

    >>> find_policy("bc_ucb", {"rho": 1.0}).confidence
    Bernstein(rho=1.0)
    """
    if not isinstance(policy, str):
        if parameters:
            raise InvalidArgument("parameters", "given beside a policy", "give them to the policy itself")
        return policy
    make = vars(catalog).get(policy) or vars(policies).get(policy)
    try:
        made: Any = make(**parameters) if callable(make) and not policy.startswith("_") else None
    except TypeError:  # it has no defaults, or another parameter was given
        made = None
    if not is_policy(made):
        given = "".join(f" {name}={value:g}" for name, value in parameters.items())
        wrong = f"unknown {policy!r}" if not parameters else f"{policy + given!r}: no policy with these parameters"
        raise InvalidArgument("policy", wrong, "give a policy of the catalogue, such as kl_ucb or kl_moss")
    found: Policy = made
    return found
