r"""The sums of regression models: additive and exact, as tallies are.

An observation with weight w, features :math:`\phi` and outcome X adds :math:`w\,\phi\phi^\top` and :math:`w\,\phi X`.
Weights are multiples of 1/4, features of :math:`2^{-10}` and outcomes of :math:`2^{-12}`, so the sums are multiples of
:math:`2^{-24}`: float64 sums of them are exact while the weights of a parameter vector's observations add up to less
than :math:`2^{29}` (130,000 observations of the largest weight, 4096; 130 million of the weight 4 that unweighted
regression uses). Logistic models have weights of at most 1/4 that are multiples of :math:`2^{-12}`, and add
:math:`\phi\,(X + shift)` in place of the response; their sums are exact up to 8 million observations of weight 1/4.

So the sums do not depend on the order of observations, are merged by addition and undone by subtraction, and it does
not matter how a matrix product adds them up.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.next.context.context import Contexts
from superarm.next.context.design import Design, design_of, places
from superarm.next.context.models import ALL, ENTRIES, LogisticModel
from superarm.next.core.support import AnySupport, Dense
from superarm.next.core.tally import Feedback, Tally

if TYPE_CHECKING:
    from superarm.next.context.frames import Frames
    from superarm.next.core.problem import Problem

UNWEIGHTED = 4.0
"""The weight of an observation of which only its range is known: 1 / (1/4), the largest variance in [0, 1]."""

MAX_WEIGHT = 4096.0
"""The largest weight of an observation: variances below 1/4096 count as that."""

_OUTCOME_GRID = 4096.0
_RESPONSE_GRID = 2.0**24


def round_weight(variance: Any) -> Any:
    """The weight of an observation with that variance: 1 / variance, rounded down to a multiple of 1/4."""
    return np.floor(4.0 * np.minimum(MAX_WEIGHT, 1.0 / np.maximum(variance, 1.0 / MAX_WEIGHT))) / 4.0


def round_share(weight: Any) -> Any:
    """The nearest multiple of 1/4, at least 1/4."""
    return np.maximum(1.0, np.floor(4.0 * weight + 0.5)) / 4.0


def round_outcome(outcome: Any) -> Any:
    """The outcome as regressions record it: the nearest multiple of 2**-12."""
    return np.floor(outcome * _OUTCOME_GRID + 0.5) / _OUTCOME_GRID


def triangle(d: int) -> int:
    """How many numbers the lower triangle of a d by d matrix has."""
    return d * (d + 1) // 2


class RegressionSums:
    r"""The sums of a regression, of R replications: the ``moments`` of a tally.

    ``precision`` (R, n_groups, d (d + 1) / 2) is :math:`\sum w\,\phi\phi^\top` of each parameter vector, its lower
    triangle by rows, and ``response`` (R, n_groups, d) is :math:`\sum w\,\phi X`. Parameter vectors of entries are
    numbered arm after arm. Both are what a stored state holds, and with standardised features also ``by_frame``, the
    same sums of each frame; ``precision`` and ``response`` then follow from them.
    """

    def __init__(self, design: Design, support: AnySupport, replications: int, grid: float = 0.0) -> None:
        groups = design.n_groups(support)
        self.design, self.support = design, support
        self.precision = np.zeros((replications, groups, triangle(design.d)))
        self.response = np.zeros((replications, groups, design.d))
        self.grid = grid
        """What precisions that are carried to another frame are rounded to; 0 without standardised features."""
        self.present, self.maps = 0, np.zeros((0, 0, 2))
        self.by_frame: dict[int, tuple[Floats, Floats]] = {}

    def record(self, feedback: Feedback, sign: float = 1.0) -> None:
        """Add the observations of feedback (``sign=1.0``), or take them back; those of weight 0 are left out."""
        given: Contexts = feedback.context
        if given is None or given.weights is None:
            return
        weight = given.weights if feedback.seen is None else np.where(feedback.seen, given.weights, 0.0)
        x = round_outcome(feedback.outcome)
        share = weight * x if given.shifts is None else np.where(weight > 0.0, x + given.shifts, 0.0)
        late = bool(self.grid) and given.frame != self.present
        if not late:
            sums = (self.precision, self.response)
            add_observations(*sums, self.design, self.support, feedback.action, given, sign * weight, sign * share)
        if self.grid:
            sums = self.by_frame.setdefault(given.frame, (np.zeros_like(self.precision), np.zeros_like(self.response)))
            add_observations(*sums, self.design, self.support, feedback.action, given, sign * weight, sign * share)
        if late:
            self._carry()

    def begin(self, frames: "Frames") -> None:
        """Carry the sums of all frames to the present one of ``frames``."""
        self.present, self.maps = frames.frame.version, frames.user_maps()
        self._carry()

    def _carry(self) -> None:
        self.precision, self.response = np.zeros_like(self.precision), np.zeros_like(self.response)
        rows, columns = np.tril_indices(self.design.d)
        for version, (precision, response) in sorted(self.by_frame.items()):
            matrix = np.eye(self.design.d)
            self.design.map_frame(matrix, self.maps[version])  # row n is what becomes of coordinate n
            full = unpack(precision, self.design.d)
            carried = (matrix.T @ full @ matrix)[..., rows, columns]
            self.precision += np.floor(carried * self.grid + 0.5) / self.grid
            self.response += np.floor(response @ matrix * _RESPONSE_GRID + 0.5) / _RESPONSE_GRID

    def add(self, other: "RegressionSums", sign: float = 1.0) -> None:
        """Add the sums of another tally, or take them away; exact, in any order."""
        self.precision += sign * other.precision
        self.response += sign * other.response
        for version, sums in other.by_frame.items():
            own = self.by_frame.setdefault(version, (np.zeros_like(self.precision), np.zeros_like(self.response)))
            own[0][...] += sign * sums[0]
            own[1][...] += sign * sums[1]

    def like(self) -> "RegressionSums":
        """Empty sums of the same kind."""
        return RegressionSums(self.design, self.support, len(self.precision), self.grid)

    def grown(self, support: AnySupport, design: Design | None = None) -> "RegressionSums":
        """The same sums for more arms or items after those there are; with features of arms, ``design`` is needed."""
        design = self.design if design is None else design
        new = RegressionSums(design, support, len(self.precision), self.grid)
        new.present, new.maps = self.present, self.maps
        own = {-1: (self.precision, self.response)}
        for version, (precision, response) in (self.by_frame | own).items():
            grown = grow_groups(precision, triangle(design.d), self, new), grow_groups(response, design.d, self, new)
            if version in self.by_frame:
                new.by_frame[version] = grown
            else:
                new.precision, new.response = grown
        return new


def grow_groups(values: Floats, columns: int, before: RegressionSums, after: RegressionSums) -> Floats:
    """Numbers of every parameter vector, (R, n_groups, columns) on a larger problem: what is new is 0, at the end."""
    more = (0, columns - values.shape[2])
    old, new = before.support, after.support
    if before.design.sharing == ENTRIES and isinstance(old, Dense):
        table = values.reshape(len(values), old.n_arms, old.n_items, -1)
        grown = np.pad(table, ((0, 0), (0, new.n_arms - old.n_arms), (0, new.n_items - old.n_items), more))
        return grown.reshape(len(values), -1, columns)
    groups = after.design.n_groups(new) - values.shape[1]
    return np.pad(values, ((0, 0), (0, groups), more))


def unpack(triangles: Floats, d: int) -> Floats:
    """The symmetric matrices (…, d, d) of lower triangles (…, d (d + 1) / 2)."""
    rows, columns = np.tril_indices(d)
    full = np.empty((*triangles.shape[:-1], d, d))
    full[..., rows, columns] = triangles
    full[..., columns, rows] = triangles
    return full


def add_observations(
    precision: Floats,
    response: Floats | None,
    design: Design,
    support: AnySupport,
    action: Ints,
    given: Contexts,
    weight: Floats,
    share: Floats,
) -> None:
    r"""Add :math:`weight\,\phi\phi^\top` and :math:`share\,\phi` of the entries of ``action`` (R, K), in place.

    ``weight`` and ``share`` are (R, K, widest), signs included.
    """
    there = places(support, action)
    replications = np.arange(len(action))[:, None]
    pair = given.pairs[replications, action]
    phi = design.with_items(design.own_features(given.x[:, None], action, pair)[:, :, None], there.items)
    weight, share = np.where(there.there, weight, 0.0), np.where(there.there, share, 0.0)
    if design.sharing == ALL:
        group, cells = np.zeros((len(action), 1), np.int64), (len(action), 1, -1)
    elif design.sharing == ENTRIES:
        group = np.where(there.there, there.entries, -1).reshape(len(action), -1)
        cells = (*group.shape, 1)
    else:
        group, cells = action, (*action.shape, -1)
    phi, weight, share = phi.reshape(*cells, design.d), weight.reshape(cells), share.reshape(cells)
    r, cell = np.nonzero(group >= 0)
    g, rows, columns = group[r, cell], *np.tril_indices(design.d)
    phi, weight, share = phi[r, cell], weight[r, cell], share[r, cell]
    precision[r, g] += (np.swapaxes(phi * weight[..., None], 1, 2) @ phi)[:, rows, columns]
    if response is not None:
        response[r, g] += (phi * share[..., None]).sum(1)


def add_precision(
    precision: Floats, design: Design, support: AnySupport, action: Ints, given: Contexts, sign: float
) -> None:
    """Add the precision that decisions will have once all of their entries are seen; for pending decisions."""
    if given.weights is not None:
        add_observations(
            precision, None, design, support, action, given, sign * given.weights, np.zeros_like(given.weights)
        )


def new_context_tally(problem: "Problem", replications: int, partial: bool = False) -> Tally:
    """A tally of no observations for a problem with a context.

    With segments it has a row for every replication and segment, those of a replication one after the other; with a
    regression its moments are the sums.
    """
    context = problem.context
    if not context.dimension(problem.n_items):
        return Tally(problem.support, replications * context.n_segments, partial)
    grid = 0.0
    if context.features.standardised:
        grid = 2.0**32 if isinstance(context.model, LogisticModel) else 2.0**22
    sums = RegressionSums(design_of(problem), problem.support, replications, grid)
    return Tally(problem.support, replications, partial, sums)
