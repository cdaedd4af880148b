"""Greedy algorithms: add the arm of the largest gain until none may join."""

import math

import numpy as np

from superarm.actions.base import add_arms, new_batches, pick_arms, pins_are_eligible
from superarm.actions.subsets import Subsets
from superarm.core.arrays import Bools, Floats, Ints, best_arms
from superarm.core.ops import op
from superarm.core.streams import uniform
from superarm.core.support import Dense, Sparse
from superarm.core.tally import View
from superarm.oracles.base import GREEDY, Guarantee, Oracle, share_of_optimum
from superarm.problem import Problem
from superarm.rewards import Coverage

LAZY_FROM_ENTRIES = 20_000
"""From this many entries of a sparse problem on, arms whose last gain cannot win are not evaluated: if every arm has
every item, few could be left out."""

_SLACK = 1.0 + 1e-9
"""By what factor a gain may exceed an earlier one by rounding."""

_FIRST_ARMS = 32
"""How many arms are evaluated first in a step of lazy greedy; then four times as many, and so on."""


class Greedy(Oracle):
    r"""Add the arm with the largest marginal gain until no arm may join.

    .. math:: j_n \in \arg\max_{j \notin A_{n-1}} r(A_{n-1} \cup \{j\}; q)

    For a monotone submodular reward that is not negative: :math:`\alpha = 1 - (1 - 1/k)^k` on ``Subsets(k)``,
    [NemhauserWolseyFisher1978]_, 1/2 on a matroid, 1/(p + 1) on a p-system (1/3 on a ``Matching``),
    [FisherNemhauserWolsey1978]_; for a modular one exact on a matroid and 1/p on a p-system, [KorteHausmann1978]_;
    exact for a single item on a matroid. Implements [MerlisMannor2019]_ (section Algorithm). Equal gains go to the arm
    with the fewest pulls, then the lowest.
    """

    def maximize(self, problem: Problem, q: Floats, view: View) -> Ints:
        fused = type(problem.reward) is Coverage and type(problem.actions) is Subsets
        whole = len(q) == len(view) and pins_are_eligible(view)
        if fused and whole and isinstance(problem.support, Dense):
            out = new_batches(problem.actions, view)
            arguments = (q, problem.weights, view.counts, view.eligible, view.pinned.shape[1], out)
            op("greedy_coverage", q.size * problem.k)(*arguments)
            return out
        sparse = isinstance(problem.support, Sparse) and problem.n_entries >= LAZY_FROM_ENTRIES
        lazy = sparse and problem.reward.submodular
        return _greedy_lazily(problem, q, view) if lazy else greedy_by_steps(problem, q, view)

    def guarantee(self, problem: Problem) -> Guarantee:
        """By the theorem that applies; alpha = 0 where none does.

        With a single item, gains are ordered as the parameters of the arms are, whatever was chosen before. On a
        matroid, greedy then finds a batch whose n-th largest parameter is, for every n, at least that of any other.
        """
        reward, actions, k = problem.reward, problem.actions, problem.k
        if not reward.additive:
            return Guarantee(0.0)
        if reward.modular:
            return share_of_optimum(problem, 1.0 / actions.exchange)
        if problem.n_items == 1 and actions.matroid:
            return Guarantee(1.0)
        if not (reward.submodular and reward.monotone):
            return Guarantee(0.0)
        alpha = 1.0 - (1.0 - 1.0 / k) ** k if actions.uniform else 1.0 / (1.0 + actions.exchange)
        return share_of_optimum(problem, alpha)


def greedy_by_steps(
    problem: Problem, q: Floats, view: View, out: Ints | None = None, costs: Floats | None = None
) -> Ints:
    """Greedy for any reward on any action set, from the batches ``out`` on; by gain per cost if ``costs`` are given."""
    states, (reward, q) = problem.reward.empty_states(problem, len(view)), problem.reward.prepared(q)

    def gains() -> Floats:
        found = reward.gains(problem, states, q)
        return found if costs is None else found / costs

    def joined(arm: Ints) -> None:
        problem.support.join(states, q, arm, reward.join)

    return add_arms(problem.actions, view, gains, joined, out)


