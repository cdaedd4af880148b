"""The reply that explains a decision."""

from msgspec import Struct


class FeatureEffect(Struct, frozen=True):
    """What a feature adds to the estimated mean of an arm; of a logistic model, to its log-odds."""

    feature: str
    effect: float


class ExplainedArmReply(Struct, frozen=True):
    """An arm of a slate: its estimated and its optimistic (or sampled) parameters, one per item that it can touch.

    ``gain`` is what it added to the arms before it at the optimistic parameters, ``estimated_gain`` at the estimates.
    """

    arm: str
    estimate: list[float]
    optimistic: list[float]
    gain: float
    estimated_gain: float
    features: list[FeatureEffect]


class ExplanationReply(Struct, frozen=True):
    """Why these arms, by what is known now; a pending decision as if it was not made yet."""

    id: str
    problem: str
    arms: list[ExplainedArmReply]
