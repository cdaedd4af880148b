from typing import NamedTuple

import numpy as np

from superarm._jit import component, inlined, interpreted, lean
from superarm.actions import Subsets, capacity
from superarm.arrays import Bools, Floats, Ints
from superarm.indices import Index
from superarm.intake import Intake
from superarm.noise import Noise
from superarm.oracles import Greedy, Guarantee, LazyGreedy, Oracle
from superarm.policies.base import Moment
from superarm.policies.order import Order, fill_in_order, order, place, play_off
from superarm.policies.popular import Popular, limit, look, popular, promise
from superarm.policies.rating import Estimates, Glance, estimated, rate_arm
from superarm.problem import Problem
from superarm.rewards import absorb, forget, fresh, gain
from superarm.rewards.base import has_slope
from superarm.support import Sparse, span
from superarm.tally import Feedback, Tally, estimate, record

_SLACK = 1.0 + 1e-9
"""Scores grow with t and gains shrink with the batch, up to rounding; a bound times this holds in floating point."""

_MANY = 1_000
"""Arms from which on carrying bounds pays."""

_SHORTEST = 16
"""The fewest rounds that bounds are made for."""

_FEW = 128
"""Arms that a pick takes from the top of the tournament one by one; when they are more, it sweeps over all."""

_SEEDS = 2
"""Blocks that a sweep begins with: those that promise most."""

_BLOCK = 16
"""Neighbouring arms that a sweep passes over at once if none of them can win."""


class Carried(NamedTuple):
    """What a sparse sieve carries over rounds; all of it follows from the tally.

    ``hope`` (n_entries,) are the scores of round ``until`` (1,), and ``bound`` (n_arms,) is what an arm adds with them
    to the empty batch, times ``slack`` (n_arms,): 1 if all its scores are, else a little more; ``shared`` tells popular
    items apart. ``line`` orders the arms by pulls, ``podium`` by bound and then by pulls. ``now`` (n_arms,) is what an
    arm can add to the batch under construction while a round sweeps, or -1 if it may not join, and ``top`` (n_blocks,)
    the largest of a block. ``stamp`` (n_arms,) tells in which call, counted by ``calls`` (1,), an arm's exact scores
    were computed. ``memo`` (n_items,) is the state of the batch under construction ``chosen`` (k,), and that of the
    empty batch between rounds; ``touched`` (n_arms,) are the arms whose place on the podium is for this round only,
    ``n_touched`` (1,) how many; ``tried`` (n_arms,) is room for a pick's arms. ``stride`` (1,) is how far bounds look
    ahead, ``wasted`` (1,) how many evaluations they have cost at first picks; ``odd`` (1,) tells that the line is not
    the tally's.
    """

    estimates: Estimates
    hope: Floats
    shared: Popular
    slack: Floats
    bound: Floats
    now: Floats
    top: Floats
    line: Order
    podium: Order
    stamp: Ints
    memo: Floats
    chosen: Ints
    touched: Ints
    tried: Ints
    n_touched: Ints
    calls: Ints
    until: Ints
    stride: Ints
    wasted: Ints
    odd: Bools


