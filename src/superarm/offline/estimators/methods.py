"""The estimators by name, with what each assumes and what it needs of the log."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.core.errors import InvalidArgument
from superarm.offline.estimators import importance, model_based, replay
from superarm.offline.estimators.importance import RoundScores
from superarm.offline.estimators.targets import SlateMixture, mix_slates

if TYPE_CHECKING:
    from superarm.offline.log import Log

SEMI_BANDIT = "what an arm does depends on neither its slot nor its slate-mates (log.check() tests it)"
STATIONARY = "the means of an arm did not change over the log, within a group of rounds"
OVERLAP = "every slate that the target may show could have been shown in every round"
KNOWN_REWARD = "the value of a slate is its mean realised reward, E r(A; X)"
NORMAL = "the interval is that of the normal distribution: for many rounds, looked at once"

NEEDS = {
    "slate propensities": "propensity",
    "slot propensities": "propensity",
    "position propensities": "position_propensity",
    "inclusion probabilities": "inclusion",
}
"""What a log may lack, and the argument of ``Log.from_arrays`` that gives it."""


@dataclass(frozen=True)
class Method:
    """An estimator: its name, a title for people, its assumptions, and what it needs of the log.

    ``score`` returns the scores of a log's rounds for a target; None for the method of entry intervals.
    """

    name: str
    title: str
    assumptions: tuple[str, ...]
    needs: str = ""
    score: Callable[["Log", Any], RoundScores] | None = None


Scorer = Callable[["Log", SlateMixture], RoundScores]


def _of_mixture(score: Scorer) -> Callable[["Log", Any], RoundScores]:
    return lambda log, target: score(log, mix_slates(log, target))


def _weighted(score: Scorer) -> Callable[["Log", Any], RoundScores]:
    """The same for an estimator that weights slates: the logged ones have weight 1."""
    return _of_mixture(lambda log, mixture: importance.score_logged(log) if mixture.logged else score(log, mixture))


_SLATES = (OVERLAP, KNOWN_REWARD, NORMAL)
_CASCADE = ("what a slot adds to the reward depends on the slots up to it alone", *_SLATES)
_SLOTS = ("what a slot adds to the reward depends on its own arm alone: a linear reward", KNOWN_REWARD, NORMAL)
_PAIRS = ("the value of a slate is a sum over its pairs of slot and arm: a linear reward", KNOWN_REWARD, NORMAL)
_REPLAY = ("the slates of the log were drawn uniformly at random, whatever came before", KNOWN_REWARD, NORMAL)
_ANY_LOG = (SEMI_BANDIT, STATIONARY, "nothing about how the slates of the log were chosen; look as often as you like")
_ONE_STEP = (
    SEMI_BANDIT,
    "every arm of the target could have been shown in every round, with the logged inclusion probability",
    "the means of the log are near the true ones, or the reward is linear: errors of second order remain",
    "whether an outcome of a shown arm was seen does not depend on what it is",
    NORMAL,
)
_DIRECT, _ENTRIES = _of_mixture(model_based.score_direct), _of_mixture(model_based.score_one_step)
_IPS, _SNIPS = _weighted(importance.score_slate_ips), _weighted(importance.score_slate_snips)
_SLOT_IPS, _PAIR_FIT = _weighted(importance.score_independent_ips), _weighted(importance.score_pseudoinverse)
_CASCADE_IPS, _CASCADE_DR = _weighted(importance.score_cascade_ips), _weighted(importance.score_cascade_dr)

_ALL = (
    Method("intervals", "entry intervals", _ANY_LOG),
    Method("direct", "direct method", (SEMI_BANDIT, STATIONARY, NORMAL), score=_DIRECT),
    Method("one_step", "entrywise one-step estimator", _ONE_STEP, "inclusion probabilities", _ENTRIES),
    Method("ips", "slate IPS", _SLATES, "slate propensities", _IPS),
    Method("snips", "self-normalised slate IPS", _SLATES, "slate propensities", _SNIPS),
    Method("independent_ips", "independent IPS", _SLOTS, "position propensities", _SLOT_IPS),
    Method("cascade_ips", "cascade (reward-interaction) IPS", _CASCADE, "slot propensities", _CASCADE_IPS),
    Method("cascade_dr", "cascade doubly robust", _CASCADE, "slot propensities", _CASCADE_DR),
    Method("pseudoinverse", "pseudoinverse (fitted to the log)", _PAIRS, score=_PAIR_FIT),
    Method("replay", "replay", _REPLAY, score=replay.score_replay),
)

METHODS: dict[str, Method] = {method.name: method for method in _ALL}
"""Every estimator by its name."""


def find_method(log: "Log", name: str) -> Method:
    """The estimator of that name; refuse a name that is unknown, and one that needs what the log lacks."""
    if name not in METHODS:
        raise InvalidArgument("method", f"unknown {name!r}", f"give one of {', '.join(METHODS)}")
    method = METHODS[name]
    if method.needs and not has(log, method.needs):
        raise InvalidArgument(
            "method",
            f"{name!r} needs {method.needs}, which the log lacks in some rounds",
            f"give {NEEDS[method.needs]}= with the log, or take method='intervals'",
        )
    return method


def has(log: "Log", what: str) -> bool:
    """Whether the log knows in every round what a method needs (a key of ``NEEDS``)."""
    if what == "slate propensities":
        return bool(np.isfinite(importance.last_prefix(log)).all())
    known = {
        "slot propensities": log.rows.prefix,
        "position propensities": log.rows.position_propensity,
        "inclusion probabilities": log.rows.inclusion,
    }
    return bool(np.isfinite(known[what][log.rows.slot >= 0]).all())
