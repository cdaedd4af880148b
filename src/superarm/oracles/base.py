"""The family of oracles: algorithms that find a good batch for given parameters."""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from superarm._jit import allocating, verb
from superarm.arrays import Bools, Floats, Ints
from superarm.candidates import Candidates
from superarm.problem import Problem
from superarm.streams import Stream, new_stream


class Guarantee(NamedTuple):
    r"""What an oracle guarantees: with probability ``beta``, at least ``alpha`` times the optimum.

    ``alpha=0`` guarantees nothing. Implements [MerlisMannor2019]_ (section Preliminaries,
    :math:`(\alpha, \beta)` approximation oracle).
    """

    alpha: float
    beta: float


GREEDY = 1.0 - 1.0 / math.e
"""The limit of :func:`greedy_alpha` for large batches."""


def greedy_alpha(k: int) -> float:
    r"""The alpha of greedy for a monotone submodular reward on ``Subsets(k)``, [NemhauserWolseyFisher1978]_.

    .. math:: \alpha_k = 1 - (1 - 1/k)^k > 1 - 1/e

    It falls as k grows, and is 1 for batches of one arm. With some arms pinned, greedy chooses fewer than k.

    >>> [round(greedy_alpha(k), 3) for k in (1, 2, 3, 5)], round(GREEDY, 3)
    ([1.0, 0.75, 0.704, 0.672], 0.632)
    """
    return 1.0 - (1.0 - 1.0 / k) ** k


class Oracle(Protocol):
    """An algorithm that finds a good batch for given parameters."""

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        """A good batch at ``q`` (n_entries,), arms in the order of picking; ties are broken by ``candidates``."""
        ...

    def guarantee(self, problem: Problem) -> Guarantee:
        """What the oracle guarantees on this problem."""
        ...

    def fit(self, problem: Problem) -> "Oracle":
        """The oracle prepared for this problem; ``InvalidArgument`` if it does not apply."""
        ...


class BatchBuffer(NamedTuple):
    """Buffers for a batch: ``chosen`` (k,), the ``states`` of the items (n_items,), and which arms are ``taken``."""

    chosen: Ints
    states: Floats
    taken: Bools


class OracleHooks(Protocol):
    """What an oracle may define beyond :class:`Oracle`; ``traits`` has the default."""

    def maximize_into(
        self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream, batch: BatchBuffer
    ) -> int:
        """As ``maximize``; writes the batch into ``batch.chosen`` and returns its size, so that no array is made."""
        ...

    @property
    def ranking(self) -> bool:
        """Whether it only ranks arms, so that parameters may be any numbers, as of an index that is not clipped."""
        ...

    @property
    def greedy(self) -> bool:
        """Whether it picks the arms that ``Greedy`` picks, ties included."""
        ...


maximize = verb(Oracle.maximize)


@allocating
def _maximize_and_copy(
    oracle: Any, problem: Problem, q: Floats, candidates: Candidates, stream: Stream, batch: BatchBuffer
) -> int:
    action, chosen = maximize(oracle, problem, q, candidates, stream), batch.chosen
    for n in range(len(action)):
        chosen[n] = action[n]
    return len(action)


maximize_into: verb[..., int] = verb(OracleHooks.maximize_into, default=_maximize_and_copy, allocates=True)


def solve(problem: Problem, p: Any, oracle: Oracle, seed: int = 0) -> Ints:
    """Find a batch for known parameters.

    Parameters
    ----------
    problem
        Arms, items, reward and action set.
    p
        The parameters, (n_arms, n_items).
    oracle
        The algorithm.
    seed
        For oracles that draw random numbers.

    Returns
    -------
    The arms of the batch, in the order in which the oracle picked them.

    Examples
    --------
    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=3, n_items=2, reward=sa.Coverage(), actions=sa.Subsets(2))
    >>> solve(problem, [[0.9, 0.0], [0.8, 0.0], [0.0, 0.5]], sa.Greedy())
    array([0, 2])
    """
    stream = new_stream(np.random.SeedSequence(seed))
    return maximize(oracle.fit(problem), problem, problem.entries(p), problem.candidates(), stream)
