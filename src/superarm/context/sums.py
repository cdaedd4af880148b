r"""The sums of regression models: additive and exact, as tallies are.

An observation with weight w, features :math:`\phi` and outcome X adds :math:`w\,\phi\phi^\top` and :math:`w\,\phi X`.
Weights are multiples of 1/4, features of :math:`2^{-10}` and outcomes of :math:`2^{-12}`, so the sums are multiples of
:math:`2^{-24}`: float64 sums of them are exact while the weights of a parameter vector's observations add up to less
than :math:`2^{29}` (130,000 observations of the largest weight, 4096; 130 million of the weight 4 that unweighted
regression uses). Logistic models have weights of at most 1/4 that are multiples of :math:`2^{-12}`, and add
:math:`\phi\,(X + shift)` in place of the response; their sums are exact up to 8 million observations of weight 1/4.

So the sums do not depend on the order of observations, are merged by addition and undone by subtraction.
"""

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from superarm.context.context import Contexts
from superarm.context.design import Design, design_of, places
from superarm.context.frames import same_frames
from superarm.context.models import ENTRIES, LogisticModel
from superarm.core.arrays import Floats, Ints
from superarm.core.ops import op
from superarm.core.support import AnySupport, Dense
from superarm.core.tally import Feedback, Tally

if TYPE_CHECKING:
    from superarm.context.frames import Frames
    from superarm.problem import Problem

UNWEIGHTED = 4.0
"""The weight of an observation of which only its range is known: 1 / (1/4), the largest variance in [0, 1]."""

MAX_WEIGHT = 4096.0
"""The largest weight of an observation: variances below 1/4096 count as that."""

Layout = tuple[Design, AnySupport]
"""The layout of a problem's parameter vectors."""

_OUTCOME_GRID = 4096.0
_RESPONSE_GRID = 2.0**24
_EXACT = 2.0**32
"""Every weight times two features is a multiple of 1 / _EXACT, so that rounding to it changes nothing."""


def round_weight(variance: Any) -> Any:
    """The weight of an observation with that variance: 1 / variance, rounded down to a multiple of 1/4."""
    return np.floor(4.0 * np.minimum(MAX_WEIGHT, 1.0 / np.maximum(variance, 1.0 / MAX_WEIGHT))) / 4.0


def round_share(weight: Any) -> Any:
    """The nearest multiple of 1/4, at least 1/4."""
    return np.maximum(1.0, np.floor(4.0 * weight + 0.5)) / 4.0


def round_outcome(outcome: Any) -> Any:
    """The outcome as regressions record it: the nearest multiple of 2**-12."""
    return np.floor(outcome * _OUTCOME_GRID + 0.5) / _OUTCOME_GRID


def triangle(d: Any) -> Any:
    """How many numbers the lower triangle of a d by d matrix has."""
    return d * (d + 1) // 2


