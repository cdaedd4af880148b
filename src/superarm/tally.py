r"""The sufficient statistics: pulls, sums and sums of squares, of entries and of whole arms, additive and exact.

Outcomes and their squares are rounded to multiples of :math:`2^{-24}`; float64 sums of such numbers are exact
up to :math:`2^{29}` observations. So a tally does not depend on the order of its observations, ``merge`` is +,
undoing is -, and live state, replay and any merge of workers agree bit for bit.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from superarm import arrays
from superarm._jit import inlined, lean
from superarm.arrays import Bools, Floats, Ints
from superarm.errors import InvalidArgument
from superarm.intake import Exact, Intake, take
from superarm.streams import Stream, new_stream, seek
from superarm.support import Support, size, span

GRID = 16777216.0
"""Outcomes are recorded as multiples of 1 / GRID = 2**-24."""


class Tally(NamedTuple):
    r"""What was observed so far.

    ``pulls`` (n_arms,) is :math:`N_j`, how often an arm was observed; ``total`` and ``square`` (n_entries,) are
    :math:`\sum X_{ij}` and :math:`\sum X_{ij}^2`; ``missed`` (n_entries,) counts the pulls of which this entry was not
    seen, and is empty while everything was seen, as in the paper. ``joint`` (3 n_arms,) tells how the items of an arm
    go together: of each arm the pulls that were seen whole, and the sums of :math:`\bar X_j` and :math:`\bar X_j^2`
    over them, where :math:`\bar X_j` is the average over the arm's entries; empty if that was not recorded.
    """

    pulls: Floats
    total: Floats
    square: Floats
    missed: Floats
    joint: Floats = np.zeros(0)


class Feedback(NamedTuple):
    """The answer to one action: outcome and seen lie flat, row after row in the order of ``action``.

    ``action`` are the arms that the rows belong to: those of the batch, or, where arms are triggered, those observed.
    """

    t: int
    action: Ints
    outcome: Floats
    seen: Bools


def empty(support: Support) -> Tally:
    """A tally of nothing.

    >>> from superarm.support import Dense
    >>> empty(Dense(2, 3)).total.shape
    (6,)
    """
    entries = size(support)
    return Tally(
        np.zeros(support.n_arms), np.zeros(entries), np.zeros(entries), np.zeros(0), np.zeros(3 * support.n_arms)
    )


def allow_missing(tally: Tally) -> Tally:
    """The same tally, ready to record feedback of which some entries were not seen."""
    return tally if tally.missed.size else tally._replace(missed=np.zeros_like(tally.total))


@lean
def record(tally: Tally, support: Support, feedback: Feedback, intake: Intake, stream: Stream, sign: float) -> None:
    """Add (``sign=1.0``) one answer to the tally in place, or take it back (``sign=-1.0``).

    A tally without ``missed`` takes everything as seen; ``allow_missing`` makes room for what was not. An arm of which
    nothing was seen was played, but not observed: it counts no pull, and stays unsampled if it was.
    """
    pulls, total, square, missed, joint = tally  # bound once: a store through the tuple counts references
    partial = missed.size > 0
    at = 0
    for j in feedback.action:
        seek(stream, feedback.t, j)
        pulls[j] += sign
        first, last = span(support, j)
        entry, place = np.uint64(first), np.uint64(at)
        whole, together = True, 0.0
        for o in range(np.uint64(last - first)):
            x = _on_grid(take(intake, feedback.outcome[place + o], stream))
            if partial and not feedback.seen[place + o]:
                missed[entry + o] += sign
                whole = False
            else:
                total[entry + o] += sign * x
                square[entry + o] += sign * _on_grid(x * x)
                together += x
        if whole and last > first and joint.size > 0:
            average = _on_grid(together / (last - first))
            joint[3 * j] += sign
            joint[3 * j + 1] += sign * average
            joint[3 * j + 2] += sign * _on_grid(average * average)
        if partial and not _observed(feedback.seen, at, last - first):
            pulls[j] -= sign
            for e in range(first, last):
                missed[e] -= sign
        at += last - first


@lean
def _observed(seen: Bools, at: int, n: int) -> bool:
    """Whether anything was seen of the ``n`` entries from ``at`` on; of an arm without entries, always."""
    for o in range(n):
        if seen[at + o]:
            return True
    return n == 0


@inlined
def _on_grid(x: float) -> float:
    return math.floor(x * GRID + 0.5) / GRID


@lean
def missed_count(tally: Tally, entry: int) -> float:
    """Of how many pulls of its arm ``entry`` was not seen."""
    return tally.missed[entry] if tally.missed.size > 0 else 0.0


@lean
def seen_count(tally: Tally, arm: int, entry: int) -> float:
    """How often ``entry`` of ``arm`` was seen."""
    return tally.pulls[arm] - missed_count(tally, entry)  # type: ignore[no-any-return]


@lean
def most_missed(tally: Tally, support: Support, arm: int) -> float:
    """Of how many pulls of ``arm`` its least seen entry was not seen."""
    most = 0.0
    if tally.missed.size > 0:
        first, last = span(support, arm)
        for e in range(first, last):
            most = max(most, tally.missed[e])
    return most


@lean
def estimate(tally: Tally, support: Support, arm: int, mean: Floats, deviation: Floats) -> None:
    r"""Write :math:`\hat p_{ij}` and :math:`\sqrt{\hat V_{ij}}` of one arm's entries; 0 where nothing was seen.

    .. math:: \hat p = \frac{1}{N}\sum X, \qquad \hat V = \max\{0,\ \frac{1}{N}\sum X^2 - \hat p^2\}

    Implements [MerlisMannor2019]_ (section Preliminaries); the clamp at 0 guards against cancellation.
    """
    first, last = span(support, arm)
    partial = tally.missed.size > 0
    entry = np.uint64(first)
    for o in range(np.uint64(last - first)):
        n = tally.pulls[arm] - tally.missed[entry + o] if partial else tally.pulls[arm]
        n = n if n > 0.0 else 1.0  # where nothing was seen, both sums are 0
        m = tally.total[entry + o] / n
        mean[entry + o] = m
        deviation[entry + o] = math.sqrt(max(0.0, tally.square[entry + o] / n - m * m))


def estimates(tally: Tally, support: Support) -> tuple[Floats, Floats]:
    """Mean and variance of every entry, flat.

    >>> from superarm.support import Dense
    >>> data = from_data(Dense(1, 1), [0, 0, 0, 0], [[1], [0], [0], [1]])
    >>> [float(x[0]) for x in estimates(data, Dense(1, 1))]
    [0.5, 0.25]
    """
    mean, deviation = np.empty_like(tally.total), np.empty_like(tally.total)
    for j in range(support.n_arms):
        estimate(tally, support, j, mean, deviation)
    return mean, deviation**2


def merge(a: Tally, b: Tally) -> Tally:
    """The tally of both: exact, commutative and associative."""
    if a.missed.size or b.missed.size:
        a, b = allow_missing(a), allow_missing(b)
    if a.joint.size != b.joint.size:
        a, b = (one if one.joint.size else one._replace(joint=np.zeros(3 * one.pulls.size)) for one in (a, b))
    return Tally(*(x + y for x, y in zip(a, b, strict=True)))


def from_data(support: Support, arms: Any, outcomes: Any, seen: Any = None) -> Tally:
    """The tally of past observations, one row an observation of one arm, for a warm start.

    ``arms`` is (n,), ``outcomes`` (n, n_items) in [0, 1] and ``seen`` likewise, boolean; with a sparse support a
    row holds the arm's entries, so ``outcomes`` is a list of rows.
    """
    tally = allow_missing(empty(support)) if seen is not None else empty(support)
    rows = list(outcomes)
    marks = [np.ones(np.shape(row), bool) for row in rows] if seen is None else list(seen)
    for name, given in (("outcomes", rows), ("seen", marks)):
        if len(given) != len(arms):
            raise InvalidArgument(name, f"{len(given)} rows for {len(arms)} arms", "give one row an arm")
    unused = new_stream(np.random.SeedSequence(0))
    for j, row, mark in zip(arms, rows, marks, strict=True):
        action = _arm(j, support.n_arms)
        first, last = span(support, int(action[0]))
        for name, shape in (("outcomes", np.shape(row)), ("seen", np.shape(mark))):
            if shape != (last - first,):
                raise InvalidArgument(name, f"a row has shape {shape}", f"arm {j} has {last - first} entries")
        seen_here = np.asarray(mark, bool)
        outcome = arrays.floats(np.where(seen_here, row, 0.0), "outcomes", low=0.0, high=1.0)
        record(tally, support, Feedback(0, action, outcome, seen_here), Exact(), unused, 1.0)
    return tally


def _arm(j: Any, n_arms: int) -> Ints:
    return arrays.arms([j], "arms", n_arms)


def from_prior(support: Support, mean: Any, strength: float) -> Tally:
    """The tally of ``strength`` imagined binary observations of each arm with the given means.

    ``mean`` is (n_arms, n_items), or the flat entries of a sparse support.

    >>> from superarm.support import Dense
    >>> from_prior(Dense(1, 2), [[0.5, 0.25]], 8).total
    array([4., 2.])
    """
    p = arrays.probabilities(mean, "mean").reshape(-1)
    if p.size != size(support):
        raise InvalidArgument("mean", f"{p.size} values", f"the problem has {size(support)} entries")
    whole = isinstance(strength, int | float | np.number) and 0 < strength < 2**29 and strength == int(strength)
    if not whole:
        raise InvalidArgument("strength", f"{strength!r}", "give a whole number of observations, at least 1")
    total = np.floor(p * strength * GRID + 0.5) / GRID
    return empty(support)._replace(pulls=np.full(support.n_arms, float(strength)), total=total, square=total.copy())
