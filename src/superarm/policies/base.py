"""The base of policies."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.component import Component
from superarm.core.errors import InvalidArgument, NotANumber
from superarm.core.tally import View
from superarm.oracles.base import Guarantee
from superarm.policies.memory import Memory
from superarm.problem import Problem

if TYPE_CHECKING:
    from superarm.environments.base import Environment


M = TypeVar("M", bound=Memory)


def fact_of(part: str, fact: str) -> Any:
    """A fact about a policy that is that of a part of it, such as its index."""
    return property(lambda policy: getattr(getattr(policy, part), fact))


class Policy(Component, Generic[M]):
    """A policy. Subclass it and define ``choose``; the rest has defaults.

    What it knows is a ``Memory``, by default the sums of all observations. A policy that remembers more has a subclass
    of its own, ``remembers``, or makes one in ``new_memory``.

    >>> class FewestPulls(Policy):
    ...     def choose(self, problem, view, memory):
    ...         return problem.actions.heaviest(1.0 / (1.0 + view.counts), view)
    >>> FewestPulls()
    FewestPulls()
    """

    remembers: ClassVar[type[Memory]] = Memory
    """The class of its memories."""
    rounding = "exact"
    """How outcomes enter the tally: as they are, or as a ``coin`` flip with that bias."""
    caveat: ClassVar[Any] = ""
    """What the policy assumes that may not hold, in a sentence for reports."""
    reads_context: ClassVar[Any] = False
    """Whether the policy learns from contexts."""
    shares_segments: ClassVar[Any] = False
    """Whether one memory of all segments is what it learns from, and not one of each segment alone."""
    forgets: ClassVar[Any] = False
    """Whether it weighs observations by their age."""
    random: ClassVar[Any] = False
    """Whether it draws batches in a way of its own, so that the chance of a batch is not known."""
    whole_batches: ClassVar[Any] = False
    """Whether it scores whole batches, so that the first arms of one are not what it would choose for a smaller one."""
    cascade: ClassVar[Any] = False
    """Whether its batches are lists that are read from the top, and left at the first success."""
    counts_decisions: ClassVar[Any] = False
    """Whether it takes the number of the round for the number of decisions, so that it needs all of them in one row."""
    learns_totals: ClassVar[Any] = False
    """Whether totals of batches are enough for it: it learns from them, or learns nothing."""
    needs_totals: ClassVar[Any] = False
    """Whether it learns from totals alone."""
    any_outcome: ClassVar[Any] = False
    """Whether outcomes may be any numbers, and not only those in [0, 1]."""
    consistent: ClassVar[Any] = False
    """Whether it is proved that its regret grows more slowly than every power of T, if its oracle is exact; the word
    ``independent`` if that is proved for independent entries alone."""

    def validate(self, problem: Problem) -> None:
        """Raise ``InvalidArgument`` if the policy does not apply to this problem."""

    def new_memory(self, problem: Problem, replications: int, partial: bool = False) -> M:
        """A memory of no observations; with ``partial`` entries may be unseen from the start."""
        return self.remembers(self, problem, replications, partial)  # type: ignore[return-value]

    def choose(self, problem: Problem, view: View, memory: M) -> Ints:
        """The arms to play, (R, K) in the order of picking, padded with -1; nothing in ``memory`` changes by it."""
        raise NotImplementedError

    def weigh(self, problem: Problem, view: View, memory: M, action: Ints) -> Any:
        """The context of a decision as its feedback carries it: with the weights that its observations will have.

        They are fixed by what the policy knew at its last choice, so that feedback counts the same whenever it comes.
        """
        return view.context

    def estimates(self, problem: Problem, view: View, memory: M) -> tuple[Floats, Floats]:
        """The estimates of all entries, and the parameters at which the oracle chooses; for explanations."""
        wrong = f"{type(self).__name__} chooses batches by other things than parameters of entries"
        raise InvalidArgument("policy", wrong, "explain decisions of index policies and of policies on linear models")

    def warning(self, memory: M) -> str:
        """What is wrong with what the policy was told, in a sentence; empty if nothing is."""
        return ""

    def coefficients(self, problem: Problem, memory: M) -> Floats:
        """The parameter vectors of a regression, (R, n_groups, d)."""
        raise InvalidArgument("policy", f"{type(self).__name__} has no coefficients", "take a regression model")

    def guarantee(self, problem: Problem) -> Guarantee:
        """What the policy's oracle promises on this problem."""
        return Guarantee(0.0)

    def fused(self, problem: Problem, environment: "Environment") -> int | None:
        """The formula by which the kernel ``play`` decides alike, many rounds in one call; None: it cannot.

        It is asked of policies whose memory has only sums.
        """
        return None


def require_outcomes(policy: Policy[Any], problem: Problem) -> None:
    """Raise ``InvalidArgument`` if the policy needs outcomes in [0, 1], or what each arm did, and others are seen."""
    if problem.real and not policy.any_outcome:
        low, high = problem.bounds
        wrong = f"{policy!r} needs outcomes in [0, 1], and those of the problem are in [{low:g}, {high:g}]"
        raise InvalidArgument("policy", wrong, "take e.g. comb_ucb1(), bg_cts() or comb_lin_ts()")
    if policy.needs_totals and not problem.reward.totals:
        raise InvalidArgument("policy", f"{policy!r} learns from totals", "declare reward=Total()")
    if problem.reward.totals and not policy.learns_totals:
        raise InvalidArgument(
            "policy", f"{policy!r} needs what each arm did", "take total_thompson(), or say that it learns totals"
        )


def choose_batches(policy: Policy[Any], problem: Problem, view: View, memory: Any) -> Ints:
    """The batches (R, K) that a policy chooses; an error names the policy if it gives none."""
    try:
        batches: Any = policy.choose(problem, view, memory)
    except NotANumber as error:
        raise NotANumber(error.arm, repr(policy)) from None
    if not isinstance(batches, np.ndarray):
        wrong = f"choose of {policy!r} returned {type(batches).__name__}"
        raise InvalidArgument("policy", wrong, "return an array of batches (R, K), padded with -1")
    return batches


def try_every_arm(problem: Problem, view: View, choose: Callable[[], Ints]) -> Ints:
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
