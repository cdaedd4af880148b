r"""Branch and bound over the subsets of k arms: the values closest to a target, with a proof that they are.

A node is an incomplete batch A, to which m more arms are added from those that come later in a fixed order. The value
of every completion is at most

.. math:: U = \min\Bigl\{\sum_i w_i\, r_i(A + m \text{ largest } p_{ij}),\
          r(A; p) + \text{the sum of the } m \text{ largest gains}\Bigr\}

where in the first bound every item has its own m arms, and where the second holds for submodular rewards only
[NemhauserWolseyFisher1978]_. It is at least :math:`\sum_i w_i\, r_i(A + m \text{ smallest } p_{ij})`. Both
bounds need only monotonicity, which [MerlisMannor2019]_ (definition of monotone Gini-smooth rewards) requires.
"""

from typing import NamedTuple

import numpy as np

from superarm._jit import kernel
from superarm.arrays import Floats, Ints
from superarm.problem import Problem
from superarm.rewards import Reward, Terms, gain, initial_states, join_arm, value_of_states
from superarm.rewards.base import join, worth
from superarm.support import item, span

ROUNDING = 1e-12
"""Values and bounds closer than this times the scale of the reward may be equal."""


class SearchProblem(NamedTuple):
    """What a search reads: reward, parameters, the ``order`` of arms, and the sorted parameters from each position on.

    ``large[c, i, n]`` is the n-th largest parameter of item i among ``order[c:]``, ``small`` the n-th smallest.
    """

    reward: Reward
    terms: Terms
    p: Floats
    order: Ints
    large: Floats
    small: Floats
    submodular: bool


class SearchRecord(NamedTuple):
    """What a search writes.

    ``best`` (3,) holds the largest value below the ceiling, the smallest value, and the tolerance of comparisons;
    ``batches`` (2, k) the batches with these two values; ``work`` (2,) the number of nodes visited and the limit.
    """

    best: Floats
    batches: Ints
    work: Ints


def prepare_search(problem: Problem, p: Floats) -> SearchProblem:
    """Prepare a problem for the search: arms are ordered by the value that each has alone."""
    reward, terms = problem.reward, problem.terms
    start = initial_states(reward, terms)
    alone = np.array([gain(reward, terms, start, p, j) for j in range(problem.n_arms)])
    order = np.argsort(-alone, kind="stable").astype(np.int64)
    dense = np.zeros((problem.n_arms, problem.n_items))
    for j in range(problem.n_arms):
        first, last = span(terms.support, j)
        for o in range(last - first):
            dense[j, item(terms.support, first, o)] = p[first + o]
    large, small = _sort_parameters(dense[order], problem.k)
    return SearchProblem(reward, terms, p, order, large, small, bool(reward.submodular))


def _sort_parameters(rows: Floats, k: int) -> tuple[Floats, Floats]:
    n_arms, n_items = rows.shape
    large = np.zeros((n_arms + 1, n_items, k))
    small = np.ones((n_arms + 1, n_items, k))
    for c in range(n_arms - 1, -1, -1):
        both = np.concatenate([large[c + 1], rows[c][:, None]], axis=1)
        large[c] = -np.sort(-both, axis=1)[:, :k]
        both = np.concatenate([small[c + 1], rows[c][:, None]], axis=1)
        small[c] = np.sort(both, axis=1)[:, :k]
    return large, small


@kernel
def _value_by_items(field: SearchProblem, states: Floats, ranked: Floats, m: int) -> float:
    """The value of a batch in state ``states`` after every item has taken its first ``m`` parameters in ``ranked``."""
    r = 0.0
    for i in range(len(states)):
        state = states[i]
        for n in range(m):
            state = join(field.reward, state, ranked[i, n])
        r += worth(field.reward, field.terms.weights[i], state)
    return r


@kernel
def _value_by_gains(field: SearchProblem, states: Floats, c: int, m: int, forced: int) -> float:
    """The value of a batch in state ``states`` plus the ``m`` largest gains among ``order[c:]``."""
    top = np.zeros(m)
    for position in range(c, len(field.order)):
        if field.order[position] == forced:
            continue
        g = gain(field.reward, field.terms, states, field.p, field.order[position])
        if g > top[m - 1]:
            n = m - 1
            while n > 0 and top[n - 1] < g:
                top[n] = top[n - 1]
                n -= 1
            top[n] = g
    r = value_of_states(field.reward, field.terms, states)
    for g in top:
        r += g
    return r


