"""The context of a problem as its owner describes it: features of users, arms and pairs, and the model."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from superarm.context import Context, Features, LinearModel, LogisticModel, Segments
from superarm.context.design import design_of
from superarm.context.models import MAX_KEPT
from superarm.core.errors import InvalidArgument
from superarm.problem import Problem
from superarm.service.domain.components import Name, each_arm

MAX_COORDINATES, MAX_LEVELS, MAX_WORDS, MAX_PAIRS = 1024, 1024, 1000, 1_000_000
MAX_CONTEXT_NUMBERS = 20_000_000
"""The most numbers that a problem may keep of its contexts: 160 megabytes."""

FeatureName = Annotated[str, Meta(min_length=1, max_length=100)]
Text = Annotated[str, Meta(max_length=1000)]
Texts = Annotated[list[Text], Meta(max_length=MAX_WORDS)] | Annotated[dict[Text, float], Meta(max_length=MAX_WORDS)]
FeatureValue = int | float | Text | Texts | None
"""The value of a feature: a number, a text, or texts, with or without weights, for a hashed one; null if missing."""

Vector = Annotated[list[float], Meta(max_length=MAX_COORDINATES)]
GivenFeatures = Annotated[dict[FeatureName, FeatureValue], Meta(max_length=MAX_COORDINATES)] | Vector
"""Features of a user or an arm: values by name, or the numbers themselves where ``d`` is declared."""


class FeaturesSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which features there are, as ``superarm.Features`` declares them.

    Parameters
    ----------
    numeric
        Numeric features by name, with their ranges; one without a range is standardised.
    categorical
        Categorical features by name, with their values.
    hashed
        Features that are words, by name, with the number of coordinates that they are hashed to.
    missing
        The names of features that may be missing.
    d
        In place of all others: features are that many numbers in [-1, 1].
    """

    numeric: dict[FeatureName, tuple[float, float] | None] = field(default_factory=dict)
    categorical: dict[FeatureName, Annotated[list[Text], Meta(min_length=1, max_length=MAX_LEVELS)]] = field(
        default_factory=dict
    )
    hashed: dict[FeatureName, Annotated[int, Meta(ge=2, le=MAX_COORDINATES)]] = field(default_factory=dict)
    missing: list[FeatureName] = field(default_factory=list)
    d: Annotated[int, Meta(ge=0, le=MAX_COORDINATES)] = 0

    def build(self) -> Features:
        """The library's declaration."""
        return Features(self.numeric, self.categorical, self.hashed, self.missing, self.d)


