"""Frames: centre and scale of standardised features, frozen from one version of the frame to the next."""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

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


def frame_to_plain(frame: Frame) -> dict[str, Any]:
    """A frame as plain data."""
    return {"version": frame.version, "places": {name: list(place) for name, place in frame.places.items()}}


def frame_from_plain(plain: dict[str, Any]) -> Frame:
    """What ``frame_to_plain`` described."""
    return Frame(plain["version"], {name: (place[0], place[1]) for name, place in plain["places"].items()})
