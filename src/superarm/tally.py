r"""Tallies: the sufficient statistics of all observations, additive and exact.

Outcomes and their squares are rounded to multiples of :math:`2^{-24}`; float64 sums of such numbers are exact
up to :math:`2^{29}` observations. So a tally does not depend on the order of its observations, tallies are merged by
addition, feedback is undone by subtraction, and a live state, its replay and any merge of partial tallies agree bit for
bit.
"""

import math
from typing import NamedTuple

import numpy as np

from superarm._jit import inlined, kernel, lean
from superarm.arrays import Bools, Floats, Ints
from superarm.intake import Intake, take
from superarm.moments import Moments, merge_moments, record_moments, round_to_grid
from superarm.streams import Stream, seek
from superarm.support import Dense, Support, size, span


class Tally(NamedTuple):
    r"""The sufficient statistics of all observations.

    Parameters
    ----------
    pulls
        :math:`N_j`, how often each arm was observed, (n_arms,).
    total, square
        :math:`\sum X_{ij}` and :math:`\sum X_{ij}^2` of each entry, (n_entries,).
    missed
        In how many pulls of its arm each entry was not seen, (n_entries,); empty while everything was seen.
    joint
        How the items of an arm vary together, (3 n_arms,): of each arm, the number of pulls of which every entry was
        seen, and the sums of :math:`\bar X_j` and :math:`\bar X_j^2` over them, where :math:`\bar X_j` is the average
        over the arm's entries. Empty if it was not recorded.
    reference, moments, products
        The parts of :class:`superarm.moments.Moments`, for policies that ask for them; empty otherwise.
    """

    pulls: Floats
    total: Floats
    square: Floats
    missed: Floats
    joint: Floats = np.zeros(0)
    reference: Floats = np.zeros(0)
    moments: Floats = np.zeros(0)
    products: Floats = np.zeros(0)


