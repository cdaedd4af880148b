"""Context: what varies from decision to decision, and the model of how outcomes depend on it."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.arrays import Floats, count
from superarm.context.encoding import encode, is_missing, to_grid
from superarm.context.features import Features
from superarm.context.frames import Frame
from superarm.context.models import ALL, ENTRIES, MAX_SHARED, MAX_UNSHARED, Segments, is_model, sharing
from superarm.errors import InvalidArgument
from superarm.labels import is_frame

_NO_PAIRS = np.zeros(0)


class EncodedContext(NamedTuple):
    """A context as kernels take it.

    ``segment`` is the number of the user's segment (0 without segments), ``x`` the user's vector, with a leading 1 if
    the model has an intercept, and ``pairs`` the features of the pairs of user and arm, flat, one row per arm.
    """

    segment: int
    x: Floats
    pairs: Floats


class _ContextFields(NamedTuple):
    features: Features
    arms: Floats
    model: Any
    interactions: bool
    pairs: int
    arm_features: Features


@component
class Context(_ContextFields):
    r"""Features of users, arms and pairs, and the model that learns from them.

    With ``x`` the user's features and :math:`z_j` those of arm j, each with a leading 1, an entry has the features

    .. math:: \phi_{ij} = [\,x \otimes z_j,\ pair_j,\ e_i\,]

    (``interactions=True``), or :math:`[x, z_j, pair_j, e_i]` without the leading 1 of :math:`z_j`. The indicator
    :math:`e_i` of the item is left out if there is one item, or if every entry has a parameter vector of its own. The
    features of arms enter only models that are shared over all arms.

    Parameters
    ----------
    features
        The features of the user, given with every decision.
    arms
        The features of the arms, (n_arms, d), in [-1, 1]; or one mapping per arm, with ``arm_features``.
    model
        ``superarm.models.Segments()``, the default, ``Linear()`` or ``Logistic()``.
    interactions
        Whether the features of the user and of the arm are multiplied with one another.
    pairs
        How many features every pair of user and arm has; they are given with every decision.
    arm_features
        The declaration of the arms' features, if they are given by name; their numeric features need ranges.

    Examples
    --------
    >>> import superarm as sa
    >>> features = sa.Features(numeric={"age": (0, 100)}, categorical={"country": ["NO", "SE", "other"]})
    >>> context = sa.Context(features, arms=[[1.0, 0.0], [0.0, 1.0]], model=sa.models.Linear(shared=True))
    >>> context.dimension(n_items=1)
    15
    """

    __slots__ = ()

    def __new__(
        cls,
        features: Features,
        arms: Any = None,
        model: Any = None,
        interactions: bool = True,
        pairs: int = 0,
        arm_features: Features | None = None,
    ) -> "Context":
        if not isinstance(features, Features):
            raise InvalidArgument("features", f"{features!r} is not a declaration", "give Features(…)", "Context")
        model = Segments() if model is None else model
        if not is_model(model):
            raise InvalidArgument("model", f"{model!r} is not a model", "give e.g. models.Linear()", "Context")
        declared = Features() if arm_features is None else arm_features
        table = encode_arms(declared, arms)
        model.validate(features, table.shape[1])
        return super().__new__(cls, features, table, model, bool(interactions), count(pairs, "pairs", 0), declared)

    @property
    def n_segments(self) -> int:
        """How many segments there are; 1 for a model without segments."""
        return self.model.n_segments(self.features) if isinstance(self.model, Segments) else 1

    @property
    def segment_names(self) -> list[str]:
        """The names of the segments, in the order of their numbers; empty for a model without segments.

        >>> features = Features(categorical={"country": ["NO", "SE"], "device": ["phone", "other"]})
        >>> Context(features).segment_names[:3]
        ['country=NO, device=phone', 'country=NO, device=other', 'country=SE, device=phone']
        """
        if not isinstance(self.model, Segments):
            return []
        by = self.model.names(self.features)
        combined = itertools.product(*(self.features.levels[name] for name in by))
        return [", ".join(f"{name}={level}" for name, level in zip(by, levels, strict=True)) for levels in combined]

    @interpreted
    def dimension(self, n_items: int) -> int:
        """How many coordinates the features of an entry have; 0 for a model of segments."""
        if isinstance(self.model, Segments):
            return 0
        outer, arm = len(self.vector(np.zeros(self.features.size))), 1
        if self.model.shared == ALL:
            arm = self.arms.shape[1] + int(self.model.intercept or not self.interactions)
        own = outer * arm if self.interactions else outer + arm - 1
        return own + self.pairs + self.n_indicators(n_items)

    @interpreted
    def n_indicators(self, n_items: int) -> int:
        """How many coordinates of an entry's features indicate its item."""
        return n_items if n_items > 1 and self.model.shared != ENTRIES else 0

    @interpreted
    def validate(self, n_arms: int, n_items: int) -> None:
        """Refuse features for another number of arms, and too many coordinates."""
        if self.arms.size and len(self.arms) != n_arms:
            raise InvalidArgument("arms", f"{len(self.arms)} rows for {n_arms} arms", "give one row per arm", "Context")
        d = self.dimension(n_items)
        most = MAX_UNSHARED if sharing(self.model) != ALL else MAX_SHARED
        if d > most:
            kind = "is that of one entry or arm" if most == MAX_UNSHARED else "all entries share"
            raise InvalidArgument(
                "features", f"{d} coordinates of a parameter vector that {kind}", f"use at most {most}", "Context"
            )

    @interpreted
    def vector(self, encoded: Floats) -> Floats:
        """The user's vector: the encoded features, after a 1 if the model has an intercept or nothing else."""
        if not self.model.intercept and encoded.size:
            return encoded
        whole = np.empty(1 + len(encoded))
        whole[0], whole[1:] = 1.0, encoded
        return whole

    @interpreted
    def encode(self, given: Any, frame: Frame, n_arms: int, pairs: Any = None) -> EncodedContext:
        """A context as users give it, as kernels take it; ``pairs`` (n_arms, pairs) are the features of the pairs."""
        x = encode(self.features, frame, given)
        if isinstance(self.model, Segments):
            return EncodedContext(self._segment(given), np.zeros(0), self._encode_pairs(pairs, n_arms))
        return EncodedContext(0, self.vector(x), self._encode_pairs(pairs, n_arms))

    def _encode_pairs(self, pairs: Any, n_arms: int) -> Floats:
        if not self.pairs:
            if pairs is not None:
                raise InvalidArgument("pairs", "none are declared", "declare them: Context(…, pairs=d)")
            return _NO_PAIRS
        if pairs is None:
            raise InvalidArgument("pairs", "missing", f"give shape ({n_arms}, {self.pairs}), one row per arm")
        table = _table(pairs, "pairs")
        if table.shape != (n_arms, self.pairs):
            raise InvalidArgument("pairs", f"shape {table.shape}", f"give shape ({n_arms}, {self.pairs})")
        return table.reshape(-1)

    def _segment(self, given: Any) -> int:
        """The number of the segment of a context that ``encode`` has accepted."""
        number = 0
        for name in self.model.names(self.features):
            levels, value = self.features.levels[name], given.get(name)
            if is_missing(value) and "other" not in levels:
                raise InvalidArgument(
                    f"context[{name!r}]", "missing", f"give one of {list(levels)}: it makes the segment"
                )
            level = str(value) if str(value) in levels else "other"
            number = number * len(levels) + levels.index(level)
        return number

    @interpreted
    def with_arms(self, n: int, rows: Any) -> "Context":
        """The same context with features of ``n`` more arms."""
        if not self.arms.size:
            if rows is not None:
                raise InvalidArgument("features", "arms have none in this problem", "leave them out")
            return self
        if rows is None:
            raise InvalidArgument("features", "missing", f"give {self.arms.shape[1]} features for each new arm")
        more = encode_arms(self.arm_features, rows, "features")
        if more.shape != (n, self.arms.shape[1]):
            wrong = f"shape {more.shape} for {n} arms"
            raise InvalidArgument("features", wrong, f"give {self.arms.shape[1]} features for each new arm")
        return self._replace(arms=np.concatenate([self.arms, more]))


