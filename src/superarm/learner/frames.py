"""Sums of regressions in the frames of standardised features, and how they are carried to a new frame.

In a new frame the centre and the scale of standardised features are other ones, so the features of a decision are
another linear function of what was given: :math:`\\phi' = M\\phi`. The sums of every frame are kept as they were added
up, and carried over when they are used, so that feedback in any order and its undoing stay exact.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from superarm.arrays import Floats
from superarm.context import Context, FeatureMoments, Frame, LogisticModel, frame_number
from superarm.context.design import Design, feature_size, own_size
from superarm.context.encoding import check_names, is_missing
from superarm.context.frames import frame_from_plain, frame_to_plain
from superarm.describe import build, describe
from superarm.policies import KeptRows

_RESPONSE_GRID = 2.0**24


def _precision_grid(context: Context) -> float:
    """What precisions are multiples of, inverted: weights of logistic models are multiples of 2**-12, others of 1/4."""
    return 2.0**32 if isinstance(context.model, LogisticModel) else 2.0**22


Sums = tuple[Floats, Floats]
"""The precision and the response of a regression, as in ``ContextTally``."""


class FrameSums:
    """The present frame, what was seen of standardised features, and the sums of every frame so far.

    Without standardised features there is one frame, and nothing is kept beside the tally.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.contexts = 0
        self.moments = FeatureMoments(context.features.standardised)
        self.frame = Frame()
        self.frames = {0: self.frame}
        self.sums: dict[int, Sums] = {}

    @property
    def in_use(self) -> bool:
        """Whether there are standardised features."""
        return bool(self.moments.sums)

    def count(self, given: Any, sign: int = 1) -> None:
        """Count a context; ``sign=-1`` takes it back."""
        if not self.in_use:
            return
        values = check_names(self.context.features, given, "context")
        for name in self.moments.sums:
            if not is_missing(values.get(name)):
                self.moments.add(name, float(values[name]), sign)
        self.contexts += sign

    def due(self) -> Frame | None:
        """The frame of what was seen so far, if it is time for another one."""
        version = frame_number(self.contexts)
        return self.moments.frame(version) if self.in_use and version > self.frame.version else None

    def begin(self, frame: Frame) -> None:
        """Standardise by another frame from now on."""
        self.frame = self.frames[frame.version] = frame

    def own(self, version: int, shape: Sums) -> Sums:
        """The sums of one frame, to add to; ``shape`` are sums of the right shape."""
        if version not in self.sums:
            self.sums[version] = (np.zeros_like(shape[0]), np.zeros_like(shape[1]))
        return self.sums[version]

    def carry_sums(self, design: Design, shape: Sums) -> Sums:
        """The sums of all frames in the present one."""
        precision, response = np.zeros_like(shape[0]), np.zeros_like(shape[1])
        for version, (own_precision, own_response) in sorted(self.sums.items()):
            matrix = _map(self.context, design, self.frames[version], self.frame)
            precision += _carry_triangles(own_precision, matrix, _precision_grid(self.context))
            response += np.floor(own_response @ matrix.T * _RESPONSE_GRID + 0.5) / _RESPONSE_GRID
        return precision, response

    def carry_kept(self, design: Design, kept: KeptRows) -> KeptRows:
        """The observations that a policy keeps, for the present frame; points of an earlier one are given up."""
        maps = kept.maps.copy()
        for version, frame in self.frames.items():
            user = _map_user(self.context, design, frame, self.frame)
            maps[version, :, 0], maps[version, :, 1] = user[:, 0], np.diag(user)
        bounds = np.array([kept.bounds[0], float(self.frame.version)])
        return kept._replace(bounds=bounds, maps=maps, point=0.0 * kept.point, marks=0.0 * kept.marks)

    def change(self, change: Callable[[Floats], Floats]) -> None:
        """Put another array in the place of each."""
        self.sums = {version: (change(a), change(b)) for version, (a, b) in self.sums.items()}

    def to_plain(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "contexts": self.contexts,
            "moments": self.moments.to_plain(),
            "frames": [frame_to_plain(frame) for frame in self.frames.values()],
            "sums": [[version, describe(a), describe(b)] for version, (a, b) in sorted(self.sums.items())],
        }

    def from_plain(self, plain: dict[str, Any]) -> None:
        """Take on what ``to_plain`` described."""
        self.contexts, self.moments = plain["contexts"], FeatureMoments.from_plain(plain["moments"])
        self.frames = {frame.version: frame for frame in map(frame_from_plain, plain["frames"])}
        self.frame = self.frames[max(self.frames)]
        self.sums = {version: (build(a), build(b)) for version, a, b in plain["sums"]}


def _map_user(context: Context, design: Design, old: Frame, new: Frame) -> Floats:
    """The matrix that takes the user's vector in the frame ``old`` to the frame ``new``."""
    user = np.eye(design.n_user)
    first = design.n_user - context.features.size
    for place, name in enumerate(context.features.ranges):
        if name in old.places and name in new.places:
            (center, scale), (new_center, new_scale) = old.places[name], new.places[name]
            user[first + place, 0] = (center - new_center) / new_scale
            user[first + place, first + place] = scale / new_scale
    return user


def _map(context: Context, design: Design, old: Frame, new: Frame) -> Floats:
    """The matrix that takes features in the frame ``old`` to the frame ``new``."""
    user = _map_user(context, design, old, new)
    matrix = np.eye(feature_size(design))
    blocks = (own_size(design) - design.n_pair) // design.n_user if design.crossed else 1
    for block in range(blocks):
        part = slice(block * design.n_user, (block + 1) * design.n_user)
        matrix[part, part] = user
    return matrix


def _carry_triangles(triangles: Floats, matrix: Floats, grid: float) -> Floats:
    """The lower triangles of ``M A Mᵀ``, rounded to multiples of 1 / grid."""
    rows, columns = np.tril_indices(len(matrix))
    carried = np.empty_like(triangles)
    for n, triangle in enumerate(triangles):
        full = np.zeros_like(matrix)
        full[rows, columns] = triangle
        full[columns, rows] = triangle
        carried[n] = (matrix @ full @ matrix.T)[rows, columns]
    return np.floor(carried * grid + 0.5) / grid