class Feedback(NamedTuple):
    """The feedback to one action: ``outcome`` and ``seen`` are flat, one row per arm in the order of ``action``.

    ``action`` are the arms that the rows belong to: those of the batch or, if arms are triggered, those observed.
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
    """The same tally with an array for ``missed``, so that it can record feedback in which entries were not seen."""
    return tally if tally.missed.size else tally._replace(missed=np.zeros_like(tally.total))


@lean
def record(tally: Tally, support: Support, feedback: Feedback, intake: Intake, stream: Stream, sign: float) -> None:
    """Add feedback to the tally in place (``sign=1.0``), or take it back (``sign=-1.0``).

    A tally without ``missed`` takes everything as seen; see ``allow_missing``. An arm of which nothing was seen was
    played, but not observed: no pull is counted for it.
    """
    # local names: a store through the tuple would count references
    pulls, _, _, missed, joint, reference, moments, products = tally
    partial = missed.size > 0
    at = 0
    for j in feedback.action:
        seek(stream, feedback.t, j)
        pulls[j] += sign
        first, last = span(support, j)
        complete = _add_seen(tally, feedback, intake, stream, sign, (first, at, last - first))
        if complete and last > first and joint.size > 0:
            seek(stream, feedback.t, j)
            average = round_to_grid(_add_up(feedback, intake, stream, at, last - first) / (last - first))
            joint[3 * j] += sign
            joint[3 * j + 1] += sign * average
            joint[3 * j + 2] += sign * round_to_grid(average * average)
        if complete and moments.size > 0:
            record_moments(Moments(reference, moments, products), len(pulls), support, j, feedback.outcome, at, sign)
        if partial and not _any_seen(feedback.seen, at, last - first):
            pulls[j] -= sign
            for e in range(first, last):
                missed[e] -= sign
        at += last - first


@inlined
def _add_seen(
    tally: Tally, feedback: Feedback, intake: Intake, stream: Stream, sign: float, row: tuple[int, int, int]
) -> bool:
    """Add what was seen of one arm; whether it was everything.

    ``row`` holds the first entry of the arm, the place of its outcomes in the feedback, and how many there are.
    """
    total, square, missed, outcome, seen = tally.total, tally.square, tally.missed, feedback.outcome, feedback.seen
    entry, place, n = np.uint64(row[0]), np.uint64(row[1]), np.uint64(row[2])
    complete = True
    if missed.size == 0:  # a loop without conditions and sums, so that it runs in vector registers
        for o in range(n):
            x = round_to_grid(take(intake, outcome[place + o], stream))
            total[entry + o] += sign * x
            square[entry + o] += sign * round_to_grid(x * x)
        return complete
    for o in range(n):
        x = round_to_grid(take(intake, outcome[place + o], stream))
        if seen[place + o]:
            total[entry + o] += sign * x
            square[entry + o] += sign * round_to_grid(x * x)
        else:
            missed[entry + o] += sign
            complete = False
    return complete


@inlined
def _add_up(feedback: Feedback, intake: Intake, stream: Stream, at: int, n: int) -> float:
    """The sum of the ``n`` recorded outcomes from ``at`` on."""
    outcome, place, arm_total = feedback.outcome, np.uint64(at), 0.0
    for o in range(np.uint64(n)):
        arm_total += round_to_grid(take(intake, outcome[place + o], stream))
    return arm_total


@lean
def _any_seen(seen: Bools, at: int, n: int) -> bool:
    """Whether any of the ``n`` entries from ``at`` on was seen; true for an arm without entries."""
    for o in range(n):
        if seen[at + o]:
            return True
    return n == 0


@lean
def missed_count(tally: Tally, entry: int) -> float:
    """In how many pulls of its arm ``entry`` was not seen."""
    return tally.missed[entry] if tally.missed.size > 0 else 0.0


@lean
def seen_count(tally: Tally, arm: int, entry: int) -> float:
    """How often ``entry`` of ``arm`` was seen."""
    return tally.pulls[arm] - missed_count(tally, entry)  # type: ignore[no-any-return]


@lean
def most_missed(tally: Tally, support: Support, arm: int) -> float:
    """In how many pulls of ``arm`` the entry that was seen least was not seen."""
    most = 0.0
    if tally.missed.size > 0:
        first, last = span(support, arm)
        for e in range(first, last):
            most = max(most, tally.missed[e])
    return most


@lean
def estimate(tally: Tally, support: Support, arm: int, mean: Floats, deviation: Floats) -> None:
    r"""Compute :math:`\hat p_{ij}` and :math:`\sqrt{\hat V_{ij}}` of one arm's entries, in place; 0 if never seen.

    .. math:: \hat p = \frac{1}{N}\sum X, \qquad \hat V = \max\{0,\ \frac{1}{N}\sum X^2 - \hat p^2\}

    Implements [MerlisMannor2019]_ (section Preliminaries); the clamp at 0 guards against cancellation.
    """
    first, last = span(support, arm)
    total, square, partial = tally.total, tally.square, tally.missed.size > 0
    entry, width = np.uint64(first), np.uint64(last - first)
    pulls, differ = tally.pulls[arm], 0
    for o in range(width):
        differ += total[entry + o] != square[entry + o]
    if differ == 0 and not partial:  # binary outcomes: one division less, which is what takes longest
        pulls = pulls if pulls > 0.0 else 1.0
        for o in range(width):
            m = total[entry + o] / pulls
            mean[entry + o] = m
            deviation[entry + o] = math.sqrt(max(0.0, m - m * m))
        return
    for o in range(width):
        n = pulls - tally.missed[entry + o] if partial else pulls
        n = n if n > 0.0 else 1.0  # where nothing was seen, both sums are 0
        m = total[entry + o] / n
        mean[entry + o] = m
        deviation[entry + o] = math.sqrt(max(0.0, square[entry + o] / n - m * m))


def estimates(tally: Tally, support: Support) -> tuple[Floats, Floats]:
    """Mean and variance of every entry, flat.

    >>> from superarm.past_data import from_data
    >>> from superarm.support import Dense
    >>> data = from_data(Dense(1, 1), [0, 0, 0, 0], [[1], [0], [0], [1]])
    >>> [float(x[0]) for x in estimates(data, Dense(1, 1))]
    [0.5, 0.25]
    """
    mean, deviation = np.empty_like(tally.total), np.empty_like(tally.total)
    for j in range(support.n_arms):
        estimate(tally, support, j, mean, deviation)
    return mean, deviation**2


def known_estimates(tally: Tally, support: Support) -> tuple[Floats, Floats]:
    """Mean and variance of every entry, (n_arms, n_items) or flat if sparse; NaN for entries that were never seen."""
    counts = np.concatenate([np.full(_width(support, j), tally.pulls[j]) for j in range(support.n_arms)])
    seen = counts - tally.missed > 0.0 if tally.missed.size else counts > 0.0
    mean, variance = estimates(tally, support)
    shape = (support.n_arms, support.n_items) if isinstance(support, Dense) else (-1,)
    return np.where(seen, mean, np.nan).reshape(shape), np.where(seen, variance, np.nan).reshape(shape)


def _width(support: Support, arm: int) -> int:
    first, last = span(support, arm)
    return int(last - first)


def merge(a: Tally, b: Tally) -> Tally:
    """Add two tallies; exact, commutative and associative."""
    if a.missed.size or b.missed.size:
        a, b = allow_missing(a), allow_missing(b)
    if a.joint.size != b.joint.size:
        a, b = (one if one.joint.size else one._replace(joint=np.zeros(3 * one.pulls.size)) for one in (a, b))
    moments = merge_moments(moments_of(a), moments_of(b))
    sums = [x + y for x, y in zip((*a[:5], *a[8:]), (*b[:5], *b[8:]), strict=True)]
    merged: Tally = type(a)._make([*sums[:5], *moments, *sums[5:]])
    return merged


@kernel
def moments_of(tally: Tally) -> Moments:
    """The moments that a tally holds; empty ones if it holds none."""
    return Moments(tally.reference, tally.moments, tally.products)


def with_moments(tally: Tally, moments: Moments) -> Tally:
    """The tally with other moments."""
    return tally._replace(reference=moments.reference, moments=moments.values, products=moments.products)
