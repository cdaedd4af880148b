"""The array types of the library, and the conversion of arguments to them, with checks."""

import math
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from superarm.core.errors import InvalidArgument, NotANumber

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

HUGE = 1e300
"""A limit from here on means that numbers must be finite."""

FEW_NUMBERS = 32
"""With so many numbers, Python's own arithmetic is quicker than that of arrays; with more it is slower."""


def floats(value: Any, name: str, *, low: float, high: float) -> Floats:
    """Copy ``value`` into a float64 array; refuse entries outside of ``[low, high]``."""
    try:
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise InvalidArgument(name, f"{type(value).__name__} is not an array of numbers", "give numbers") from None
    if not are_within(array, low, high):
        least, most = array.min(), array.max()
        if math.isnan(least):  # that of an array that contains NaN is NaN
            unseen = "; an outcome not observed is marked by seen=False" if name.startswith("outcome") else ""
            raise InvalidArgument(name, "contains NaN", f"give numbers{unseen}")
        remedy = f"give values in [{low:g}, {high:g}]" if high < HUGE else f"give finite numbers >= {low:g}"
        if name.startswith("outcome") and most > high == 1.0:
            remedy += "; sa.agent.Scale turns amounts into outcomes"
        raise InvalidArgument(name, f"values range over [{least:g}, {most:g}]", remedy)
    return array


def require_scores(scores: Floats, arm_of: Ints | None = None) -> None:
    """Raise ``NotANumber`` if a score of an arm, the last axis, is NaN; ``arm_of`` says whose entries these are."""
    if np.isnan(np.add.reduce(scores, None)) and (missing := np.isnan(scores)).any():
        place = int(np.argwhere(missing)[0, -1])
        raise NotANumber(place if arm_of is None else int(arm_of[place]))


def are_within(array: Floats, low: float, high: float) -> bool:
    """Whether all numbers are in ``[low, high]``; NaN is not.

    >>> are_within(np.array([0.0, 0.5, np.nan]), 0.0, 1.0)
    False
    """
    if array.size <= FEW_NUMBERS:
        return all(low <= x <= high for x in array.reshape(-1).tolist())
    return bool(np.minimum.reduce(array, axis=None) >= low and np.maximum.reduce(array, axis=None) <= high)


def probabilities(value: Any, name: str, low: float = 0.0, high: float = 1.0) -> Floats:
    """Convert parameters in [0, 1]: dense ``(n_arms, n_items)``, or the stored entries of a SciPy sparse matrix."""
    if hasattr(value, "tocsr"):
        matrix = value.tocsr()
        matrix.sort_indices()
        value = matrix.data
    return floats(value, name, low=low, high=high)


Probabilities = Annotated[Any, probabilities]
"""The type of a component's field of parameters: accepts anything array-like or sparse, stores a float64 array."""


def arms(value: Any, name: str, n_arms: int) -> Ints:
    """Convert ``value`` to distinct arm numbers below ``n_arms``."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of unequal length
        array = np.zeros((0, 0))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidArgument(name, f"{value!r} is not a flat list of arms", "give one integer per arm")
    array = array.astype(np.int64)
    if array.size and (array.min() < 0 or array.max() >= n_arms):
        unknown = array[(array < 0) | (array >= n_arms)][0]
        raise InvalidArgument(name, f"unknown arm {unknown}", f"arms are 0 to {n_arms - 1}")
    if np.unique(array).size < array.size:
        raise InvalidArgument(name, "the same arm appears twice", "give each arm once")
    return array


def count(value: Any, name: str, least: int, owner: str = "") -> int:
    """Convert ``value`` to an int of at least ``least``; True and False are refused.

    >>> count(np.int64(3), "k", 1)
    3
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        kind = "positive whole number" if least == 1 else f"whole number >= {least}"
        raise InvalidArgument(name, f"{value!r} is not a {kind}", f"give an int >= {least}", owner)
    return int(value)


def without_fraction(value: Any) -> Any:
    """A float such as 1e4 as an int; everything else as it is.

    >>> without_fraction(1e4), without_fraction(0.5)
    (10000, 0.5)
    """
    return int(value) if isinstance(value, float | np.floating) and value.is_integer() else value


def best_arms(gains: Floats, counts: Floats) -> Ints:
    """(R,): the arm of the largest gain, ties by fewest pulls, then the lowest number; -1 where all are -inf."""
    most = gains.max(1)
    arm = np.where(gains == most[:, None], counts, np.inf).argmin(1)
    return np.where(most == -np.inf, -1, arm)
