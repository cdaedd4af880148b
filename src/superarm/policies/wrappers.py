"""Baselines and wrappers: epsilon-greedy, random batches, TS-Cascade, and a policy as two functions."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.core import streams
from superarm.core.arrays import Ints
from superarm.core.component import named
from superarm.core.errors import InvalidArgument
from superarm.core.numeric import log
from superarm.core.tally import Feedback, Tally, View
from superarm.indices import Mean
from superarm.oracles.base import Guarantee, Oracle
from superarm.oracles.default import Default
from superarm.policies.base import Policy
from superarm.policies.index import IndexPolicy

if TYPE_CHECKING:
    from superarm.core.problem import Problem


def random_batch(problem: "Problem", view: View) -> Ints:
    """A random batch (R, K) of eligible arms."""
    return problem.actions.sample(view, streams.uniform(view.keys, view.t, np.arange(problem.n_arms))[:, :, 0])


class Wrapper(Policy):
    """A policy that lets another one learn and keep its memory; override ``choose``."""

    policy: Policy

    def check(self) -> None:
        self.require_family("policy", Policy, "kl_ucb()")

    @property
    def rounding(self) -> str:  # type: ignore[override]
        return self.policy.rounding

    @property
    def caveat(self) -> Any:  # type: ignore[override]
        return self.policy.caveat

    @property
    def reads_context(self) -> bool:  # type: ignore[override]
        return self.policy.reads_context

    @property
    def shares_segments(self) -> bool:  # type: ignore[override]
        return bool(self.policy.shares_segments)

    @property
    def own_memory(self) -> bool:
        return self.policy.own_memory

    def validate(self, problem: "Problem") -> None:
        self.policy.validate(problem)

    def new_tally(self, problem: "Problem", replications: int, partial: bool = False) -> Tally:
        return self.policy.new_tally(problem, replications, partial)

    def prepare(self, problem: "Problem", tally: Tally) -> Any:
        return self.policy.prepare(problem, tally)

    def learn(self, problem: "Problem", tally: Tally, memory: Any, feedback: Feedback, sign: float = 1.0) -> None:
        self.policy.learn(problem, tally, memory, feedback, sign)

    def refit(self, problem: "Problem", memory: Any, t: int) -> None:
        self.policy.refit(problem, memory, t)

    def guarantee(self, problem: "Problem") -> Guarantee:
        return self.policy.guarantee(problem)

    def save_state(self, memory: Any) -> dict[str, Any] | None:
        return self.policy.save_state(memory)

    def restore_state(self, memory: Any, held: dict[str, Any]) -> None:
        self.policy.restore_state(memory, held)


class EpsilonGreedy(Wrapper):
    r"""With probability :math:`\min\{1, \epsilon\, t^{-decay}\}` a random batch, otherwise that of ``policy``.

    The baseline of [AuerCesaBianchiFischer2002]_, for batches.

    Examples
    --------
    >>> epsilon_greedy(0.2).epsilon
    0.2
    """

    policy: Policy
    epsilon: float = 0.1
    decay: float = 0.0

    def check(self) -> None:
        super().check()
        self.require("epsilon", 0.0 <= self.epsilon <= 1.0, "give a share in [0, 1]")
        self.require("decay", 0.0 <= self.decay < math.inf, "give a finite number >= 0")

    def choose(self, problem: "Problem", view: View, memory: Any) -> Ints:
        # The second shared number of the round: the first may be the policy's own.
        coin = streams.shared_uniform(view.keys, view.t, 2)[:, 1] < self.epsilon * float(view.t) ** -self.decay
        if coin.all():
            return random_batch(problem, view)
        batch = self.policy.choose(problem, view, memory)
        return np.where(coin[:, None], random_batch(problem, view), batch) if coin.any() else batch


class Uniform(Policy):
    """A batch at random, whatever was learnt: the floor under every comparison, as in [AuerCesaBianchiFischer2002]_."""

    def choose(self, problem: "Problem", view: View, memory: Any) -> Ints:
        return random_batch(problem, view)


class OneGaussian(Policy):
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

    def check(self) -> None:
        self.require_family("oracle", Oracle, "TopArms()")
        if not self.oracle.ranking:
            remedy = "take one that only ranks arms, as TopArms() does"
            raise InvalidArgument("oracle", "samples lie outside [0, 1]", remedy, "OneGaussian")

    def validate(self, problem: "Problem") -> None:
        self.oracle.validate(problem)

    def choose(self, problem: "Problem", view: View, memory: Any) -> Ints:
        z = streams.quantile(streams.move_inside(streams.shared_uniform(view.keys, view.t)))
        mean = view.tally.mean
        narrow = problem.support.by_arm(log(view.t + 1.0) / (view.counts + 1.0))
        wide = np.maximum(np.sqrt(mean * (1.0 - mean) * narrow), narrow)
        q = mean + problem.support.by_arm(np.repeat(z, problem.n_arms, 1)) * wide
        return self.oracle.maximize(problem, q, view)

    def guarantee(self, problem: "Problem") -> Guarantee:
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


class FunctionPolicy(Policy):
    """A policy made of functions; see :func:`policy`."""

    choose_function: Callable[..., Any]
    learn_function: Callable[..., Any] | None = None

    @property
    def own_memory(self) -> bool:
        return self.learn_function is not None

    def prepare(self, problem: "Problem", tally: Tally) -> dict[str, Any]:
        return {}

    def choose(self, problem: "Problem", view: View, memory: Any) -> Ints:
        return self.choose_function(problem, view, memory)

    def learn(self, problem: "Problem", tally: Tally, memory: Any, feedback: Feedback, sign: float = 1.0) -> None:
        tally.record(feedback, sign)
        if self.learn_function is not None and feedback.in_moments:
            self.learn_function(problem, memory, feedback, sign)


def policy(choose: Callable[..., Any], learn: Callable[..., Any] | None = None) -> FunctionPolicy:
    """A policy of your own from one or two functions, without a class.

    Parameters
    ----------
    choose
        ``choose(problem, view, memory)`` returns the batches (R, K), one row per replication, padded with -1.
        ``view.tally.mean`` (R, n_items, n_arms) and ``view.counts`` (R, n_arms) hold what is known, ``memory`` is a
        dict of your own.
    learn
        ``learn(problem, memory, feedback, sign)`` brings ``memory`` up to date; ``sign`` is -1 when feedback is taken
        back. The tally is kept without it.

    Examples
    --------
    >>> import numpy as np
    >>> from superarm.core.problem import Problem
    >>> from superarm.rewards import Coverage
    >>> from superarm.actions import Subsets
    >>> def fewest_pulls(problem, view, memory):
    ...     return np.argsort(view.counts, axis=1, kind="stable")[:, : problem.k]
    >>> problem = Problem(4, 2, Coverage(), Subsets(2))
    >>> policy(fewest_pulls).choose(problem, problem.view(), {})
    array([[0, 1]])
    >>> policy(fewest_pulls)
    policy(fewest_pulls)
    """
    for name, function in (("choose", choose), ("learn", learn)):
        if not (callable(function) or (name == "learn" and function is None)):
            raise InvalidArgument(name, f"{function!r} is not a function", f"give a function {name}(problem, …)")
    made = FunctionPolicy(choose, learn)
    names = [getattr(function, "__name__", repr(function)) for function in (choose, learn) if function is not None]
    made.convert("written", f"policy({', '.join(names)})")
    return made
