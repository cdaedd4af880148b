"""Policies that learn from totals of sets: Thompson sampling of an additive model, and greedy with a proof."""

import math
from collections.abc import Mapping
from copy import copy, deepcopy
from typing import Any, Self

import numpy as np

from superarm.core import streams
from superarm.core.arrays import Floats, Ints, count, without_fraction
from superarm.core.component import named
from superarm.core.errors import InvalidArgument
from superarm.core.tally import Feedback, Tally, View, round_to_grid
from superarm.core.totals import TotalModel, TotalTally, fit, posterior
from superarm.oracles.base import GREEDY, Guarantee
from superarm.policies.base import Policy
from superarm.policies.memory import NEVER, Arrays, Memory, inside, under
from superarm.problem import Problem

SHARP_UNTIL = 2_000
"""From this decision on the sharpness falls, with the root of the decisions."""


def next_fit(t: int) -> int:
    """The first round after ``t`` in which the model is brought up to date: 5, 10, …, 100, then 10 % more each time.

    >>> [next_fit(t) for t in (0, 5, 99, 100, 110)]
    [5, 10, 100, 111, 111]
    """
    due = 5 * (min(t, 99) // 5 + 1)
    while due <= t:
        due = int(1.1 * due) + 1
    return due


class TotalMemory(Memory):
    """The sums of all totals, and ``settled``: those of decisions before round ``since``, by which it chooses.

    ``settled`` follows from the totals and the time alone, and changes in round ``until``: so the model is a function
    of what was told, in any order, and most decisions take a draw from a model that is there. ``penalty`` and ``noise``
    (R,) are those that were fitted last; None before the first decision. In a window all sums
    are settled.
    """

    divisible = False
    tally: TotalTally
    penalty: Any = None
    noise: Any = None
    since = due = 0
    until = next_fit(0)
    _model: TotalModel | None = None

    def __init__(self, policy: Any, problem: Problem, rows: int = 1, partial: bool = False) -> None:
        if policy.sharpness == policy.later == 1.0:  # the theorem wants a model that is up to date in every round
            self.since = self.until = NEVER
        super().__init__(policy, problem, rows, partial)

    def adopt(self, tally: Tally) -> None:
        super().adopt(tally)
        self._settle(deepcopy(self.tally))

    def _settle(self, sums: TotalTally) -> None:
        self.settled, self._model = sums, None

    @property
    def model(self) -> TotalModel:
        """The model of the settled sums."""
        if self._model is None:
            fitted = fit(self.settled) if self.penalty is None else (self.penalty, self.noise)
            self._model = posterior(self.settled, *fitted)
        return self._model

    def learn(self, feedback: Feedback, weight: float = 1.0) -> None:
        self.advance(feedback.t)
        self.tally.record(feedback, weight)
        if feedback.t < self.since:
            self.settled.record(feedback, weight)
            self._model = None

    def warm(self, past: Tally, t: int, weight: float = 1.0) -> None:
        self.tally.add(past, weight)
        self.settled.add(past, weight)
        self.penalty, self.due, self._model = None, 0, None

    def refill(self, sums: Tally) -> None:
        super().refill(sums)
        self.since = self.until = NEVER

    def inherit(self, old: Memory, t: int) -> None:
        if self.since < NEVER:
            self.since, self.until = t + 1, next_fit(t + 1)
        super().inherit(old, t)

    def advance(self, t: int) -> None:
        if t < self.until:
            return
        while self.until <= t:
            self.since, self.until = self.until, next_fit(self.until)
        self._settle(deepcopy(self.tally))

    def at(self, t: int) -> Self:
        if t < self.until:
            return self
        new = copy(self)
        new._settle(self.tally)  # which a choice does not change
        return new

    def plan(self, t: int, within: int = NEVER) -> Arrays | None:
        if t < self.due:
            return None
        penalty, noise = fit(self.tally)
        return {"due": np.array(float(min(next_fit(t), t + within))), "penalty": penalty, "noise": noise}

    def accept(self, plan: Arrays) -> None:
        self.due, self.penalty, self.noise, self._model = int(plan["due"]), plan["penalty"], plan["noise"], None

    def grown(self, problem: Problem, t: int) -> Self:
        new = super().grown(problem, t)
        new._settle(self.settled.grown(problem))
        return new

    def beside(self) -> Arrays:
        fitted = {} if self.penalty is None else {"penalty": self.penalty, "noise": self.noise}
        times = {"since": np.array(float(self.since)), "due": np.array(float(self.due))}
        return under("settled", self.settled.to_arrays()) | under("model", times | fitted)

    def take_beside(self, arrays: Mapping[str, Any]) -> None:
        own = inside(arrays, "model")
        self.since, self.due = int(own["since"]), int(own["due"])
        self.until = NEVER if self.since == NEVER else next_fit(self.since)
        self.penalty, self.noise = own.get("penalty"), own.get("noise")
        self._settle(self.tally.from_arrays(inside(arrays, "settled")))


class TotalThompson(Policy[TotalMemory]):
    r"""Thompson sampling of an additive model of totals, under a prior that is fitted to them.

    The model is that of ``core.totals``: the total of a set is a level, and an effect of each of its arms. Each
    decision draws effects from a posterior with ``sharpness`` :math:`\gamma_t` times the precision, and plays the set
    with the largest sum:

    .. math:: \tilde\beta \sim N(\hat\beta,\ \Sigma/\gamma_t), \qquad
              \gamma_t = \min\{sharpness, \max\{later, sharpness\sqrt{2000/t}\}\}

    The prior and the model are fitted anew after decisions 5, 10, …, 100, then each time that there are 10 % more.
    After [GelmanEtAl2013]_ and [ChapelleLi2011]_, who sharpen posteriors, too. With ``sharpness=1, later=1`` it is
    Thompson sampling, and the model is brought up to date in every round: it has the Bayesian bound of
    [RussoVanRoy2016]_ if effects add up, and prior and noise are as it fits them (``theory.bounds``). No frequentist
    bound is known: without inflation regret can be linear, [HamidiBayati2020]_.

    Parameters
    ----------
    sharpness
        How many times the precision counts in the first 2,000 decisions. 8 earned more early, and kept to wrong sets.
    later
        What it falls to.
    """

    sharpness: float = 4.0
    later: float = 2.0
    remembers = TotalMemory
    learns_totals = needs_totals = True
    random = True
    caveat = (
        "It assumes that arms add up: where they interact strongly, it can keep to a good set that is not the best; no "
        "frequentist regret bound is known for it."
    )

    def check(self) -> None:
        for name in ("sharpness", "later"):
            self.require(name, 0.0 < getattr(self, name) <= 1e6, "give a number > 0, at most 1e6")

    def choose(self, problem: Problem, view: View, memory: TotalMemory) -> Ints:
        return heaviest(problem, self.draw(view, memory), view)

    def draw(self, view: View, memory: TotalMemory) -> Floats:
        """Effects of all arms, (R, n_arms), drawn for the round."""
        model, n_arms = memory.model, view.counts.shape[1]
        z = streams.normal(streams.uniform(view.keys, view.t, np.arange(n_arms))[:, :, 0])
        fallen = self.sharpness * math.sqrt(SHARP_UNTIL / max(view.t, 1))
        sharpness = min(self.sharpness, max(min(self.later, self.sharpness), fallen))
        return model.mean + (model.root @ z[:, :, None])[:, :, 0] / math.sqrt(sharpness)

    def estimates(self, problem: Problem, view: View, memory: TotalMemory) -> tuple[Floats, Floats]:
        """The shares of arms in the total of a set, as they are known, and as they were drawn; for explanations."""
        known = memory.model.shares(problem.k)
        return known[:, None], (known + self.draw(view, memory) - memory.model.mean)[:, None]

    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(1.0 if problem.actions.tractable else 0.0)


def heaviest(problem: Problem, effects: Floats, view: View) -> Ints:
    """The set with the largest sum of effects (R, n_arms); where sets are equally large, a shift changes no order."""
    shifted = effects - effects.min(1, keepdims=True)
    return problem.actions.heaviest(shifted if problem.actions.matroid else np.maximum(effects, 0.0), view)


@named
def total_thompson(sharpness: float = 4.0, later: float = 2.0) -> TotalThompson:
    """Thompson sampling from totals of sets, for ``reward=Total()``: what each arm adds is learnt from whole sets.

    The posterior counts ``sharpness`` times in the first 2,000 decisions, which earns earlier, and falls to ``later``.
    With both 1 it is Thompson sampling. See ``TotalThompson`` for the formulas.

    Examples
    --------
    >>> total_thompson(later=4.0)
    total_thompson(sharpness=4, later=4)
    """
    return TotalThompson(sharpness, later)


class PhaseMemory(Memory):
    """The sums, and those of the totals of each phase of greedy and each arm that was tried in it, (R, k, n_arms).

    The phase and the arm of a decision follow from its round: so the set that greedy has found follows from the sums.
    """

    by_row = ("earned", "plays")

    def __init__(self, policy: Any, problem: Problem, rows: int = 1, partial: bool = False) -> None:
        shape = (rows, problem.k, problem.n_arms)
        self.earned, self.plays = np.zeros(shape), np.zeros(shape)
        super().__init__(policy, problem, rows, partial)

    def note(self, feedback: Feedback, weight: float) -> None:
        phase, arm = self.policy.step(self.problem, feedback.t)
        if 0 <= phase < self.problem.k and feedback.joint is not None:
            self.earned[:, phase, arm] += weight * round_to_grid(feedback.joint.total).sum(1)
            self.plays[:, phase, arm] += weight

    def found(self, phases: int) -> Ints:
        """The arms that joined in the first phases, (R, phases)."""
        rows, arms = np.arange(len(self.earned)), np.zeros((len(self.earned), phases), np.int64)
        mean = self.earned / np.maximum(self.plays, 1.0)
        for phase in range(phases):
            free = mean[:, phase].copy()
            free[rows[:, None], arms[:, :phase]] = -np.inf
            arms[:, phase] = free.argmax(1)
        return arms


class GreedyThenCommit(Policy[PhaseMemory]):
    r"""C-ETC with greedy: explore, then commit, for totals that are monotone and submodular. [NieEtAl2023]_.

    In each of k phases every arm is added to the set so far, m times; the best one joins for good. With N = n_arms k,

    .. math:: m = \Bigl\lceil\frac{(2kT)^{2/3}(\log T)^{1/3}}{2N^{2/3}}\Bigr\rceil

    balances what exploring costs and what the errors of the means cost (``theory.bounds``). Differs: arms that have
    joined are tried again, so that the arm of a decision follows from its round.

    Parameters
    ----------
    horizon
        T, how many decisions there will be: at least N m.
    """

    horizon: int
    remembers = PhaseMemory
    learns_totals = needs_totals = True

    def check(self) -> None:
        self.convert("horizon", count(without_fraction(self.horizon), "horizon", 2))

    def plays(self, problem: Problem) -> int:
        """How often each set is played while it explores."""
        return greedy_plays(problem.n_arms, problem.k, self.horizon)

    def validate(self, problem: Problem) -> None:
        if not problem.actions.uniform:
            raise InvalidArgument("policy", "greedy_then_commit() plays sets of 1, 2, … arms", "take Subsets(k)")
        needed = self.plays(problem) * problem.n_arms * problem.k
        if needed > self.horizon:
            wrong = f"{self.horizon} decisions, and exploring alone takes {needed}"
            raise InvalidArgument("horizon", wrong, "give a longer one, fewer arms, or take total_thompson()")

    def step(self, problem: Problem, t: int) -> tuple[int, int]:
        """The phase of round ``t``, and the arm that is tried in it; negative for past data."""
        each = self.plays(problem)
        phase, rest = divmod(t - 1, problem.n_arms * each)
        return phase, rest // each

    def choose(self, problem: Problem, view: View, memory: PhaseMemory) -> Ints:
        phase, arm = self.step(problem, view.t)
        found = memory.found(min(phase, problem.k))
        out = np.full((len(view), problem.k), -1)
        out[:, : found.shape[1]] = found
        if phase < problem.k:
            out[:, phase] = np.where((found == arm).any(1), -1, arm)
        if view.eligible.all():
            return out
        wanted = (out[:, :, None] == np.arange(problem.n_arms)).any(1)
        return problem.actions.heaviest(wanted.astype(float), view)

    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(GREEDY)


def greedy_plays(n_arms: int, k: int, horizon: float) -> int:
    """How often C-ETC with greedy plays each set, [NieEtAl2023]_."""
    log = math.log(horizon)
    return max(1, math.ceil((2.0 * k * horizon) ** (2 / 3) * log ** (1 / 3) / (2.0 * (n_arms * k) ** (2 / 3))))


@named
def greedy_then_commit(horizon: int) -> GreedyThenCommit:
    """Greedy from totals of sets of 1, 2, … arms, then its set for good: the choice with a frequentist bound.

    It needs to know the ``horizon``. Its bound says something at very long ones only; ``total_thompson`` earns more.

    Examples
    --------
    >>> from superarm.actions import Subsets
    >>> from superarm.rewards import Total
    >>> greedy_then_commit(100_000).plays(Problem(20, reward=Total(), actions=Subsets(3)))
    525
    """
    return GreedyThenCommit(horizon)