def _greedy_lazily(problem: Problem, q: Floats, view: View) -> Ints:
    """The batches of ``greedy_by_steps``, for a sparse problem with a submodular reward: lazy greedy, [Minoux1978]_.

    No later gain of an arm exceeds an earlier one, beyond rounding. So an arm is evaluated only if its last gain could
    still win, those with the largest last gains first.
    """
    reward, states = problem.reward, problem.reward.empty_states(problem, len(view))
    limits = _SLACK * reward.gains(problem, states, q)

    def pick(allowed: Bools) -> Ints:
        gains, waiting = np.full(allowed.shape, -np.inf), np.where(allowed, limits, -np.inf)
        for r in range(len(view)):
            most, n = -np.inf, _FIRST_ARMS
            while len(arms := np.flatnonzero((waiting[r] >= most) & (waiting[r] > -np.inf))):
                arms = arms if len(arms) <= n else arms[np.argpartition(-waiting[r, arms], n)[:n]]
                gains[r, arms] = _gains_of_arms(problem, states[r], q[r % len(q)], arms)
                limits[r, arms] = _SLACK * np.maximum(0.0, gains[r, arms])
                waiting[r, arms], most, n = -np.inf, max(most, gains[r, arms].max()), 4 * n
        return best_arms(gains, view.counts)

    return pick_arms(problem.actions, view, pick, lambda arm: problem.support.join(states, q, arm, reward.join))


def _gains_of_arms(problem: Problem, states: Floats, q: Floats, arms: Ints) -> Floats:
    """What some arms of a sparse problem would add, in one replication: as ``Reward.gains`` has it."""
    widths, first = problem.support.widths[arms], problem.support.start[arms]
    start = np.concatenate([[0], np.cumsum(widths)])
    places = np.arange(start[-1]) + np.repeat(first - start[:-1], widths)
    items = problem.support.items[places]
    gains = problem.reward.gain(problem.weights[items], states[items], q[places])
    return np.asarray(np.bincount(np.repeat(np.arange(len(arms)), widths), gains, len(arms)), float)


class StochasticGreedy(Oracle):
    r"""Greedy that evaluates :math:`\lceil (n/k)\log(1/\epsilon)\rceil` arms per step, drawn without replacement.

    For a monotone submodular reward on ``Subsets(k)``, [MirzasoleimanEtAl2015]_, with
    :math:`a = 1 - 1/e - \epsilon`:

    .. math:: E[r(A; q)] \ge a \max_{A'} r(A'; q)

    This holds in expectation, not with certainty. As r is at most the optimum, Markov's inequality turns it into
    :math:`P(r \ge \alpha\,r_{\max}) \ge (a - \alpha)/(1 - \alpha)` for every :math:`\alpha < a`; ``guarantee`` states
    the pair with the largest product, :math:`\alpha = \beta = 1 - \sqrt{1 - a}`, and ``expected_alpha`` states a.
    Differs: here the gains of all arms are computed at once, so that it saves no time; it is a baseline for research.

    Parameters
    ----------
    epsilon
        The loss in a; the number of arms considered per step grows with the logarithm of its inverse.

    Examples
    --------
    >>> StochasticGreedy(0.1).expected_alpha()
    0.5321205588285577
    """

    epsilon: float = 0.05

    def check(self) -> None:
        self.require("epsilon", 0.0 < self.epsilon < GREEDY, "give a number in (0, 1 - 1/e)")

    def maximize(self, problem: Problem, q: Floats, view: View) -> Ints:
        reward, states = problem.reward, problem.reward.empty_states(problem, len(view))
        left = view.eligible.sum(1, keepdims=True) - view.pinned.shape[1]
        n_drawn = np.ceil(left / max(1, problem.k - view.pinned.shape[1]) * math.log(1.0 / self.epsilon))
        numbers = iter(uniform(view.keys, view.t, np.arange(problem.n_arms), problem.k).transpose(2, 0, 1))

        def pick(allowed: Bools) -> Ints:
            order = np.where(allowed, next(numbers), np.inf).argsort(1).argsort(1)
            gains = np.where(allowed & (order < n_drawn), reward.gains(problem, states, q), -np.inf)
            return best_arms(gains, view.counts)

        return pick_arms(problem.actions, view, pick, lambda arm: problem.support.join(states, q, arm, reward.join))

    def expected_alpha(self) -> float:
        """The share of the optimum that is reached in expectation."""
        return GREEDY - self.epsilon

    def guarantee(self, problem: Problem) -> Guarantee:
        if not (problem.reward.submodular and problem.actions.uniform):
            return Guarantee(0.0)
        share = 1.0 - math.sqrt(1.0 - self.expected_alpha())
        return share_of_optimum(problem, share, share)

    def validate(self, problem: Problem) -> None:
        right = problem.reward.submodular and problem.actions.uniform
        self.needs(right, "a submodular reward on Subsets", "take Greedy()")
