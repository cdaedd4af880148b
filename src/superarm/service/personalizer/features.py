"""Personalizer's features as words with weights, and the context of the problems that learn from them.

The rule: every leaf of the JSON becomes a word. Its name is the path to it, joined by dots; a text or a truth value is
part of the word, ``device.mobile=true``, with the weight 1, and a number v has the word of its path and the weight
v / (1 + abs(v)). Elements of a list are leaves of the same path, null is left out. The words of the context are hashed
into one feature, those of an action, with its id, into another; a linear model that all actions share has all products
of the two.
"""

from collections.abc import Iterator
from typing import Any

from superarm.service.domain.context_spec import (
    MAX_WORDS,
    ContextSpec,
    FeaturesSpec,
    LinearSpec,
    RegressionParameters,
)
from superarm.service.domain.spec import PolicySpec
from superarm.service.errors import invalid

CONTEXT, ACTION = "context", "action"
"""The names of the two hashed features."""

CONTEXT_BUCKETS, ACTION_BUCKETS = 8, 20
"""With the constants, 9 x 21 = 189 coordinates: a choice takes a few milliseconds."""

MAX_DEPTH = 10

MAX_LEAVES = 10_000
"""Elements of lists are leaves of the same word: so many leaves may there be in all."""

POLICY = PolicySpec("comb_lin_ts")
"""The policy of problems with features: its draws have the scale of the posterior, whatever the number of features."""

ROUTE = "superarm"
"""The name in ``contextFeatures`` that says which problem is meant; it is no feature."""


def flatten(features: list[dict[str, Any]], field: str) -> dict[str, float]:
    """Words with weights; ``field`` is named in errors.

    >>> flatten([{"time": "morning"}, {"device": {"mobile": True, "age": 3}}], "contextFeatures")
    {'time=morning': 1.0, 'device.mobile=true': 1.0, 'device.age': 0.75}
    """
    words: dict[str, float] = {}
    n = 0
    for key, value in ((key, value) for group in features for key, value in group.items() if key != ROUTE):
        for word, weight in _leaves(key, value, field, 1):
            words[word] = words.get(word, 0.0) + weight
            n += 1
            if len(words) > MAX_WORDS or n > MAX_LEAVES:
                most = f"{MAX_WORDS} features, and {MAX_LEAVES} values in all"
                raise invalid(
                    field, f"more than {MAX_WORDS if n <= MAX_LEAVES else MAX_LEAVES}", f"give at most {most}"
                )
    return words


def _leaves(path: str, value: Any, field: str, depth: int) -> Iterator[tuple[str, float]]:
    if depth > MAX_DEPTH or len(path) > 500:
        raise invalid(field, f"nested too deep at {path[:40]!r}", f"nest at most {MAX_DEPTH} levels")
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(f"{path}.{key}", part, field, depth + 1)
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(path, part, field, depth + 1)
    elif isinstance(value, bool):
        yield f"{path}={str(value).lower()}", 1.0
    elif isinstance(value, str):
        yield f"{path}={value[:400]}", 1.0
    elif value is not None:
        yield path, value / (1.0 + abs(value))


def action_words(id: str, features: list[dict[str, Any]]) -> dict[str, float]:
    """The words of an action: its id, so that actions without features differ, and its features."""
    return {f"id={id}": 1.0} | flatten(features, "actions.features")


def feature_context(arms: list[str]) -> ContextSpec:
    """The context of a problem that learns from features; ``arms`` are there from the beginning, without any."""
    return ContextSpec(
        features=FeaturesSpec(hashed={CONTEXT: CONTEXT_BUCKETS}),
        model=LinearSpec(RegressionParameters(shared=True)),
        arms={arm: {ACTION: {}} for arm in arms},
        arm_features=FeaturesSpec(hashed={ACTION: ACTION_BUCKETS}),
    )
