"""Tallies of past observations and of prior beliefs, for a warm start."""

from typing import Any

import numpy as np

from superarm import arrays
from superarm.arrays import Ints
from superarm.errors import InvalidArgument
from superarm.intake import Exact
from superarm.labels import align, is_frame, numbered
from superarm.moments import GRID
from superarm.streams import new_stream
from superarm.support import Support, size, span
from superarm.tally import Feedback, Tally, allow_missing, empty, record


def from_data(support: Support, arms: Any, outcomes: Any, seen: Any = None) -> Tally:
    """Build the tally of past observations, for a warm start.

    Parameters
    ----------
    support
        The support of the problem.
    arms
        The arm of each observation, (n,).
    outcomes
        One row per observation, (n, n_items), in [0, 1]; with a sparse support a list of rows, each with the entries of
        its arm. The columns of a data frame that are labelled by the numbers of items are put into their order.
    seen
        Which outcomes were observed, in the same shape; all by default.
    """
    tally = allow_missing(empty(support)) if seen is not None else empty(support)
    if is_frame(outcomes) or is_frame(seen):
        outcomes, seen = align(outcomes, None, numbered("items", support.n_items), seen, "outcomes")
    rows = list(outcomes)
    marks = [np.ones(np.shape(row), bool) for row in rows] if seen is None else list(seen)
    for name, given in (("outcomes", rows), ("seen", marks)):
        if len(given) != len(arms):
            raise InvalidArgument(name, f"{len(given)} rows for {len(arms)} arms", "give one row per arm")
    unused = new_stream(np.random.SeedSequence(0))
    for j, row, mark in zip(arms, rows, marks, strict=True):
        action = _parse_arm(j, support.n_arms)
        first, last = span(support, int(action[0]))
        for name, shape in (("outcomes", np.shape(row)), ("seen", np.shape(mark))):
            if shape != (last - first,):
                raise InvalidArgument(name, f"a row has shape {shape}", f"arm {j} has {last - first} entries")
        seen_here = np.asarray(mark, bool)
        outcome = arrays.floats(np.where(seen_here, row, 0.0), "outcomes", low=0.0, high=1.0)
        record(tally, support, Feedback(0, action, outcome, seen_here), Exact(), unused, 1.0)
    return tally


def _parse_arm(j: Any, n_arms: int) -> Ints:
    return arrays.arms([j], "arms", n_arms)


def from_prior(support: Support, mean: Any, strength: float) -> Tally:
    """Build the tally of ``strength`` imagined binary observations of each arm with the given means.

    Parameters
    ----------
    support
        The support of the problem.
    mean
        The means, (n_arms, n_items), or the entries of a sparse support, (n_entries,).
    strength
        How many observations of each arm the prior counts for.

    Examples
    --------
    >>> from superarm.support import Dense
    >>> from_prior(Dense(1, 2), [[0.5, 0.25]], 8).total
    array([4., 2.])
    """
    p = arrays.probabilities(mean, "mean").reshape(-1)
    if p.size != size(support):
        raise InvalidArgument("mean", f"{p.size} values", f"the problem has {size(support)} entries")
    valid = isinstance(strength, int | float | np.number) and 0 < strength < 2**29 and strength == int(strength)
    if not valid:
        raise InvalidArgument("strength", f"{strength!r}", "give a whole number of observations, at least 1")
    total = np.floor(p * strength * GRID + 0.5) / GRID
    return empty(support)._replace(pulls=np.full(support.n_arms, float(strength)), total=total, square=total.copy())
