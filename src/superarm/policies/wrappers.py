"""Baselines and wrappers: epsilon-greedy, random batches, TS-Cascade, and a policy as two functions."""

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from superarm.core import streams
from superarm.core.arrays import Floats, Ints
from superarm.core.component import named
from superarm.core.errors import InvalidArgument
from superarm.core.numeric import log
from superarm.core.tally import Feedback, Tally, View
from superarm.indices import Mean
from superarm.oracles.base import Guarantee, Oracle
from superarm.oracles.default import Default
from superarm.policies.base import Policy, fact_of
from superarm.policies.index import IndexPolicy
from superarm.policies.memory import Arrays, Memory, inside, under
from superarm.problem import Problem


def random_batch(problem: Problem, view: View) -> Ints:
    """A random batch (R, K) of eligible arms."""
    return problem.actions.sample(view, streams.uniform(view.keys, view.t, np.arange(problem.n_arms))[:, :, 0])


class Wrapper(Policy[Any]):
    """A policy that lets another one learn and have the memory; override ``choose``."""

    policy: Policy[Any]

    def check(self) -> None:
        self.require_family("policy", Policy, "kl_ucb()")

    rounding = fact_of("policy", "rounding")
    caveat = fact_of("policy", "caveat")
    any_outcome = fact_of("policy", "any_outcome")
    reads_context = fact_of("policy", "reads_context")
    shares_segments = fact_of("policy", "shares_segments")
    forgets = fact_of("policy", "forgets")
    random = fact_of("policy", "random")
    whole_batches = fact_of("policy", "whole_batches")
    cascade = fact_of("policy", "cascade")
    counts_decisions = fact_of("policy", "counts_decisions")
    learns_totals = fact_of("policy", "learns_totals")
    needs_totals = fact_of("policy", "needs_totals")

    def validate(self, problem: Problem) -> None:
        self.policy.validate(problem)

    def new_memory(self, problem: Problem, replications: int, partial: bool = False) -> Any:
        return self.policy.new_memory(problem, replications, partial)

    def weigh(self, problem: Problem, view: View, memory: Any, action: Ints) -> Any:
        return self.policy.weigh(problem, view, memory, action)

    def estimates(self, problem: Problem, view: View, memory: Any) -> tuple[Floats, Floats]:
        return self.policy.estimates(problem, view, memory)

    def coefficients(self, problem: Problem, memory: Any) -> Floats:
        return self.policy.coefficients(problem, memory)

    def guarantee(self, problem: Problem) -> Guarantee:
        return self.policy.guarantee(problem)


class EpsilonGreedy(Wrapper):
    r"""With probability :math:`\min\{1, \epsilon\, t^{-decay}\}` a random batch, otherwise that of ``policy``.

    The baseline of [AuerCesaBianchiFischer2002]_, for batches.

    Examples
    --------
    >>> epsilon_greedy(0.2).epsilon
    0.2
    """

    policy: Policy[Any]
    epsilon: float = 0.1
    decay: float = 0.0
    random = True

    def check(self) -> None:
        super().check()
        self.require("epsilon", 0.0 <= self.epsilon <= 1.0, "give a share in [0, 1]")
        self.require("decay", 0.0 <= self.decay < math.inf, "give a finite number >= 0")

    def choose(self, problem: Problem, view: View, memory: Any) -> Ints:
        # The second shared number of the round: the first may be the policy's own.
        coin = streams.shared_uniform(view.keys, view.t, 2)[:, 1] < self.epsilon * float(view.t) ** -self.decay
        if coin.all() and view.context is None:  # otherwise the policy weighs what its choice is told
            return random_batch(problem, view)
        batch = self.policy.choose(problem, view, memory)
        return np.where(coin[:, None], random_batch(problem, view), batch) if coin.any() else batch


class Uniform(Policy[Memory]):
    """A batch at random, whatever was learnt: the floor under every comparison, as in [AuerCesaBianchiFischer2002]_."""

    random = True
    learns_totals = True
    any_outcome = True

    def choose(self, problem: Problem, view: View, memory: Any) -> Ints:
        return random_batch(problem, view)


