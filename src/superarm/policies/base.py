"""The base of policies."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from superarm.core.arrays import Ints
from superarm.core.component import Component
from superarm.core.errors import InvalidArgument, NotANumber
from superarm.core.tally import Feedback, Tally, View
from superarm.oracles.base import Guarantee

if TYPE_CHECKING:
    from superarm.core.problem import Problem
    from superarm.environments.base import Environment


class Policy(Component):
    """A policy. Subclass it and define ``choose``; the rest has defaults.

    ``memory`` is whatever ``prepare`` returned: an object that ``learn`` may change. It must follow from the tally,
    unless the policy also defines ``save_state`` and ``restore_state``.

    >>> class FewestPulls(Policy):
    ...     def choose(self, problem, view, memory):
    ...         return problem.actions.heaviest(1.0 / (1.0 + view.counts), view)
    >>> FewestPulls()
    FewestPulls()
    """

    rounding = "exact"
    """How outcomes enter the tally: as they are, or as a ``coin`` flip with that bias."""
    caveat: ClassVar[Any] = ""
    """What the policy assumes that may not hold, in a sentence for reports."""
    reads_context: ClassVar[bool] = False
    """Whether the policy learns from contexts."""
    shares_segments: ClassVar[Any] = False
    """Whether it learns from all segments at once, with ``n_segments`` in its memory, and not in each segment alone."""
    consistent: ClassVar[Any] = False
    """Whether it is proved that its regret grows more slowly than every power of T, if its oracle is exact."""

    @property
    def own_memory(self) -> bool:
        """Whether the memory holds what does not follow from the tally: by default if ``learn`` is overridden."""
        return type(self).learn is not Policy.learn

    def validate(self, problem: "Problem") -> None:
        """Raise ``InvalidArgument`` if the policy does not apply to this problem."""

    def new_tally(self, problem: "Problem", replications: int, partial: bool = False) -> Tally:
        """A tally of no observations, with the moments that the policy asks for."""
        return Tally(problem.support, replications, partial)

    def prepare(self, problem: "Problem", tally: Tally) -> Any:
        """The policy's memory of ``tally``."""
        return None

    def choose(self, problem: "Problem", view: View, memory: Any) -> Ints:
        """The arms to play, (R, K) in the order of picking, padded with -1."""
        raise NotImplementedError

    def learn(self, problem: "Problem", tally: Tally, memory: Any, feedback: Feedback, sign: float = 1.0) -> None:
        """Record feedback (``sign=1.0``), or take it back (``sign=-1.0``), and bring the memory up to date."""
        tally.record(feedback, sign)

    def weigh(self, problem: "Problem", view: View, memory: Any, action: Ints) -> Any:
        """The context of a decision as its feedback carries it: with the weights that its observations will have.

        They are fixed by what the policy knew at its last choice, so that feedback counts the same whenever it comes.
        """
        return view.context

    def refit(self, problem: "Problem", memory: Any, t: int) -> None:
        """Estimate anew what is due after the choice of round ``t``, before its feedback; nothing by default."""

    def keep(self, memory: Any, before: Any) -> Any:
        """The memory after past data came or weights changed, of the one just prepared and the one ``before``."""
        return before if self.own_memory else memory

    def guarantee(self, problem: "Problem") -> Guarantee:
        """What the policy's oracle promises on this problem."""
        return Guarantee(0.0)

    def fused(self, problem: "Problem", environment: "Environment") -> int | None:
        """The formula by which the kernel ``play`` decides alike, many rounds in one call; None: it cannot."""
        return None

    def save_state(self, memory: Any) -> dict[str, Any] | None:
        """The part of the memory that does not follow from the tally, by name; None: nothing.

        As arrays, numbers and, under ``blocks``, a list of tallies.
        """
        return None

    def restore_state(self, memory: Any, held: dict[str, Any]) -> None:
        """Put what ``save_state`` returned into a memory that ``prepare`` has just made."""


def choose_batches(policy: Policy, problem: "Problem", view: View, memory: Any) -> Ints:
    """The batches (R, K) that a policy chooses; an error names the policy if it gives none."""
    try:
        batches: Any = policy.choose(problem, view, memory)
    except NotANumber as error:
        raise NotANumber(error.arm, repr(policy)) from None
    if not isinstance(batches, np.ndarray):
        wrong = f"choose of {policy!r} returned {type(batches).__name__}"
        raise InvalidArgument("policy", wrong, "return an array of batches (R, K), padded with -1")
    return batches


def try_every_arm(problem: "Problem", view: View, choose: Callable[[], Ints]) -> Ints:
    """While an eligible arm has no pull, a batch with as many such arms as possible; otherwise ``choose()``.

    [MerlisMannor2019]_ (Algorithm 1, line 1). A replication in which no playable batch has such an arm chooses.
    """
    if np.minimum.reduce(view.counts, None) > 0.0:
        return choose()
    fresh = (view.counts == 0.0) & view.eligible
    if not fresh.any():
        return choose()
    first = problem.actions.heaviest(fresh.astype(float), view)
    rows = np.any(np.take_along_axis(fresh, np.maximum(first, 0), 1) & (first >= 0), axis=1, keepdims=True)
    return first if rows.all() else np.where(rows, first, choose())
