r"""Frames: centre and scale of standardised features, frozen from one version of the frame to the next.

In a new frame the centre and the scale are other ones, so the features of a decision are another linear function of
what was given: :math:`\phi' = M\phi`. The sums of every frame are kept as they were added up, and carried over when
they are used (``sums``), so that feedback in any order and its undoing stay exact.
"""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm.core.arrays import Floats

if TYPE_CHECKING:
    from superarm.context.context import Context

FIRST_FRAME = 16
"""After how many contexts the first frame is computed; the next ones after 4, 16 and 64 times as many."""

LAST_FRAME = 4
"""The number of the last frame: after FIRST_FRAME * 4**3 contexts the scale stays."""

SCALES = 3.0
"""Values more than this many standard deviations from the centre are clipped."""


class Frame(NamedTuple):
    """Centre and scale of each standardised feature: it is encoded as (value - centre) / scale, clipped to [-1, 1].

    ``scale`` is three standard deviations of what was seen. In frame 0, the first ``FIRST_FRAME`` contexts, nothing is
    known of the scale: every value is encoded as 0, as a missing one.

    >>> Frame(1, {"age": (40.0, 60.0)}).scale_value("age", 55.0)
    0.25
    """

    version: int = 0
    places: Mapping[str, tuple[float, float]] = {}

    def scale_value(self, feature: str, value: float) -> float:
        """``value`` of a standardised feature in this frame, clipped to [-1, 1]."""
        if feature not in self.places:
            return 0.0
        center, scale = self.places[feature]
        return min(1.0, max(-1.0, (value - center) / scale))

    def to_plain(self) -> dict[str, Any]:
        """The frame as plain data."""
        return {"version": self.version, "places": {name: list(place) for name, place in self.places.items()}}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> "Frame":
        """What ``to_plain`` described."""
        return cls(plain["version"], {name: (place[0], place[1]) for name, place in plain["places"].items()})


class FeatureMoments:
    """How many values of each standardised feature were seen, their sum and sum of squares, all exact.

    The sums are rational numbers, so they do not depend on the order of the contexts, and taking one back is exact.
    """

    def __init__(self, features: Iterable[str]) -> None:
        self.sums = {name: (0, Fraction(0), Fraction(0)) for name in features}

    def add(self, feature: str, value: float, sign: int = 1) -> None:
        """Count one value of a feature; ``sign=-1`` takes it back."""
        exact = Fraction(value)
        n, total, square = self.sums[feature]
        self.sums[feature] = (n + sign, total + sign * exact, square + sign * exact * exact)

    def frame(self, version: int) -> Frame:
        """The frame of what was seen; a feature that was always the same has the scale 1."""
        return Frame(version, {name: _place(*sums) for name, sums in self.sums.items() if sums[0]})

    def to_plain(self) -> dict[str, list[str]]:
        """The sums as plain data."""
        return {name: [str(part) for part in sums] for name, sums in self.sums.items()}

    @classmethod
    def from_plain(cls, plain: dict[str, list[str]]) -> "FeatureMoments":
        """What ``to_plain`` described."""
        moments = cls(plain)
        moments.sums = {name: (int(n), Fraction(a), Fraction(b)) for name, (n, a, b) in plain.items()}
        return moments


def _place(n: int, total: Fraction, square: Fraction) -> tuple[float, float]:
    center = total / n
    deviation = math.sqrt(float(square / n - center * center))
    return float(center), SCALES * deviation if deviation > 0.0 else 1.0


def frame_number(contexts: int) -> int:
    """The number of the frame after so many contexts.

    >>> [frame_number(n) for n in (15, 16, 63, 64, 256, 1024, 10**9)]
    [0, 1, 1, 2, 3, 4, 4]
    """
    version, bound = 0, FIRST_FRAME
    while version < LAST_FRAME and contexts >= bound:
        version, bound = version + 1, 4 * bound
    return version


def same_frames(n_user: int) -> Floats:
    """The maps of ``Frames.user_maps`` that change nothing."""
    return np.broadcast_to([0.0, 1.0], (LAST_FRAME + 1, n_user, 2)).copy()


class Frames:
    """The frames of an agent so far, the last one present, and what it saw of standardised features.

    Without standardised features there is one frame, and nothing is counted.
    """

    def __init__(self, context: "Context") -> None:
        self.context = context
        self.contexts = 0
        self.moments = FeatureMoments(context.features.standardised)
        self.frame = Frame()
        self.frames = {0: self.frame}

    @property
    def in_use(self) -> bool:
        """Whether there are standardised features."""
        return bool(self.moments.sums)

    def count(self, given: Any, sign: int = 1) -> None:
        """Count a context that was accepted; ``sign=-1`` takes it back."""
        for name in self.moments.sums:
            value = (given or {}).get(name)
            if value is not None and not math.isnan(value):
                self.moments.add(name, float(value), sign)
        self.contexts += sign if self.in_use else 0

    def due(self) -> Frame | None:
        """The frame of what was seen so far, if it is time for another one."""
        version = frame_number(self.contexts)
        return self.moments.frame(version) if self.in_use and version > self.frame.version else None

    def begin(self, frame: Frame) -> None:
        """Standardise by another frame from now on."""
        self.frame = self.frames[frame.version] = frame

    def user_map(self, version: int) -> Floats:
        """How the user's vector in an earlier frame becomes that of the present one, (n_user, 2).

        A coordinate becomes the first one, which is the intercept, times one number, plus its old value times another.
        """
        factors = same_frames(self.context.n_user)[0]
        old, first = self.frames[version], self.context.n_user - self.context.features.size
        for place, name in enumerate(self.context.features.ranges):
            if name in old.places and name in self.frame.places:
                (center, scale), (new_center, new_scale) = old.places[name], self.frame.places[name]
                factors[first + place] = (center - new_center) / new_scale, scale / new_scale
        return factors

    def user_maps(self) -> Floats:
        """The maps from every frame to the present one, (LAST_FRAME + 1, n_user, 2)."""
        maps = same_frames(self.context.n_user)
        for version in self.frames:
            maps[version] = self.user_map(version)
        return maps

    def to_plain(self) -> dict[str, Any]:
        """Everything as plain data."""
        frames = [frame.to_plain() for frame in self.frames.values()]
        return {"contexts": self.contexts, "moments": self.moments.to_plain(), "frames": frames}

    def from_plain(self, plain: dict[str, Any]) -> None:
        """Take on what ``to_plain`` described."""
        self.contexts, self.moments = plain["contexts"], FeatureMoments.from_plain(plain["moments"])
        self.frames = {frame.version: frame for frame in map(Frame.from_plain, plain["frames"])}
        self.frame = self.frames[max(self.frames)]
