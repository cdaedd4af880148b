"""Context: what varies from decision to decision, and the model of how outcomes depend on it."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from superarm.context.encoding import encode, is_missing, to_grid
from superarm.context.features import Features
from superarm.context.frames import Frame
from superarm.context.models import ALL, ENTRIES, MAX_SHARED, MAX_UNSHARED, Model, Segments
from superarm.core.arrays import Floats, Ints, count
from superarm.core.component import Component
from superarm.core.errors import InvalidArgument
from superarm.output.labels import is_frame

_NO_PAIRS = np.zeros(0)


class EncodedContext(NamedTuple):
    """The context of one decision as numbers; this is what a decision's record stores.

    ``segment`` is the number of the user's segment (0 without segments), ``x`` the user's vector, with a leading 1 if
    the model has an intercept, and ``pairs`` the features of the pairs of user and arm, flat, one row per arm.
    """

    segment: int
    x: Floats
    pairs: Floats


@dataclass
class Contexts:
    """The contexts of R decisions, as ``View.context`` and ``Feedback.context`` hold them.

    Parameters
    ----------
    segment, x, pairs
        As in ``EncodedContext``: (R,), (R, n_user) and (R, n_arms, n_pair).
    t
        Which decision of its segment each one is, from 1, (R,).
    pending
        The precision of decisions without feedback, in the shape of ``RegressionSums.precision``; None is none.
    weights, shifts
        What ``Policy.weigh`` fixed when the decision was made, in the shape of outcomes: an observation of weight w and
        outcome X adds w X to the response, or X + shift for a logistic model. One of weight 0 is not recorded.
    frame
        The version of the frame in which features were standardised.
    """

    segment: Ints
    x: Floats
    pairs: Floats
    t: Ints
    pending: Floats | None = None
    weights: Floats | None = None
    shifts: Floats | None = None
    frame: int = 0

    @classmethod
    def of(cls, encoded: Sequence[EncodedContext], t: Any, n_arms: int, frame: int = 0) -> "Contexts":
        """The contexts of some decisions; ``t`` (R,) counts those of each segment."""
        pairs = np.array([one.pairs for one in encoded]).reshape(len(encoded), n_arms, -1)
        segments = np.array([one.segment for one in encoded], np.int64)
        return cls(segments, np.array([one.x for one in encoded]), pairs, np.asarray(t, np.int64), frame=frame)


class Context(Component):
    r"""Features of users, arms and pairs, and the model that learns from them.

    With ``x`` the user's features and :math:`z_j` those of arm j, each with a leading 1, an entry has the features

    .. math:: \phi_{ij} = [\,x \otimes z_j,\ pair_j,\ e_i\,]

    (``interactions=True``), or :math:`[x, z_j, pair_j, e_i]` without the leading 1 of :math:`z_j`. The indicator
    :math:`e_i` of the item is left out if there is one item, or if every entry has a parameter vector of its own. The
    features of arms enter models that are shared over all arms, and the prior of ``pooled_thompson`` on segments.

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
    >>> from superarm.context import Features, models
    >>> features = Features(numeric={"age": (0, 100)}, categorical={"country": ["NO", "SE", "other"]})
    >>> context = Context(features, arms=[[1.0, 0.0], [0.0, 1.0]], model=models.Linear(shared=True))
    >>> context.dimension(n_items=1)
    15
    """

    features: Features
    arms: Any = None
    model: Any = None
    interactions: bool = True
    pairs: int = 0
    arm_features: Any = None

    def check(self) -> None:
        features: Any = self.features
        if not isinstance(features, Features):
            wrong = f"{features!r} is not a declaration"
            raise InvalidArgument("features", wrong, "give Features(…)", "Context")
        self.convert("model", Segments() if self.model is None else self.model)
        self.require_family("model", Model, "models.Linear()")
        self.convert("arm_features", Features() if self.arm_features is None else self.arm_features)
        self.convert("arms", encode_arms(self.arm_features, self.arms))
        self.convert("interactions", bool(self.interactions))
        self.convert("pairs", count(self.pairs, "pairs", 0))
        self.model.validate(self.features, self.arms.shape[1])

    @property
    def n_segments(self) -> int:
        """How many segments there are; 1 for a model without segments."""
        return self.model.n_segments(self.features) if isinstance(self.model, Segments) else 1

    @cached_property
    def segment_names(self) -> list[str]:
        """The names of the segments, in the order of their numbers; empty for a model without segments.

        >>> features = Features(categorical={"country": ["NO", "SE"], "device": ["phone", "other"]})
        >>> Context(features).segment_names[:3]
        ['country=NO, device=phone', 'country=NO, device=other', 'country=SE, device=phone']
        """
        by = self.model.names(self.features) if isinstance(self.model, Segments) else []
        if not by:
            return []
        combined = itertools.product(*(self.features.levels[name] for name in by))
        return [", ".join(f"{name}={level}" for name, level in zip(by, levels, strict=True)) for levels in combined]

    @property
    def n_user(self) -> int:
        """The length of the user's vector."""
        return len(self.vector(np.zeros(self.features.size)))

    def dimension(self, n_items: int) -> int:
        """How many coordinates the features of an entry have; 0 for a model of segments."""
        if isinstance(self.model, Segments):
            return 0
        arm = self.arm_vectors(1).shape[1]
        own = self.n_user * arm if self.crossed else self.n_user + arm - 1
        return own + self.pairs + self.n_indicators(n_items)

    @property
    def crossed(self) -> bool:
        """Whether features of user and arm are multiplied; so they are where arms have the feature 1 alone."""
        return self.interactions or self.model.shared != ALL

    def arm_vectors(self, n_arms: int) -> Floats:
        """The numbers :math:`z_j` of each arm, the first 1 unless the model has no intercept, (n_arms, n)."""
        shared = self.model.shared == ALL
        one = self.model.intercept or not (shared and self.interactions)
        ones = np.ones((len(self.arms) if shared else n_arms, int(one)))
        return np.concatenate([ones, self.arms], axis=1) if shared else ones

    def n_indicators(self, n_items: int) -> int:
        """How many coordinates of an entry's features indicate its item."""
        return n_items if n_items > 1 and self.model.shared != ENTRIES else 0

    def validate(self, n_arms: int, n_items: int) -> None:
        """Refuse features for another number of arms, and too many coordinates."""
        if self.arms.size and len(self.arms) != n_arms:
            raise InvalidArgument("arms", f"{len(self.arms)} rows for {n_arms} arms", "give one row per arm", "Context")
        d = self.dimension(n_items)
        most = MAX_UNSHARED if self.model.shared != ALL else MAX_SHARED
        if d > most:
            kind = "is that of one entry or arm" if most == MAX_UNSHARED else "all entries share"
            wrong = f"{d} coordinates of a parameter vector that {kind}"
            raise InvalidArgument("features", wrong, f"use at most {most}", "Context")

    def vector(self, encoded: Floats) -> Floats:
        """The user's vector: the encoded features, after a 1 if the model has an intercept or nothing else."""
        if not self.model.intercept and encoded.size:
            return encoded
        whole = np.empty(1 + len(encoded))
        whole[0], whole[1:] = 1.0, encoded
        return whole

    def encode(self, given: Any, frame: Frame, n_arms: int, pairs: Any = None) -> EncodedContext:
        """A context as users give it, as numbers; ``pairs`` (n_arms, pairs) are the features of the pairs."""
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

    def segments(self, given: Sequence[Any]) -> list[int]:
        """The numbers of the segments of contexts as ``ask`` takes them, or of names or numbers of segments."""
        if not isinstance(self.model, Segments):
            wrong = f"past observations with a model of type {type(self.model).__name__}"
            raise InvalidArgument("contexts", wrong, "take a model of segments, or ask and tell with contexts")
        return [self._find_segment(one) for one in given]

    def _find_segment(self, given: Any) -> int:
        if isinstance(given, str | int | np.integer):
            known: Any = self.segment_names if isinstance(given, str) else range(self.n_segments)
            if given not in known:
                raise InvalidArgument("contexts", f"there is no segment {given!r}", f"give one of {list(known)[:5]}")
            return int(known.index(given))
        encode(self.features, Frame(), given)
        return self._segment(given)

    def _segment(self, given: Any) -> int:
        """The number of the segment of a context that ``encode`` has accepted."""
        number = 0
        for name in self.model.names(self.features):
            levels, value = self.features.levels[name], given.get(name)
            if is_missing(value) and "other" not in levels:
                remedy = f"give one of {list(levels)}: it makes the segment"
                raise InvalidArgument(f"context[{name!r}]", "missing", remedy)
            level = str(value) if str(value) in levels else "other"
            number = number * len(levels) + levels.index(level)
        return number

    def with_arms(self, n: int, rows: Any) -> "Context":
        """The same context with features of ``n`` more arms."""
        if not self.arms.size:
            if rows is not None:
                raise InvalidArgument("features", "arms have none in this problem", "leave them out")
            return self
        needed = f"give {self.arms.shape[1]} features for each new arm"
        if rows is None:
            raise InvalidArgument("features", "missing", needed)
        more = encode_arms(self.arm_features, rows, "features")
        if more.shape != (n, self.arms.shape[1]):
            raise InvalidArgument("features", f"shape {more.shape} for {n} arms", needed)
        return Context(**self.parameters() | {"arms": np.concatenate([self.arms, more])})


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
        wrong = f"{type(values).__name__} is not a table of numbers"
        raise InvalidArgument(name, wrong, "give one row per arm") from None
    if table.ndim != 2:
        raise InvalidArgument(name, f"shape {table.shape}", "give one row per arm")
    wrong_places = np.argwhere(~(np.abs(table) <= 1.0))
    if len(wrong_places):
        row, column = wrong_places[0].tolist()
        found = f"{table[row, column]} in row {row}, column {column}"
        raise InvalidArgument(name, found, "give numbers in [-1, 1], scaled if need be")
    return to_grid(table)
