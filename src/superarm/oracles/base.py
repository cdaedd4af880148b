"""A good batch for given parameters."""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from superarm._jit import verb
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.problem import Problem
from superarm.streams import Stream, new_stream


class Guarantee(NamedTuple):
    r"""An oracle's promise: with probability ``beta``, at least ``alpha`` times the optimum.

    ``alpha=0`` promises nothing. Implements [MerlisMannor2019]_ (section Preliminaries,
    :math:`(\alpha, \beta)` approximation oracle).
    """

    alpha: float
    beta: float


GREEDY = 1.0 - 1.0 / math.e


class Oracle(Protocol):
    """A good batch for given parameters."""

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        """Arms in the order of picking; equal gains are decided by ``candidates``. ``q`` is (n_entries,)."""
        ...

    def guarantee(self, problem: Problem) -> Guarantee:
        """What the oracle promises on this problem."""
        ...

    def fit(self, problem: Problem) -> "Oracle":
        """The oracle made ready for this problem."""
        ...


class OracleHooks(Protocol):
    """What an oracle may define beyond :class:`Oracle`; ``traits`` has the default."""

    @property
    def ranking(self) -> bool:
        """Whether it only ranks arms, so that parameters may be any numbers, as of an index that is not clipped."""
        ...


maximize = verb(Oracle.maximize)


def solve(problem: Problem, p: Any, oracle: Oracle, seed: int = 0) -> Ints:
    """The batch that ``oracle`` finds for the parameters ``p`` (n_arms, n_items).

    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=3, n_items=2, reward=sa.Coverage(), actions=sa.Subsets(2))
    >>> solve(problem, [[0.9, 0.0], [0.8, 0.0], [0.0, 0.5]], sa.Greedy())
    array([0, 2])
    """
    stream = new_stream(np.random.SeedSequence(seed))
    return maximize(oracle.fit(problem), problem, problem.entries(p), problem.candidates(), stream)