class RegressionSums:
    r"""The sums of a regression, of R replications.

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
        self.present, self.maps = 0, same_frames(design.n_user)
        self.by_frame: dict[int, tuple[Floats, Floats]] = {}

    def record(self, feedback: Feedback, sign: float = 1.0) -> None:
        """Add the observations of feedback (``sign=1.0``), or take them back; those of weight 0 are left out."""
        given: Contexts = feedback.context
        if given is None or given.weights is None:
            return
        weight = given.weights if feedback.seen is None else np.where(feedback.seen, given.weights, 0.0)
        x = round_outcome(feedback.outcome)
        share = weight * x if given.shifts is None else np.where(weight > 0.0, x + given.shifts, 0.0)
        phi, group, at = entry_features((self.design, self.support), feedback.action, given)
        late, sums = bool(self.grid) and given.frame != self.present, []
        if not late:
            sums.append((self.precision, self.response))
        if self.grid:
            new = np.zeros_like(self.precision), np.zeros_like(self.response)
            sums.append(self.by_frame.setdefault(given.frame, new))
        for precision, response in sums:
            _add_outer(precision, phi, group, sign * weight[at])
            np.add.at(response.reshape(-1, self.design.d), group, (sign * share[at])[:, None] * phi)
        if late:
            self._carry()

    def begin(self, frames: "Frames") -> None:
        """Carry the sums of all frames to the present one of ``frames``."""
        self.present, self.maps = frames.frame.version, frames.user_maps()
        self._carry()

    def follow(self, other: "RegressionSums") -> None:
        """Take on the frames of other sums."""
        self.present, self.maps = other.present, other.maps

    def _carry(self) -> None:
        self.precision, self.response = np.zeros_like(self.precision), np.zeros_like(self.response)
        rows, columns = np.tril_indices(self.design.d)
        for version, (precision, response) in sorted(self.by_frame.items()):
            half = self._map(unpack(precision, self.design.d), version)  # of M A Mᵀ, without matrix products: same bits
            carried = self._map(half.swapaxes(2, 3), version)[..., rows, columns]
            self.precision += np.floor(carried * self.grid + 0.5) / self.grid
            self.response += np.floor(self._map(response, version) * _RESPONSE_GRID + 0.5) / _RESPONSE_GRID

    def _map(self, vectors: Floats, version: int) -> Floats:
        """Vectors (…, d) in the present frame."""
        flat = vectors.reshape(-1, self.design.d).copy()
        self.design.map_frame(flat, self.maps[version])
        return flat.reshape(vectors.shape)

    def add(self, other: "RegressionSums", sign: float = 1.0) -> None:
        """Add the sums of another tally, or take them away; exact, in any order."""
        for version, sums in other.by_frame.items():
            own = self.by_frame.setdefault(version, (np.zeros_like(self.precision), np.zeros_like(self.response)))
            own[0][...] += sign * sums[0]
            own[1][...] += sign * sums[1]
        if self.grid:
            self._carry()
        else:
            self.precision += sign * other.precision
            self.response += sign * other.response

    def like(self) -> "RegressionSums":
        """Empty sums of the same kind."""
        new = RegressionSums(self.design, self.support, len(self.precision), self.grid)
        new.follow(self)
        return new

    def grown(self, support: AnySupport, design: Design | None = None) -> "RegressionSums":
        """The same sums for more arms or items after those there are; with features of arms, ``design`` is needed."""
        design = self.design if design is None else design
        new = RegressionSums(design, support, len(self.precision), self.grid)
        new.follow(self)
        before, after = (self.design, self.support), (design, support)
        more = new.precision.shape[2] - self.precision.shape[2], design.d - self.design.d

        def grow(sums: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
            return grow_groups(sums[0], before, after, more[0]), grow_groups(sums[1], before, after, more[1])

        new.precision, new.response = grow((self.precision, self.response))
        new.by_frame = {version: grow(sums) for version, sums in self.by_frame.items()}
        return new


def grow_groups(values: Floats, before: Layout, after: Layout, more: int = 0) -> Floats:
    """Numbers of every parameter vector, (R, n_groups, n), on a larger problem, with ``more`` numbers at the end: 0.

    New items are new coordinates at the end, so that precisions and vectors of coordinates become longer.
    """
    (design, old), (larger, new), longer = before, after, (0, more)
    if design.sharing == ENTRIES and isinstance(old, Dense):
        table = values.reshape(len(values), old.n_arms, old.n_items, -1)
        table = np.pad(table, ((0, 0), (0, new.n_arms - old.n_arms), (0, new.n_items - old.n_items), longer))
        return table.reshape(len(values), -1, table.shape[3])
    return np.pad(values, ((0, 0), (0, larger.n_groups(new) - values.shape[1]), longer))


def unpack(triangles: Floats, d: int) -> Floats:
    """The symmetric matrices (…, d, d) of lower triangles (…, d (d + 1) / 2)."""
    rows, columns = np.tril_indices(d)
    full = np.empty((*triangles.shape[:-1], d, d))
    full[..., rows, columns] = triangles
    full[..., columns, rows] = triangles
    return full


def entry_features(layout: Layout, action: Ints, given: Contexts) -> tuple[Floats, Ints, Any]:
    """The features (n, d) of all entries of ``action`` (R, K), the numbers of their parameter vectors (n,), and places.

    Parameter vectors are numbered replication after replication; places are those in arrays (R, K, widest).
    """
    design, support = layout
    groups, items = design.groups_of(support, action), places(support, action).items
    at = r, k, _ = np.nonzero(groups >= 0)
    u = design.own_features(given.x[:, None], action, given.pairs[np.arange(len(action))[:, None], action])
    phi = np.ascontiguousarray(design.with_items(u[r, k], items[at]))
    return phi, r * design.n_groups(support) + groups[at], at


def _add_outer(precision: Floats, phi: Floats, group: Ints, weight: Floats) -> None:
    add = op("add_terms", phi.size * phi.shape[1])
    add(phi, weight, group, _EXACT, 1.0, precision.reshape(-1, precision.shape[2]))


def add_precision(precision: Floats, layout: Layout, action: Ints, given: Contexts, sign: float) -> None:
    """Add the precision that decisions will have once all of their entries are seen; for pending decisions."""
    if given.weights is not None:
        phi, group, at = entry_features(layout, action, given)
        _add_outer(precision, phi, group, sign * given.weights[at])


class RegressionTally(Tally):
    """A tally with the ``regression`` of a problem whose context has a linear or logistic model."""

    def __init__(self, problem: "Problem", replications: int = 1, partial: bool = False) -> None:
        super().__init__(problem.support, replications, partial, problem.unit)
        grid, context = 0.0, problem.context
        if context.features.standardised:
            grid = 2.0**32 if isinstance(context.model, LogisticModel) else 2.0**22
        self.regression = RegressionSums(design_of(problem), problem.support, replications, grid)

    def record(self, feedback: Feedback, sign: float = 1.0, known: bool = True) -> None:
        super().record(feedback, sign)
        self.regression.record(feedback, sign)

    def add(self, other: Tally, sign: float = 1.0) -> None:
        super().add(other, sign)
        if isinstance(other, RegressionTally):
            self.regression.add(other.regression, sign)

    def like(self) -> Self:
        new = super().like()
        new.regression = self.regression.like()
        return new

    def grown(self, problem: "Problem") -> Self:
        new = super().grown(problem)
        new.regression = self.regression.grown(problem.support, design_of(problem))
        return new

    def to_arrays(self) -> dict[str, Any]:
        sums = self.regression
        arrays = super().to_arrays() | {"precision": sums.precision, "response": sums.response}
        frames = {version: parts for version, parts in sorted(sums.by_frame.items()) if any(map(np.any, parts))}
        if frames:
            arrays |= {"present": np.array(float(sums.present)), "maps": sums.maps}
        for version, (precision, response) in frames.items():
            arrays |= {f"precision {version}": precision, f"response {version}": response}
        return arrays

    def from_arrays(self, arrays: dict[str, Any]) -> Self:
        new = super().from_arrays(arrays)
        new.regression = sums = self.regression.like()
        sums.precision[...], sums.response[...] = arrays["precision"], arrays["response"]
        if "present" in arrays:
            sums.present, sums.maps = int(arrays["present"]), arrays["maps"].copy()
        for version in [int(name.split()[1]) for name in arrays if name.startswith("precision ")]:
            sums.by_frame[version] = arrays[f"precision {version}"].copy(), arrays[f"response {version}"].copy()
        return new
