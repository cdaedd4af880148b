r"""Branch and bound over the subsets of k arms: the values next to a target, with a certificate.

A node is a batch under construction, A, that shall take m more arms from those behind it in a fixed order. Every
completion is worth at most

.. math:: U = \min\Bigl\{\sum_i w_i\, r_i(A + m \text{ largest } p_{ij}),\
          r(A; p) + \text{the sum of the } m \text{ largest gains}\Bigr\}

where every item takes its own m arms, and where the second bound serves submodular rewards only
[NemhauserWolseyFisher1978]_; and at least :math:`\sum_i w_i\, r_i(A + m \text{ smallest } p_{ij})`. Both need nothing
but monotonicity, which [MerlisMannor2019]_ (definition of monotone Gini-smooth rewards) requires.
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


class Field(NamedTuple):
    """What a search reads: reward and parameters, arms in ``order``, and the ranked parameters behind each place.

    ``large[c, i, n]`` is the n-th largest parameter of item i among ``order[c:]``, ``small`` the n-th smallest.
    """

    reward: Reward
    terms: Terms
    p: Floats
    order: Ints
    large: Floats
    small: Floats
    submodular: bool


class Ledger(NamedTuple):
    """What a search writes: ``best`` (3,): the largest value below the ceiling, the smallest value, the slack;
    ``batches`` (2, k) that attain them; ``work`` (2,): the nodes visited, and the most allowed.
    """

    best: Floats
    batches: Ints
    work: Ints


def field(problem: Problem, p: Floats) -> Field:
    """A problem made ready for the search, arms in the order of what each is worth alone."""
    reward, terms = problem.reward, problem.terms
    start = initial_states(reward, terms)
    alone = np.array([gain(reward, terms, start, p, j) for j in range(problem.n_arms)])
    order = np.argsort(-alone, kind="stable").astype(np.int64)
    dense = np.zeros((problem.n_arms, problem.n_items))
    for j in range(problem.n_arms):
        first, last = span(terms.support, j)
        for o in range(last - first):
            dense[j, item(terms.support, first, o)] = p[first + o]
    large, small = _ranked(dense[order], problem.k)
    return Field(reward, terms, p, order, large, small, bool(reward.submodular))


def _ranked(rows: Floats, k: int) -> tuple[Floats, Floats]:
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
def _itemwise(field: Field, states: Floats, ranked: Floats, m: int) -> float:
    """The worth of a batch in state ``states`` after every item has taken the first ``m`` of its ``ranked``."""
    r = 0.0
    for i in range(len(states)):
        state = states[i]
        for n in range(m):
            state = join(field.reward, state, ranked[i, n])
        r += worth(field.reward, field.terms.weights[i], state)
    return r


@kernel
def _gainwise(field: Field, states: Floats, c: int, m: int, forced: int) -> float:
    """The worth of a batch in state ``states`` plus the ``m`` largest gains among ``order[c:]``."""
    top = np.zeros(m)
    for place in range(c, len(field.order)):
        if field.order[place] == forced:
            continue
        g = gain(field.reward, field.terms, states, field.p, field.order[place])
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
def _promising(field: Field, ledger: Ledger, ceiling: float, states: Floats, node: Ints) -> bool:
    """Whether a completion of the node could beat the ledger; ``node`` is (place in the order, arms to add, forced).

    It could if it may lie above the best value found below the ceiling without all lying above the ceiling, or
    below the smallest value found.
    """
    c, m, forced = node[0], node[1], node[2]
    slack = ledger.best[2]
    least = _itemwise(field, states, field.small[c], m)
    if least < ledger.best[1] - slack:
        return True
    if least >= ceiling:
        return False
    if _itemwise(field, states, field.large[c], m) <= ledger.best[0] + slack:
        return False
    if m == 1 or not field.submodular:  # with one arm to add, trying all is as cheap as bounding them
        return True
    return bool(_gainwise(field, states, c, m, forced) > ledger.best[0] + slack)


@kernel
def _note(ledger: Ledger, ceiling: float, r: float, chosen: Ints) -> None:
    if r < ceiling and r > ledger.best[0]:
        ledger.best[0] = r
        ledger.batches[0] = chosen
    if r < ledger.best[1]:
        ledger.best[1] = r
        ledger.batches[1] = chosen


@kernel
def descend(field: Field, forced: int) -> float:
    """The value of the batch that grows from ``forced`` by the smallest gain each time: where a search may begin."""
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
def search(field: Field, ceiling: float, forced: int, ledger: Ledger) -> bool:
    """Visit every batch of k arms with arm ``forced`` (none if -1) that could beat the ledger; whether all were.

    Depth first; ``place[s]`` is the place in the order of the arm chosen at depth ``s``. False if the allowance of
    ``ledger.work`` ran out: then the ledger holds what was found, and proves nothing.
    """
    k, n_arms = field.large.shape[2], len(field.order)
    states = np.empty((k + 1, len(field.terms.weights)))
    states[0] = initial_states(field.reward, field.terms)
    chosen, place, node = np.empty(k, np.int64), np.empty(k + 1, np.int64), np.empty(3, np.int64)
    first = 0
    if forced >= 0:
        chosen[0] = forced
        states[1] = states[0]
        join_arm(field.reward, field.terms, states[1], field.p, forced)
        first = 1
    depth = first
    place[depth] = -1
    if first == k:
        _note(ledger, ceiling, value_of_states(field.reward, field.terms, states[k]), chosen)
        return True
    while depth >= first:
        place[depth] += 1
        if place[depth] < n_arms and field.order[place[depth]] == forced:
            place[depth] += 1
        if n_arms - place[depth] < k - depth:
            depth -= 1
            continue
        j = field.order[place[depth]]
        chosen[depth] = j
        states[depth + 1] = states[depth]
        join_arm(field.reward, field.terms, states[depth + 1], field.p, j)
        ledger.work[0] += 1
        if depth + 1 == k:
            _note(ledger, ceiling, value_of_states(field.reward, field.terms, states[k]), chosen)
            continue
        if ledger.work[0] > ledger.work[1]:
            return False
        node[0], node[1], node[2] = place[depth] + 1, k - depth - 1, forced
        if _promising(field, ledger, ceiling, states[depth + 1], node):
            place[depth + 1] = place[depth]
            depth += 1
    return True


@kernel
def relaxation(field: Field, forced: int, ranked: Floats) -> float:
    """A bound of the value of every batch with arm ``forced`` (any if -1), each item taking its ``ranked`` arms."""
    states = initial_states(field.reward, field.terms)
    k = field.large.shape[2]
    if forced >= 0:
        join_arm(field.reward, field.terms, states, field.p, forced)
        k -= 1
    return _itemwise(field, states, ranked, k)
