"""Thompson sampling with one random number per round for all entries."""

from typing import Any

import numpy as np

from superarm.core import streams
from superarm.core.arrays import Floats, Ints
from superarm.core.tally import View
from superarm.oracles.base import Guarantee, Oracle
from superarm.oracles.default import Default
from superarm.policies.base import Policy, try_every_arm
from superarm.policies.memory import Memory
from superarm.problem import Problem


class SingleSeed(Policy[Memory]):
    r"""CTS3: Thompson sampling whose Gaussian samples of all entries come from one number :math:`Z_t` per round.

    .. math:: q_{ij}(t) = \min\Bigl\{1, \max\Bigl\{0, \hat p_{ij} + \frac{scale\,Z_t}{\sqrt{N_j + 1}}\Bigr\}\Bigr\},
              \qquad Z_t \sim N(0, 1), \qquad A_t = Oracle(q(t))

    While an arm has no pull, a batch that contains one is played. An entry that was never seen, though its arm was
    pulled, scores 1. After CTS3, [JinEtAl2026]_, whose theorem is for exact oracles, and holds with dependent outcomes,
    too.

    Differs: ``scale`` is 1 in the paper; 1/2 is the standard deviation of a sub-Gaussian bound of outcomes in [0, 1].

    Parameters
    ----------
    scale
        The standard deviation of a sample after no pull.
    oracle
        The algorithm that finds a batch for the samples.
    """

    scale: float = 0.5
    random = True
    oracle: Oracle = Default()
    caveat = "One number per round decides all scores: it explores as if all entries erred together."

    def check(self) -> None:
        self.require("scale", 0.0 < self.scale < np.inf, "give a finite number > 0")
        self.require_family("oracle", Oracle, "Greedy()")

    def validate(self, problem: Problem) -> None:
        self.oracle.validate(problem)

    def scores(self, problem: Problem, view: View) -> Floats:
        """The samples of every entry."""
        tally = view.tally
        counts, unknown = tally.counts(view.counts), tally.unknown()
        z = streams.quantile(streams.move_inside(streams.shared_uniform(view.keys, view.t)))
        z = z.reshape(-1, *[1] * (tally.mean.ndim - 1))
        known = counts if unknown is None else np.where(unknown, 1.0, counts)
        q: Any = np.clip(tally.mean + self.scale * z / np.sqrt(known + 1.0), 0.0, 1.0)
        return q if unknown is None else np.where(unknown, 1.0, q)

    def choose(self, problem: Problem, view: View, memory: Memory) -> Ints:
        return try_every_arm(problem, view, lambda: self.oracle.maximize(problem, self.scores(problem, view), view))

    def estimates(self, problem: Problem, view: View, memory: Memory) -> tuple[Floats, Floats]:
        return view.tally.mean, self.scores(problem, view)

    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)
