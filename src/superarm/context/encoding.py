"""Contexts as users give them, as vectors: checked, encoded, and rounded to a grid.

Coordinates are multiples of 2**-10 in [-1, 1]. Products of two of them are multiples of 2**-20, so the sums that models
keep of them are exact.
"""

import contextlib
import hashlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from superarm.context.features import LARGEST, OTHER, Features, unknown
from superarm.context.frames import Frame
from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument

COORDINATE_GRID = 1024.0
"""Coordinates of encoded contexts are multiples of 1 / COORDINATE_GRID."""


def to_grid(values: Any) -> Floats:
    """Numbers in [-1, 1], rounded to the grid."""
    return np.asarray(np.floor(np.clip(values, -1.0, 1.0) * COORDINATE_GRID + 0.5) / COORDINATE_GRID)


def encode(features: Features, frame: Frame, context: Any, name: str = "context") -> Floats:
    """A context as a vector, (features.size,).

    >>> features = Features(numeric={"age": (0, 100)}, categorical={"country": ["NO", "SE", "other"]})
    >>> encode(features, Frame(), {"age": 75, "country": "DK"})
    array([0.5, 0. , 0. , 1. ])
    """
    if features.d:
        return _encode_array(features.d, context, name)
    values = check_names(features, {} if context is None else context, name)
    flat = [_encode_number(key, ends, frame, values.get(key), name) for key, ends in features.numeric]
    flat += [float(is_missing(values.get(key))) for key in features.missing]
    for key, levels in features.categorical:
        flat += _encode_level(key, levels, values.get(key), name)
    for key, buckets in features.hashed:
        flat += _encode_hashed(key, buckets, values.get(key), name).tolist()
    return to_grid(np.array(flat, float))


def check_names(features: Features, context: Any, name: str) -> Mapping[str, Any]:
    """``context`` if it is a mapping of declared features; otherwise an error that names the nearest one."""
    if not isinstance(context, Mapping):
        raise InvalidArgument(name, f"{type(context).__name__} is not a mapping", f"give {features.names} by name")
    declared = features.names
    for key in context:
        if key not in declared:
            raise InvalidArgument(name, f"feature {unknown(key, declared)}", f"declared are {declared}")
    return context


def is_missing(value: Any) -> bool:
    """Whether a value was left out: None or NaN."""
    return value is None or (isinstance(value, float | np.floating) and math.isnan(value))


def number(value: Any, key: str, name: str) -> float:
    """``value`` as a finite number."""
    if isinstance(value, bool | int | float | np.number | np.bool_):
        with contextlib.suppress(OverflowError):  # of a whole number with hundreds of digits
            if abs(given := float(value)) <= LARGEST:
                return given
    wrong = f"{value!r} is not a finite number up to {LARGEST:g}"
    raise InvalidArgument(f"{name}[{key!r}]", wrong, "give a number, or leave it out")


def _encode_number(key: str, ends: Any, frame: Frame, value: Any, name: str) -> float:
    if is_missing(value):
        return 0.0
    given = number(value, key, name)
    if ends is None:
        return frame.scale_value(key, given)
    low, high = ends
    return float((given - low) / (high - low) * 2.0 - 1.0)


def _encode_level(key: str, levels: tuple[str, ...], value: Any, name: str) -> list[float]:
    if is_missing(value):
        value = OTHER if OTHER in levels else None
    elif str(value) not in levels:
        if OTHER not in levels:
            remedy = f"give one of {list(levels)}, or declare the level 'other'"
            raise InvalidArgument(f"{name}[{key!r}]", unknown(str(value), levels), remedy)
        value = OTHER
    level_given = None if value is None else str(value)
    return [float(level == level_given) for level in levels]


def _encode_hashed(key: str, buckets: int, value: Any, name: str) -> Floats:
    vector = np.zeros(buckets)
    if is_missing(value):
        return vector
    for word, weight in _weigh_words(value, f"{name}[{key!r}]").items():
        vector[_bucket(key, word, buckets)] += weight
    length = math.sqrt(float(vector @ vector))
    shortest = 1.0 if isinstance(value, Mapping) else 0.0  # given weights are only ever made smaller
    return vector / max(length, shortest) if length > 0.0 else vector


def _bucket(key: str, word: str, buckets: int) -> int:
    """The bucket of a word of a hashed feature."""
    digest = hashlib.blake2b(f"{key}={word}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % buckets


def hashed_words(features: Features, context: Any) -> dict[str, list[str]]:
    """The words of the hashed features of a context that ``encode`` has accepted."""
    given = {key: context.get(key) for key, _ in features.hashed} if isinstance(context, Mapping) else {}
    return {key: list(_weigh_words(value, key)) for key, value in given.items() if not is_missing(value)}


def name_coordinates(features: Features, words: Mapping[str, list[str]]) -> list[str]:
    """The names of the coordinates of a context with these ``hashed_words``, which name their buckets.

    >>> features = Features(hashed={"query": 2})
    >>> name_coordinates(features, {"query": ["red", "blue"]})
    ['query=red', 'query=blue']
    """
    found = dict[str, list[str]]()
    for key, buckets in features.hashed:
        for word in words.get(key, ()):
            found.setdefault(f"{key}#{_bucket(key, word, buckets)}", []).append(f"{key}={word}")
    return [" + ".join(found.get(name, [name])) for name in features.coordinates]


def _weigh_words(value: Any, name: str) -> Mapping[str, float]:
    """The words of a hashed feature, each with its weight."""
    if isinstance(value, Mapping):
        return {str(word): number(weight, str(word), name) for word, weight in value.items()}
    words = [value] if isinstance(value, str) else list(value) if isinstance(value, list | tuple | set) else None
    if words is None or not all(isinstance(word, str) for word in words):
        raise InvalidArgument(name, f"{value!r} is not text", "give a string, or a list or a mapping of strings")
    return dict.fromkeys(words, 1.0)


def _encode_array(d: int, context: Any, name: str) -> Floats:
    given = _dense(context, d, name)
    try:
        vector = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(name, f"{context!r} is not an array of numbers", f"give {d} numbers") from None
    if vector.shape != (d,):
        raise InvalidArgument(name, f"shape {vector.shape}", f"give {d} numbers, shape ({d},)")
    vector = np.where(np.isnan(vector), 0.0, vector)
    if (np.abs(vector) > 1.0).any():
        wrong = f"values range over [{vector.min():g}, {vector.max():g}]"
        raise InvalidArgument(name, wrong, "give values in [-1, 1], or declare numeric features, which are scaled")
    return to_grid(vector)


def _dense(context: Any, d: int, name: str) -> Any:
    """An array, a SciPy sparse vector or a mapping from coordinates to values, as an array."""
    if isinstance(context, np.ndarray | list):
        return context
    if hasattr(context, "toarray"):
        return context.toarray().reshape(-1)
    if not isinstance(context, Mapping):
        return context
    vector = np.zeros(d)
    for place, value in context.items():
        if not str(place).isdigit() or int(place) >= d:
            raise InvalidArgument(name, f"unknown coordinate {place!r}", f"coordinates are 0 to {d - 1}")
        vector[int(place)] = number(value, str(place), name)
    return vector