class OneGaussian(Policy[Memory]):
    r"""TS-Cascade: Thompson sampling with one Gaussian number per round, scaled differently for every arm.

    .. math:: \theta_j = \hat p_j + Z_t \max\Bigl\{\sqrt{\frac{\hat p_j (1 - \hat p_j) \log(t + 1)}{N_j + 1}},
              \frac{\log(t + 1)}{N_j + 1}\Bigr\}, \qquad Z_t \sim N(0, 1)

    There are no initial rounds: an arm that was never observed has :math:`\hat p_j = N_j = 0`. Implements
    [CheungTanZhong2019]_ (Algorithm 1). Pending pulls count in :math:`N_j`, not in :math:`\hat p_j`.

    Parameters
    ----------
    oracle
        An oracle that only ranks arms, as ``TopArms()``: samples may lie outside [0, 1].
    """

    oracle: Oracle
    random = True
    cascade = True

    def check(self) -> None:
        self.require_family("oracle", Oracle, "TopArms()")
        if not self.oracle.ranking:
            remedy = "take one that only ranks arms, as TopArms() does"
            raise InvalidArgument("oracle", "samples lie outside [0, 1]", remedy, "OneGaussian")

    def validate(self, problem: Problem) -> None:
        self.oracle.validate(problem)

    def choose(self, problem: Problem, view: View, memory: Any) -> Ints:
        z = streams.normal(streams.shared_uniform(view.keys, view.t))
        mean = view.tally.mean
        narrow = problem.support.by_arm(log(view.t + 1.0) / (view.counts + 1.0))
        wide = np.maximum(np.sqrt(mean * (1.0 - mean) * narrow), narrow)
        q = mean + problem.support.by_arm(np.repeat(z, problem.n_arms, 1)) * wide
        return self.oracle.maximize(problem, q, view)

    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


@named
def epsilon_greedy(epsilon: float = 0.1, decay: float = 0.0, oracle: Oracle = Default()) -> EpsilonGreedy:  # noqa: B008
    """A random batch with probability ``epsilon / t**decay``, otherwise the best batch at the empirical means.

    Parameters
    ----------
    epsilon
        The probability of a random batch in the first round.
    decay
        How fast that probability falls; 0 keeps it constant.
    oracle
        The algorithm that finds a batch for the means.

    Examples
    --------
    >>> epsilon_greedy(decay=1.0)
    epsilon_greedy(epsilon=0.1, decay=1)
    """
    return EpsilonGreedy(IndexPolicy(Mean(), oracle), epsilon, decay)


@named
def uniform() -> Uniform:
    """A random batch in every round: the baseline that every policy should beat.

    >>> uniform()
    uniform()
    """
    return Uniform()


class FunctionMemory(Memory):
    """The sums, and ``own``: a dict that the function ``learn`` fills with arrays and numbers.

    It cannot be split, nor does it follow from sums: a window begins it anew with each block, and another policy when
    it takes over. New arms get zeros along each axis of an array, but the first, that has a place for each arm.
    """

    divisible = False

    def __init__(self, policy: Any, problem: Problem, rows: int = 1, partial: bool = False) -> None:
        self.own: dict[str, Any] = {}
        super().__init__(policy, problem, rows, partial)

    def note(self, feedback: Feedback, weight: float) -> None:
        if self.policy.learn_function is not None:
            self.policy.learn_function(self.problem, self.own, feedback, weight)

    def refill(self, sums: Tally) -> None:
        super().refill(sums)
        self.own = {}

    def inherit(self, old: Memory, t: int) -> None:
        super().inherit(old, t)
        self.begun = t

    def grown(self, problem: Problem, t: int) -> Self:
        new = super().grown(problem, t)
        if problem.n_items > self.problem.n_items:
            if self.own:
                begun = f"{self.policy!r} keeps a memory of its own, and forgets it now that items were added"
                warnings.warn(f"{begun}; the tally keeps everything", stacklevel=7)
            new.own, new.begun = {}, t
        else:
            new.own = {name: self._with_more_arms(name, part, problem) for name, part in self.own.items()}
        return new

    def _with_more_arms(self, name: str, part: Any, problem: Problem) -> Any:
        """Zeros for new arms along the axes of n_arms, the first one if it is the only one; refused where items fit."""
        before, shape = self.problem.n_arms, np.shape(part)
        along = [size == before and (axis > 0 or len(shape) == 1) for axis, size in enumerate(shape)]
        if sum(along) > 1 and before in (self.problem.n_items, self.problem.k) and problem.n_arms > before:
            wrong = f"{name!r} has shape {shape}, and arms, items or places have the same number"
            raise InvalidArgument("policy", wrong, "write a class of memory with a method grown", repr(self.policy))
        return np.pad(part, [(0, (problem.n_arms - before) * own) for own in along]) if any(along) else part

    def beside(self) -> Arrays:
        own = {name: np.asarray(part) for name, part in self.own.items()}
        for name, part in own.items():
            if part.dtype == object:
                wrong = f"it keeps {self.own[name]!r} under {name!r}"
                raise InvalidArgument("policy", wrong, "keep arrays and numbers, which can be saved", repr(self.policy))
        return super().beside() | under("own", own)

    def take_beside(self, arrays: Mapping[str, Any]) -> None:
        super().take_beside(arrays)
        own = inside(arrays, "own")
        self.own = {name: np.array(part) if np.ndim(part) else np.asarray(part).item() for name, part in own.items()}