def encode_arms(features: Features, arms: Any, name: str = "arms") -> Floats:
    """Features of arms, as an array in [-1, 1] or one mapping per arm, encoded: (n_arms, d)."""
    if arms is None:
        return np.zeros((0, 0))
    if isinstance(arms, Sequence) and arms and isinstance(arms[0], Mapping):
        if features.standardised:
            wrong = f"{features.standardised[0]!r} has no range"
            raise InvalidArgument("arm_features", wrong, "give (low, high): arms are not standardised", "Context")
        return np.stack([encode(features, Frame(), one, f"{name}[{n}]") for n, one in enumerate(arms)])
    if features.names and is_frame(arms):
        raise InvalidArgument(name, "a data frame", f"give one mapping of {features.names} per arm")
    return _table(arms, name)


def _table(values: Any, name: str) -> Floats:
    """A table of features in [-1, 1], rounded to the grid."""
    dense = values.toarray() if hasattr(values, "toarray") else values
    try:
        table = np.array(dense, np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(
            name, f"{type(values).__name__} is not a table of numbers", "give one row per arm"
        ) from None
    if table.ndim != 2:
        raise InvalidArgument(name, f"shape {table.shape}", "give one row per arm")
    wrong = np.argwhere(~(np.abs(table) <= 1.0))
    if len(wrong):
        row, column = wrong[0].tolist()
        found = f"{table[row, column]} in row {row}, column {column}"
        raise InvalidArgument(name, found, "give numbers in [-1, 1], scaled if need be")
    return to_grid(table)
