"""Thresholds: scores in units of their own as items, so that ``Coverage`` is the worth of the best score."""

from dataclasses import InitVar
from functools import cached_property
from typing import Any

import numpy as np

from superarm.core.arrays import HUGE, Floats, count, floats
from superarm.core.component import Component, shorten
from superarm.core.errors import InvalidArgument

SPREAD = 100.0
"""Past scores that range over more than so many interquartile ranges get edges at their quantiles."""


class Thresholds(Component):
    r"""A scale of scores, cut into bins: a set of arms is worth the best of its scores, :math:`E \max_{j \in A} X_j`.

    With edges :math:`e_0 < \dots < e_m` a score becomes one number for each bin, the part of it that lies below the
    score, and the best score follows from the largest of them:

    .. math:: y_{ij} = \min\{1, \max\{0, (X_j - e_{i-1})/w_i\}\}, \qquad
              \max_j X_j = e_0 + \sum_i w_i \max_j y_{ij}, \qquad w_i = e_i - e_{i-1}

    ``Coverage`` with these weights claims :math:`e_0 + \sum_i w_i(1 - \prod_j (1 - E y_{ij}))`. For one arm this is its
    mean. For independent arms it is never too little, and too much by at most
    :math:`\sum_i w_i c_k P(\text{two arms end in bin } i \text{, none above})`, where :math:`c_2 = 1/4` and
    :math:`c_k < 1`: the error falls with the square of the number of bins. Scores beyond the ends count as the ends.

    Parameters
    ----------
    low, high
        The lowest and the highest score; the bins between them have one width.
    bins
        How many bins there are between ``low`` and ``high``: 10 are enough, 20 claim at most 0.5 % too much.
    utility
        What a best score is worth: an increasing function of scores, or its values at the edges; between edges it is
        interpolated. By default a score is worth itself.
    edges
        The edges of the bins, increasing, in place of ``low``, ``high`` and ``bins``. Two edges are one threshold.

    Examples
    --------
    >>> marks = Thresholds(0, 10, bins=5)
    >>> marks.encode([7.0, 1.0]).tolist()
    [[1.0, 1.0, 1.0, 0.5, 0.0], [0.5, 0.0, 0.0, 0.0, 0.0]]
    >>> marks.decode(marks.encode([7.0, 1.0])).tolist()
    [7.0, 1.0]
    >>> Thresholds(edges=[0, 60, 100], utility=[0, 1, 1])  # it is enough to reach 60
    Thresholds(edges=[0.0, 60.0, 100.0], utility=[0.0, 1.0, 1.0])
    """

    low: InitVar[Any] = None
    high: InitVar[Any] = None
    bins: InitVar[int] = 20
    utility: Any = None
    edges: Any = None

    def __post_init__(self, low: Any, high: Any, bins: int) -> None:  # type: ignore[override]
        if self.edges is None:
            if low is None or high is None:
                raise InvalidArgument("edges", "missing", "give low and high, or edges", "Thresholds")
            ends, bins = floats([low, high], "low and high", low=-HUGE, high=HUGE), count(bins, "bins", 1, "Thresholds")
            if not ends[0] < ends[1]:
                raise InvalidArgument("low", f"{ends[0]:g}, and high is {ends[1]:g}", "give low < high", "Thresholds")
            self.convert("edges", np.linspace(ends[0], ends[1], bins + 1))
        elif low is not None or high is not None:
            raise InvalidArgument("edges", "given beside low or high", "give one or the other", "Thresholds")
        super().__post_init__()

    def check(self) -> None:
        edges = floats(self.edges, "edges", low=-HUGE, high=HUGE)
        if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0.0).all():
            raise InvalidArgument("edges", shorten(f"{edges.tolist()}"), "give two or more increasing numbers")
        self.convert("edges", edges)
        if self.utility is not None:
            given = [self.utility(x) for x in edges.tolist()] if callable(self.utility) else self.utility
            values = floats(given, "utility", low=-HUGE, high=HUGE)
            if values.shape != edges.shape or (np.diff(values) < 0.0).any() or values[0] == values[-1]:
                remedy = f"give an increasing function, or its values at the {len(edges)} edges"
                raise InvalidArgument("utility", shorten(f"{values.tolist()}"), remedy, "Thresholds")
            self.convert("utility", values)

    def __repr__(self) -> str:
        even = np.array_equal(self.edges, np.linspace(self.edges[0], self.edges[-1], len(self.edges)))
        bins = "" if len(self) == 20 else f", bins={len(self)}"
        given = f"{self.edges[0]:g}, {self.edges[-1]:g}{bins}" if even else f"edges={shorten(str(self.edges.tolist()))}"
        worth = "" if self.utility is None else f", utility={shorten(str(self.utility.tolist()))}"
        return f"Thresholds({given}{worth})"

    def __len__(self) -> int:
        return len(self.edges) - 1

    @classmethod
    def fit(cls, past: Any, bins: int = 20, utility: Any = None) -> "Thresholds":
        """A scale for scores like those of the past: their range, and an interquartile range beyond each end.

        Bins have one width, unless the range is more than 100 interquartile ranges: then edges are quantiles.

        >>> Thresholds.fit([50.0, 60.0, 70.0, 80.0])
        Thresholds(35, 95)
        """
        given = np.array(past, float).reshape(-1)
        scores = floats(given[~np.isnan(given)], "past", low=-HUGE, high=HUGE)
        if not len(scores) or scores.min() == scores.max():
            raise InvalidArgument("past", "there are no two different scores", "give low and high", "Thresholds")
        low, first, third, high = np.quantile(scores, [0.0, 0.25, 0.75, 1.0])
        beyond = third - first or high - low
        if high - low <= SPREAD * beyond:
            return cls(low - beyond, high + beyond, bins, utility)
        inside = np.quantile(scores, np.linspace(0.0, 1.0, bins - 1))
        return cls(edges=np.unique([low - beyond, *inside, high + beyond]), utility=utility)

    @cached_property
    def worth(self) -> Floats:
        """What a best score at each edge is worth."""
        return self.edges if self.utility is None else self.utility

    @property
    def floor(self) -> float:
        """What a set is worth of which no score exceeds the first edge."""
        return float(self.worth[0])

    @property
    def weights(self) -> Floats:
        """The weight of each bin: how much its upper edge is worth more than its lower one."""
        return np.diff(self.worth)

    def encode(self, scores: Any) -> Floats:
        """The parts of bins below scores (…,): (…, bins), in [0, 1] and decreasing; NaN where a score is."""
        part = (np.asarray(scores, float)[..., None] - self.edges[:-1]) / np.diff(self.edges)
        return np.clip(part, 0.0, 1.0)

    def decode(self, parts: Any) -> Floats:
        """The scores (…,) of parts of bins (…, bins), or mean scores of their means."""
        return self.edges[0] + np.asarray(parts, float) @ np.diff(self.edges)

    def value(self, scores: Any) -> Floats:
        """What best scores (…,) are worth; beyond the ends, as much as the ends."""
        return np.interp(scores, self.edges, self.worth)