@component
class SparseSieve(NamedTuple):
    r"""An index policy with greedy picks that looks only at arms that could win, for sparse supports.

    What an arm adds to the empty batch at a later round :math:`t'` bounds what it adds to any batch until then. Bounds
    stand in a tournament; a round evaluates arms from the top of it while their bound reaches the best exact gain, and
    no work depends on the number of arms or items. Where arms share popular items, later picks find that most bounds
    promise too much; then they sweep over all arms, block by block, with bounds that tell popular items apart
    (:mod:`superarm.policies.popular`). Bounds are made anew when :math:`t'` has passed, or when evaluations beyond the
    batch have cost as much as making them (as in the ski-rental problem); :math:`t'` moves away in the first case,
    unless a quarter of that was spent, and closer in the second. [MerlisMannor2019]_ (Algorithm 1) with an oracle after
    [Minoux1978]_ whose bounds are carried over rounds.
    """

    confidence: Index
    oracle: Oracle
    intake: Intake

    def prepare(self, problem: Problem, tally: Tally) -> Carried:
        one = np.zeros(1, np.int64)
        return Carried(
            estimated(problem, tally),
            np.ones(len(tally.total)),
            popular(problem),
            np.ones(problem.n_arms),
            np.full(problem.n_arms, np.inf),
            np.full(problem.n_arms, np.inf),
            np.full((problem.n_arms + _BLOCK - 1) // _BLOCK, np.inf),
            order(tally.pulls, np.zeros(problem.n_arms)),
            order(np.zeros(problem.n_arms), tally.pulls),
            np.zeros(problem.n_arms, np.int64),
            fresh(problem.reward, problem.terms),
            np.full(capacity(problem.actions, problem.n_arms), -1),
            np.zeros(problem.n_arms, np.int64),
            np.zeros(problem.n_arms, np.int64),
            one.copy(),
            one.copy(),
            one.copy(),
            one + _SHORTEST,
            one.copy(),
            np.zeros(1, np.bool_),
        )

    def choose(self, problem: Problem, moment: Moment, memory: Carried, noise: Noise) -> Ints:
        return memory.chosen[: _assemble(self.confidence, problem, moment, memory, noise)].copy()

    def learn(
        self, problem: Problem, tally: Tally, memory: Carried, feedback: Feedback, noise: Noise, sign: float
    ) -> None:
        record(tally, problem.terms.support, feedback, self.intake, noise, sign)
        _revise(self.confidence, problem, tally, memory, feedback.action, noise)

    @interpreted
    def fit(self, problem: Problem) -> "SparseSieve":
        return self

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


def sieves_sparse(confidence: Index, oracle: Oracle, problem: Problem) -> bool:
    """Whether a sparse sieve decides as the plain policy does, and pays."""
    same = getattr(confidence, "monotone", False) and isinstance(oracle, Greedy | LazyGreedy)
    fits = isinstance(problem.actions, Subsets) and isinstance(problem.support, Sparse)
    return bool(same and fits and has_slope(problem.reward) and problem.n_arms >= _MANY)


@lean
def _revise(confidence: Index, problem: Problem, tally: Tally, memory: Carried, action: Ints, noise: Noise) -> None:
    """Bring estimates and places of the arms of ``action`` up to date."""
    for j in action:
        estimate(tally, problem.terms.support, j, memory.estimates.mean, memory.estimates.deviation)
        place(memory.line, j, tally.pulls[j], 0.0)
        if memory.until[0] > 0:
            _bound(confidence, problem, tally, memory, j, noise)
            place(memory.podium, j, -memory.bound[j], tally.pulls[j])


@lean
def _assemble(confidence: Index, problem: Problem, moment: Moment, memory: Carried, noise: Noise) -> int:
    """Write the batch to play into ``memory.chosen``; its size."""
    line, podium, chosen = memory.line, memory.podium, memory.chosen
    _align(memory, moment)
    size = 0
    if line.key[line.winner[1]] > 0.0:
        if moment.t > memory.until[0] or 2 * memory.wasted[0] > problem.n_arms:
            _look_ahead(confidence, problem, moment, memory, noise)
        memory.calls[0] += 1
        few, swept = True, False
        while size < len(chosen) and line.key[line.winner[1]] < np.inf:
            best = -1
            if few:
                best, few = _pick(confidence, problem, moment, memory, noise)
            if not few:
                if not swept:
                    _lay_out(memory, moment)
                    swept = True
                best = _sweep(confidence, problem, moment, memory, noise)
            if size == 0:  # later picks also waste evaluations on overlap, which new bounds would not mend
                memory.wasted[0] += memory.n_touched[0] - 1
            if best < 0:
                break
            absorb(problem.reward, problem.terms, memory.memo, memory.estimates.q, best)
            chosen[size] = best
            size += 1
            place(line, best, np.inf, 0.0)
            place(podium, best, np.inf, 0.0)
            memory.now[best] = -1.0
        forget(problem.reward, problem.terms, memory.memo, chosen[:size])
    size = fill_in_order(line, chosen, size)
    chosen[size:] = -1
    return size


@lean
def _align(memory: Carried, moment: Moment) -> None:
    """Let both tournaments be those of ``moment.ranks``, with the bounds that were carried."""
    ranks, touched, chosen = moment.ranks, memory.touched, memory.chosen
    eligible = 0
    for j in range(len(ranks.eligible)):
        eligible += ranks.eligible[j]
    odd = eligible < len(ranks.eligible) or ranks.pulls is not moment.tally.pulls
    if odd or memory.odd[0]:
        for j in range(len(ranks.pulls)):
            _stand(memory, moment, j)
    else:
        for j in chosen:
            if j >= 0:
                _stand(memory, moment, j)
        for n in range(memory.n_touched[0]):
            _stand(memory, moment, touched[n])
    memory.n_touched[0] = 0
    memory.odd[0] = odd


@inlined
def _stand(memory: Carried, moment: Moment, arm: int) -> None:
    pulls, here = moment.ranks.pulls[arm], moment.ranks.eligible[arm]
    place(memory.line, arm, pulls if here else np.inf, 0.0)
    place(memory.podium, arm, -memory.bound[arm] if here else np.inf, pulls)


@lean
def _lay_out(memory: Carried, moment: Moment) -> None:
    """Begin to sweep: let ``now`` and ``top`` be the bounds of all arms that may still join."""
    now, top, line = memory.now, memory.top, memory.line
    top[:] = -1.0
    for j in range(len(now)):
        now[j] = memory.bound[j] if line.key[j] < np.inf else -1.0
        top[j // _BLOCK] = max(top[j // _BLOCK], now[j])


@lean
def _look_ahead(confidence: Index, problem: Problem, moment: Moment, memory: Carried, noise: Noise) -> None:
    """Bound what every arm can add for some rounds to come."""
    t, stride = moment.t, memory.stride
    if memory.until[0] == 0:
        stride[0] = max(_SHORTEST, t // 2048)
    elif 2 * memory.wasted[0] > problem.n_arms:
        stride[0] = max(_SHORTEST, stride[0] // 2)
    elif 8 * memory.wasted[0] < problem.n_arms:
        stride[0] = min(max(_SHORTEST, t // 8), 2 * stride[0])
    memory.until[0] = t + stride[0]
    memory.wasted[0] = 0
    ranks, podium = moment.ranks, memory.podium
    for j in range(problem.n_arms):
        _bound(confidence, problem, moment.tally, memory, j, noise)
        podium.key[j] = -memory.bound[j] if ranks.eligible[j] else np.inf
        podium.rank[j] = ranks.pulls[j]
    play_off(podium)


@inlined
def _bound(confidence: Index, problem: Problem, tally: Tally, memory: Carried, arm: int, noise: Noise) -> None:
    """What ``arm`` can add until ``memory.until``; to the last bit if all its scores are 1, else a little more."""
    hope, bound, slack = memory.hope, memory.bound, memory.slack
    later = Estimates(memory.estimates.mean, memory.estimates.deviation, hope)
    rate_arm(confidence, problem, tally, later, Glance(arm, tally.pulls[arm], memory.until[0], 1.0), noise)
    first, last = span(problem.terms.support, arm)
    least = 1.0
    for o in range(np.uint64(last - first)):
        least = min(least, hope[np.uint64(first) + o])
    slack[arm] = 1.0 if least >= 1.0 else _SLACK
    bound[arm] = gain(problem.reward, problem.terms, memory.memo, hope, arm) * slack[arm]
    promise(problem, memory.shared, hope, arm)


@lean
def _pick(confidence: Index, problem: Problem, moment: Moment, memory: Carried, noise: Noise) -> tuple[int, bool]:
    """The open arm with the largest gain, first in line among equals, or -1 if all gains are 0.

    If too many arms could have it, the podium is left without those tried, and the answer is False: a sweep goes on.
    """
    podium, tried, now, pulls = memory.podium, memory.tried, memory.now, moment.ranks.pulls
    best, most, n = -1, 0.0, 0
    while n < _FEW:
        j = podium.winner[1]
        limit = -podium.key[j]
        if limit <= 0.0 or limit < most or (limit == most and not _first(pulls, j, best)):
            break
        g = _gain(confidence, problem, moment, memory, j, noise)
        now[j] = g * _SLACK
        tried[n] = j
        n += 1
        place(podium, j, np.inf, 0.0)
        if g > most or (g == most and _first(pulls, j, best)):
            best, most = j, g
    if n == _FEW:
        return -1, False
    for at in range(n):
        j = tried[at]
        place(podium, j, -now[j], pulls[j])
    return best if most > 0.0 else -1, True


@lean
def _sweep(confidence: Index, problem: Problem, moment: Moment, memory: Carried, noise: Noise) -> int:
    """The same by passes over blocks of arms; from now on the podium is not looked at in this round."""
    now, top, pulls = memory.now, memory.top, moment.ranks.pulls
    best, most = -1, 0.0
    look(problem, memory.shared, memory.memo)
    for n in range(_SEEDS + len(top)):
        block = int(np.argmax(top)) if n < _SEEDS else n - _SEEDS  # good arms first, so that few others are looked at
        if top[block] <= 0.0 or top[block] < most:
            continue
        high = -1.0
        for j in range(block * _BLOCK, min((block + 1) * _BLOCK, len(now))):
            if now[j] > 0.0 and (now[j] > most or (now[j] == most and _first(pulls, j, best))):
                now[j] = _limit(problem, memory, j, most)
                if now[j] > most or (now[j] == most and _first(pulls, j, best)):
                    g = _gain(confidence, problem, moment, memory, j, noise)
                    now[j] = g * _SLACK
                    if g > most or (g == most and _first(pulls, j, best)):
                        best, most = j, g
            high = max(high, now[j])
        top[block] = high
    return best


@inlined
def _first(pulls: Floats, arm: int, best: int) -> bool:
    """Whether ``arm`` stands before ``best`` in line."""
    return best < 0 or pulls[arm] < pulls[best] or (pulls[arm] == pulls[best] and arm < best)


@inlined
def _limit(problem: Problem, memory: Carried, arm: int, most: float) -> float:
    """What ``arm`` can add to the batch under construction: roughly if that is below ``most``, else closely."""
    if memory.stamp[arm] == memory.calls[0]:
        return gain(problem.reward, problem.terms, memory.memo, memory.estimates.q, arm)
    roughly = limit(memory.shared, arm)
    if roughly < most:
        return roughly
    return float(gain(problem.reward, problem.terms, memory.memo, memory.hope, arm) * memory.slack[arm])


@inlined
def _gain(confidence: Index, problem: Problem, moment: Moment, memory: Carried, arm: int, noise: Noise) -> float:
    """The exact gain, from exact scores that are computed once a call."""
    estimates, stamp, touched, count = memory.estimates, memory.stamp, memory.touched, memory.n_touched
    if stamp[arm] != memory.calls[0]:
        stamp[arm] = memory.calls[0]
        touched[count[0]] = arm
        count[0] += 1
        glance = Glance(arm, moment.ranks.pulls[arm], moment.t, 1.0)
        rate_arm(confidence, problem, moment.tally, estimates, glance, noise)
    return gain(problem.reward, problem.terms, memory.memo, estimates.q, arm)