class FunctionPolicy(Policy[FunctionMemory]):
    """A policy made of functions; see :func:`policy`."""

    choose_function: Callable[..., Any]
    learn_function: Callable[..., Any] | None = None
    totals: bool = False
    remembers = FunctionMemory
    any_outcome = True

    @property
    def learns_totals(self) -> bool:  # type: ignore[override]
        return self.totals

    @property
    def needs_totals(self) -> bool:  # type: ignore[override]
        return self.totals

    def choose(self, problem: Problem, view: View, memory: FunctionMemory) -> Ints:
        return self.choose_function(problem, view, memory.own)


def policy(
    choose: Callable[..., Any], learn: Callable[..., Any] | None = None, *, totals: bool = False
) -> FunctionPolicy:
    """A policy of your own from one or two functions, without a class.

    Parameters
    ----------
    choose
        ``choose(problem, view, memory)`` returns the batches (R, K), one row per replication, padded with -1.
        ``view.tally.mean`` (R, n_items, n_arms) and ``view.counts`` (R, n_arms) hold what is known, ``memory`` is a
        dict of your own.
    learn
        ``learn(problem, memory, feedback, sign)`` brings ``memory`` up to date; ``sign`` is -1 when feedback is taken
        back. The tally is kept without it. On segments each one has a ``memory``. Its arrays get zeros for new arms,
        along each axis but the first that has a place for each arm.
    totals
        Whether it learns from totals of batches, for ``reward=Total()``: then ``feedback.joint`` has them.

    Examples
    --------
    >>> import numpy as np
    >>> from superarm.problem import Problem
    >>> from superarm.rewards import Coverage
    >>> from superarm.actions import Subsets
    >>> def fewest_pulls(problem, view, memory):
    ...     return np.argsort(view.counts, axis=1, kind="stable")[:, : problem.k]
    >>> problem = Problem(4, 2, Coverage(), Subsets(2))
    >>> own = policy(fewest_pulls)
    >>> own.choose(problem, problem.view(), own.new_memory(problem, 1))
    array([[0, 1]])
    >>> policy(fewest_pulls)
    policy(fewest_pulls)
    """
    for name, function in (("choose", choose), ("learn", learn)):
        if not (callable(function) or (name == "learn" and function is None)):
            raise InvalidArgument(name, f"{function!r} is not a function", f"give a function {name}(problem, …)")
    if not isinstance(totals, bool):
        raise InvalidArgument("totals", f"{totals!r} is neither True nor False", "give totals=True or leave it out")
    made = FunctionPolicy(choose, learn, totals)
    names = [getattr(function, "__name__", repr(function)) for function in (choose, learn) if function is not None]
    made.convert("written", f"policy({', '.join([*names, *['totals=True'] * totals])})")
    return made