@kernel
def _can_improve(field: SearchProblem, record: SearchRecord, ceiling: float, states: Floats, node: Ints) -> bool:
    """Whether a completion of the node could improve the record; ``node`` is (position, arms to add, forced).

    It can if some completion may lie between the best value found below the ceiling and the ceiling, or below the
    smallest value found.
    """
    c, m, forced = node[0], node[1], node[2]
    slack = record.best[2]
    least = _value_by_items(field, states, field.small[c], m)
    if least < record.best[1] - slack:
        return True
    if least >= ceiling:
        return False
    if _value_by_items(field, states, field.large[c], m) <= record.best[0] + slack:
        return False
    if m == 1 or not field.submodular:  # with one arm to add, trying all of them costs no more than a bound
        return True
    return bool(_value_by_gains(field, states, c, m, forced) > record.best[0] + slack)


@kernel
def _update(record: SearchRecord, ceiling: float, r: float, chosen: Ints) -> None:
    if r < ceiling and r > record.best[0]:
        record.best[0] = r
        record.batches[0] = chosen
    if r < record.best[1]:
        record.best[1] = r
        record.batches[1] = chosen


@kernel
def descend(field: SearchProblem, forced: int) -> float:
    """The value of the batch that grows from ``forced`` by the smallest gain each time: a start for a search."""
    states = initial_states(field.reward, field.terms)
    taken = np.zeros(len(field.order), np.bool_)
    j = forced
    for size in range(field.large.shape[2]):
        if size > 0 or forced < 0:
            least = np.inf
            for other in range(len(taken)):
                if not taken[other]:
                    g = gain(field.reward, field.terms, states, field.p, other)
                    if g < least:
                        j, least = other, g
        join_arm(field.reward, field.terms, states, field.p, j)
        taken[j] = True
    return value_of_states(field.reward, field.terms, states)


@kernel
def _start(field: SearchProblem, forced: int, states: Floats, chosen: Ints) -> int:
    """Put arm ``forced`` (none if -1) into the empty batch; return how many arms the batch has."""
    states[0] = initial_states(field.reward, field.terms)
    if forced < 0:
        return 0
    chosen[0] = forced
    states[1] = states[0]
    join_arm(field.reward, field.terms, states[1], field.p, forced)
    return 1


@kernel
def search(field: SearchProblem, ceiling: float, forced: int, record: SearchRecord) -> bool:
    """Visit every batch of k arms with arm ``forced`` (any if -1) that could improve the record, depth first.

    Returns False if the limit of ``record.work`` was reached; the record then proves nothing. ``position[s]`` is the
    position in the order of the arm chosen at depth ``s``.
    """
    k, n_arms = field.large.shape[2], len(field.order)
    states = np.empty((k + 1, len(field.terms.weights)))
    chosen, position, node = np.empty(k, np.int64), np.empty(k + 1, np.int64), np.empty(3, np.int64)
    first = _start(field, forced, states, chosen)
    if first == k:
        _update(record, ceiling, value_of_states(field.reward, field.terms, states[k]), chosen)
        return True
    depth = first
    position[depth] = -1
    while depth >= first:
        position[depth] += 1
        if position[depth] < n_arms and field.order[position[depth]] == forced:
            position[depth] += 1
        if n_arms - position[depth] < k - depth:
            depth -= 1
            continue
        j = field.order[position[depth]]
        chosen[depth] = j
        states[depth + 1] = states[depth]
        join_arm(field.reward, field.terms, states[depth + 1], field.p, j)
        record.work[0] += 1
        if depth + 1 == k:
            _update(record, ceiling, value_of_states(field.reward, field.terms, states[k]), chosen)
            continue
        if record.work[0] > record.work[1]:
            return False
        node[0], node[1], node[2] = position[depth] + 1, k - depth - 1, forced
        if _can_improve(field, record, ceiling, states[depth + 1], node):
            position[depth + 1] = position[depth]
            depth += 1
    return True


@kernel
def relaxation(field: SearchProblem, forced: int, ranked: Floats) -> float:
    """A bound of the value of every batch with arm ``forced`` (any if -1), where each item has its ``ranked`` arms."""
    states = initial_states(field.reward, field.terms)
    k = field.large.shape[2]
    if forced >= 0:
        join_arm(field.reward, field.terms, states, field.p, forced)
        k -= 1
    return _value_by_items(field, states, ranked, k)