class SegmentsParameters(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How users are divided.

    Parameters
    ----------
    by
        The categorical features that make the segments; all by default.
    pooling
        How many observations of all segments together count in each of them.
    """

    by: list[FeatureName] = field(default_factory=list)
    pooling: Annotated[float, Meta(ge=0.0, le=1e9)] = 0.0


class RegressionParameters(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The parameters of a linear model.

    Parameters
    ----------
    shared
        Which entries share parameters: none (false), those of an arm (``arms``), or all (true).
    intercept
        Whether a constant is added to the features.
    """

    shared: bool | Literal["arms"] = False
    intercept: bool = True


class LogisticParameters(RegressionParameters, frozen=True, omit_defaults=True):
    """The parameters of a logistic model.

    Parameters
    ----------
    shared
        Which entries share parameters: none (false), those of an arm (``arms``), or all (true).
    intercept
        Whether a constant is added to the features.
    prior_mean
        The mean that is expected before anything is observed.
    kept
        How many observations are kept for refits.
    """

    prior_mean: Annotated[float, Meta(gt=0.0, lt=1.0)] = 0.5
    kept: Annotated[int, Meta(ge=0, le=MAX_KEPT)] = 16384


class ModelSpec(Struct, frozen=True, forbid_unknown_fields=True, tag_field="name", omit_defaults=True):
    """A model by name, with its parameters."""

    def build(self) -> Any:
        """The library's model."""
        raise NotImplementedError


class SegmentsSpec(ModelSpec, frozen=True, tag="segments", omit_defaults=True):
    """One tally per segment of users."""

    parameters: SegmentsParameters = SegmentsParameters()

    def build(self) -> Any:
        return Segments(self.parameters.by, self.parameters.pooling)


class LinearSpec(ModelSpec, frozen=True, tag="linear", omit_defaults=True):
    """Parameters that are linear in the features, learnt by ridge regression."""

    parameters: RegressionParameters = RegressionParameters()

    def build(self) -> Any:
        return LinearModel(self.parameters.shared, self.parameters.intercept)


class LogisticSpec(ModelSpec, frozen=True, tag="logistic", omit_defaults=True):
    """Log-odds that are linear in the features."""

    parameters: LogisticParameters = LogisticParameters()

    def build(self) -> Any:
        own = self.parameters
        return LogisticModel(own.shared, own.intercept, own.prior_mean, own.kept)


AnyModelSpec = SegmentsSpec | LinearSpec | LogisticSpec


class ContextSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Features of users, arms and pairs, and the model that learns from them, as ``superarm.Context`` takes them.

    Parameters
    ----------
    features
        The features of users.
    model
        The model that learns from features.
    arms
        The features of every arm: values by name as ``arm_features`` declares them, or numbers in [-1, 1].
    arm_features
        Which features arms have.
    interactions
        Whether products of features of users and arms are used, too.
    pairs
        How many numbers each pair of a user and an arm has.
    stored
        What is kept of the context of a decision: as it was ``given``, or its ``encoded`` form alone.
    items_from
        A categorical feature whose value is the item that a decision is about, if it names no ``items``.
    """

    features: FeaturesSpec = FeaturesSpec()
    model: AnyModelSpec = SegmentsSpec()
    arms: dict[Name, GivenFeatures] | None = None
    arm_features: FeaturesSpec | None = None
    interactions: bool = True
    pairs: Annotated[int, Meta(ge=0, le=MAX_COORDINATES)] = 0
    stored: Literal["given", "encoded"] = "given"
    items_from: FeatureName | None = None


def to_context(spec: ContextSpec, arms: list[str]) -> Context:
    """The library's context of a problem with these arms; ``InvalidArgument`` says what does not fit.

    >>> to_context(ContextSpec(FeaturesSpec(categorical={"country": ["NO", "SE"]})), ["a"]).n_segments
    2
    """
    try:
        declared = None if spec.arm_features is None else spec.arm_features.build()
        rows = None if spec.arms is None else each_arm(spec.arms, arms, "arms")
        features = spec.features.build()
        context = Context(features, rows, spec.model.build(), spec.interactions, spec.pairs, declared)
    except InvalidArgument as error:
        raise InvalidArgument(f"context.{error.argument}", error.wrong, error.remedy) from None
    if spec.stored == "encoded" and features.standardised:
        wrong = f"{features.standardised[0]!r} is standardised by the values that were given"
        raise InvalidArgument("context.stored", wrong, "give the feature a range, or store contexts as given")
    return context


def check_context(problem: Problem) -> None:
    """Refuse a context that would need too much memory."""
    context = problem.context
    if context is None:
        return
    d = context.dimension(problem.n_items)
    if d:
        numbers = design_of(problem).n_groups(problem.support) * (d * (d + 1) // 2)
    else:
        numbers = 3 * context.n_segments * problem.n_entries
    if numbers > MAX_CONTEXT_NUMBERS:
        remedy = f"at most {MAX_CONTEXT_NUMBERS}: use fewer features or segments, or share parameters"
        raise InvalidArgument("context", f"it would keep {numbers} numbers", remedy)
    if context.pairs * problem.n_arms > MAX_PAIRS:
        raise InvalidArgument("context.pairs", f"{context.pairs} of {problem.n_arms} arms", f"at most {MAX_PAIRS}")


def check_items_from(spec: ContextSpec | None, items: list[str], has_all_items: bool) -> None:
    """Refuse a feature that cannot say what a decision is about; with ``has_all_items``, every arm has every item."""
    if spec is None or spec.items_from is None:
        return
    levels = spec.features.categorical.get(spec.items_from)
    if levels is None:
        known = ", ".join(spec.features.categorical) or "none"
        wrong = f"{spec.items_from!r} is no categorical feature"
        raise InvalidArgument("context.items_from", wrong, f"name one of them: {known}")
    unknown = next((level for level in levels if level not in items and level != "other"), None)
    if unknown is not None:
        wrong = f"the value {unknown!r} of {spec.items_from!r} is no item"
        raise InvalidArgument("context.items_from", wrong, 'let its values be items, or "other" for all of them')
    if not has_all_items:
        wrong = "the problem has a support, or triggered arms"
        raise InvalidArgument("context.items_from", wrong, "leave it out: such decisions are about all items")
