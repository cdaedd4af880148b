"""Shapes: Thompson sampling of the whole distributions of scores."""

from typing import Any

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.component import named
from superarm.core.errors import InvalidArgument
from superarm.core.ops import op
from superarm.core.streams import STEP, mix, states
from superarm.core.support import Dense
from superarm.core.tally import Tally, View
from superarm.oracles.base import Guarantee, Oracle
from superarm.oracles.default import Default
from superarm.policies.base import Policy
from superarm.policies.memory import Memory
from superarm.problem import Problem


class Shapes(Policy[Memory]):
    r"""Thompson sampling of the distribution of each arm's scores, from the tally on ``Thresholds``.

    The mass of bin b of arm j is what its scores put there, :math:`n_{jb} = S_{jb} - S_{j,b+1}` with :math:`S_{jb}` the
    sum of the parts of bin b and :math:`S_{j0} = N_j`: a score inside a bin counts in part for the bin below, so that
    means stay exact. Each decision draws one distribution for every arm, from a Dirichlet posterior:

    .. math:: g_{jb} \sim Gamma\bigl(\gamma(c\,m_b + n_{jb})\bigr), \qquad
              q_{ji} = \sum_{b \ge i} g_{jb} \Big/ \sum_b g_{jb}

    The prior :math:`m` is the pooled mass of all arms, of which a share ``even`` is spread evenly over the bins. Draws
    for each bin of its own, as those of other Thompson policies, average out over the bins of an arm: then it explores
    the less, the more bins there are. With one bin this is Beta Thompson sampling. After [RiouHonda2020]_, on a grid
    and for sets. No regret bound is known; :func:`superarm.policies.cucb` and ``kl_ucb`` have one.

    Parameters
    ----------
    strength
        How many scores of each arm the prior counts for, :math:`c`.
    sharpness
        How many times a score counts, :math:`\gamma`.
    even
        The share of the prior that is spread evenly.
    oracle
        The algorithm that finds a batch.
    """

    strength: float = 1.0
    sharpness: float = 2.0
    even: float = 0.1
    oracle: Oracle = Default()
    random = True
    caveat = "It assumes that the scores of one decision are independent; no regret bound is known for it."

    def check(self) -> None:
        self.require_family("oracle", Oracle, "Greedy()")
        for name in ("strength", "sharpness"):
            self.require(name, 0.0 < getattr(self, name) <= 1e6, "give a number > 0, at most 1e6")
        self.require("even", 0.0 < self.even <= 1.0, "give a share in (0, 1]")

    def validate(self, problem: Problem) -> None:
        self.oracle.validate(problem)
        if not isinstance(problem.support, Dense) or (problem.thresholds is None and problem.n_items > 1):
            remedy = "declare the scale of the scores: Problem(n_arms=…, items=Thresholds(0, 10), actions=…)"
            raise InvalidArgument("policy", "shapes needs scores, whose items are thresholds", remedy)

    def choose(self, problem: Problem, view: View, memory: Memory) -> Ints:
        return self.oracle.maximize(problem, self._draw(view, problem.actions.alike), view)

    def estimates(self, problem: Problem, view: View, memory: Memory) -> tuple[Floats, Floats]:
        return _above(self._masses(view.tally)), self._draw(view, problem.actions.alike)

    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)

    def _masses(self, tally: Tally) -> Floats:
        """The mass of every bin, that below the first edge included, with the prior: (R, 1 + n_items, n_arms)."""
        pulls = tally.pulls[:, None]
        parts = np.minimum(tally.mean * pulls, pulls)
        below = np.concatenate([pulls, parts], 1)
        own = np.maximum(below - np.concatenate([parts, np.zeros_like(pulls)], 1), 0.0)
        even, pooled = 1.0 / own.shape[1], np.cumsum(own, 2)[:, :, -1:]
        total = np.cumsum(pooled, 1)[:, -1:]
        prior = self.even * even + (1.0 - self.even) * (pooled + even) / (total + 1.0)
        return self.strength * prior + own

    def _draw(self, view: View, alike: Any) -> Floats:
        """One distribution for every arm, as the chances to reach each threshold: entries (R, n_items, n_arms)."""
        masses = self._masses(view.tally)
        if len(view) > len(masses):  # one tally for many views
            masses = np.repeat(masses, len(view), 0)
        steps = np.arange(1, masses.shape[1] + 1, dtype=np.uint64) * STEP
        arms = np.arange(masses.shape[2]) if alike is None else alike[:, 0]  # copies have one distribution
        own = mix(states(view.keys, view.t, arms)[:, None, :] + steps[:, None])
        shape, drawn = (self.sharpness * masses).reshape(-1), np.empty(masses.size)
        op("gammas", 100 * drawn.size)(own.reshape(-1), shape, drawn)
        return _above(drawn.reshape(masses.shape))


def _above(masses: Floats) -> Floats:
    """The shares of masses of bins at and above each threshold; all equal where every mass has underflowed."""
    reached = np.cumsum(masses[:, ::-1], 1)[:, ::-1]
    total = reached[:, :1]
    return np.ascontiguousarray(np.where(total > 0.0, reached[:, 1:] / np.maximum(total, 1e-300), 0.5))


@named
def shapes(
    strength: float = 1.0,
    sharpness: float = 2.0,
    even: float = 0.1,
    oracle: Oracle = Default(),  # noqa: B008
) -> Shapes:
    """Thompson sampling of score distributions, the default where items are ``Thresholds``.

    See ``Shapes`` for the formulas; ``python -m dev.benchmarks.scores`` measures what it finds.

    >>> shapes().strength
    1.0
    """
    return Shapes(strength, sharpness, even, oracle)
