"""Greedy algorithms: add the arm of the largest gain until none may join."""

import math
from typing import TYPE_CHECKING

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.next.actions.base import add_arms, new_batches, pins_are_eligible
from superarm.next.actions.subsets import Subsets
from superarm.next.core.ops import op
from superarm.next.core.streams import uniform
from superarm.next.core.support import Dense
from superarm.next.oracles.base import GREEDY, Guarantee, Oracle
from superarm.next.rewards import Coverage

if TYPE_CHECKING:
    from superarm.next.core.problem import Problem
    from superarm.next.core.tally import View


class Greedy(Oracle):
    r"""Add the arm with the largest marginal gain until no arm may join.

    .. math:: j_n \in \arg\max_{j \notin A_{n-1}} r(A_{n-1} \cup \{j\}; q)

    For a monotone submodular reward: :math:`\alpha = 1 - (1 - 1/k)^k` on ``Subsets(k)``, [NemhauserWolseyFisher1978]_,
    1/2 on a matroid, 1/(p + 1) on a p-system (1/3 on a ``Matching``), [FisherNemhauserWolsey1978]_; for a modular one
    exact on a matroid and 1/p on a p-system, [KorteHausmann1978]_; exact for a single item on a matroid. Implements
    [MerlisMannor2019]_ (section Algorithm). Equal gains go to the arm with the fewest pulls, then the lowest.
    """

    def maximize(self, problem: "Problem", q: Floats, view: "View") -> Ints:
        fused = type(problem.reward) is Coverage and type(problem.actions) is Subsets
        whole = len(q) == len(view) and pins_are_eligible(view)
        if fused and whole and isinstance(problem.support, Dense):
            out = new_batches(problem.actions, view)
            arguments = (q, problem.weights, view.counts, view.eligible, view.pinned.shape[1], out)
            op("greedy_coverage", q.size * problem.k)(*arguments)
            return out
        return greedy_by_steps(problem, q, view)

    def guarantee(self, problem: "Problem") -> Guarantee:
        """By the theorem that applies; alpha = 0 where none does.

        With a single item, gains are ordered as the parameters of the arms are, whatever was chosen before. On a
        matroid, greedy then finds a batch whose n-th largest parameter is, for every n, at least that of any other.
        """
        reward, actions, k = problem.reward, problem.actions, problem.k
        if not reward.additive:
            return Guarantee(0.0)
        if reward.modular:
            return Guarantee(1.0 / actions.exchange)
        if problem.n_items == 1 and actions.matroid:
            return Guarantee(1.0)
        if not (reward.submodular and reward.monotone):
            return Guarantee(0.0)
        return Guarantee(1.0 - (1.0 - 1.0 / k) ** k if actions.uniform else 1.0 / (1.0 + actions.exchange))


def greedy_by_steps(
    problem: "Problem", q: Floats, view: "View", out: Ints | None = None, costs: Floats | None = None
) -> Ints:
    """Greedy for any reward on any action set, from the batches ``out`` on; by gain per cost if ``costs`` are given."""
    reward, states = problem.reward, problem.reward.empty_states(problem, len(view))

    def gains() -> Floats:
        found = reward.gains(problem, states, q)
        return found if costs is None else found / costs

    def joined(arm: Ints) -> None:
        problem.support.join(states, q, arm, reward.join)

    return add_arms(problem.actions, view, gains, joined, out)


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

    def maximize(self, problem: "Problem", q: Floats, view: "View") -> Ints:
        reward, states = problem.reward, problem.reward.empty_states(problem, len(view))
        available, rows, step = view.eligible.copy(), np.arange(len(view)), 0
        np.put_along_axis(available, view.pinned, False, 1)
        places = problem.k - view.pinned.shape[1]
        n_drawn = np.ceil(available.sum(1) / max(1, places) * math.log(1.0 / self.epsilon))
        numbers = uniform(view.keys, view.t, np.arange(problem.n_arms), problem.k)

        def gains() -> Floats:
            order = np.where(available, numbers[:, :, step], np.inf).argsort(1).argsort(1)
            return np.where(order < n_drawn[:, None], reward.gains(problem, states, q), -np.inf)

        def joined(arm: Ints) -> None:
            nonlocal step
            problem.support.join(states, q, arm, reward.join)
            available[rows[arm >= 0], arm[arm >= 0]] = False
            step += 1

        return add_arms(problem.actions, view, gains, joined)

    def expected_alpha(self) -> float:
        """The share of the optimum that is reached in expectation."""
        return GREEDY - self.epsilon

    def guarantee(self, problem: "Problem") -> Guarantee:
        if not (problem.reward.submodular and problem.actions.uniform):
            return Guarantee(0.0)
        share = 1.0 - math.sqrt(1.0 - self.expected_alpha())
        return Guarantee(share, share)

    def validate(self, problem: "Problem") -> None:
        if not (problem.reward.submodular and problem.actions.uniform):
            wrong = "StochasticGreedy needs a submodular reward on Subsets"
            raise InvalidArgument("oracle", wrong, "take Greedy()")
