"""Contexts become the numbers of the compiled engine, and bad input is answered in its words."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as old
from superarm.context import encoding as old_encoding
from superarm.context.design import longest_features
from superarm.context.design import make_design as old_design
from superarm import context as new
from superarm.context import encoding
from superarm.context.design import make_design

SHOP = {
    "numeric": {"age": (0, 100), "income": None},
    "categorical": {"country": ["NO", "SE", "other"], "device": ["phone", "desktop"]},
    "hashed": {"query": 5},
    "missing": ["age"],
}
PLACES = {"income": (30_000.0, 12_000.0)}
numbers = st.one_of(st.none(), st.just(math.nan), st.floats(-1e6, 1e6), st.integers(-200, 200))
words = st.one_of(st.none(), st.text(max_size=4), st.lists(st.text(max_size=3), max_size=3))


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "age": numbers,
            "income": numbers,
            "country": st.sampled_from(["NO", "SE", "DK", None]),
            "device": st.sampled_from(["phone", "desktop", None]),
            "query": words,
        },
    )
)
@settings(max_examples=60, deadline=None)
def test_contexts_are_encoded_as_before(context):
    frames = old.context.Frame(1, PLACES), new.Frame(1, PLACES)
    theirs = old_encoding.encode(old.Features(**SHOP), frames[0], context)
    features = new.Features(**SHOP)
    np.testing.assert_array_equal(encoding.encode(features, frames[1], context), theirs)
    assert features.coordinates == old.Features(**SHOP).coordinates
    hashed = encoding.hashed_words(features, context)
    assert encoding.name_coordinates(features, hashed) == old_encoding.name_coordinates(old.Features(**SHOP), hashed)


WRONG = [
    lambda sa, models: sa.Features(numeric={"age": (3, 3)}),
    lambda sa, models: sa.Features(categorical={"c": ["a", "a"]}),
    lambda sa, models: sa.Features(numeric=["a"], hashed={"a": 4}),
    lambda sa, models: sa.Features(numeric=["age"], missing=["ag"]),
    lambda sa, models: sa.Features(d=3, numeric=["age"]),
    lambda sa, models: sa.Features(d=-1),
    lambda sa, models: sa.Context("age"),
    lambda sa, models: sa.Context(sa.Features(numeric=["age"])),
    lambda sa, models: sa.Context(sa.Features(d=2), model=models.Linear(shared=True)),
    lambda sa, models: sa.Context(sa.Features(d=2), arms=[[2.0]], model=models.Linear(shared=True)),
    lambda sa, models: sa.Context(sa.Features(numeric=["age"]), model=models.Linear(intercept=False)),
    lambda sa, models: models.Segments(by="country"),
    lambda sa, models: sa.Context(sa.Features(categorical={"a": ["x"]}), model=models.Segments(by=["b"])),
    lambda sa, models: sa.Context(sa.Features(d=2), model=models.Linear(), pairs=-1),
    lambda sa, models: sa.Context(sa.Features(d=2), model=models.Linear()).encode([3.0, 0.0], sa_frame(sa), 4),
    lambda sa, models: sa.Context(sa.Features(d=2), model=models.Linear()).encode([0.0], sa_frame(sa), 4),
    lambda sa, models: sa.Context(sa.Features(numeric={"age": (0, 1)}), model=models.Linear()).encode(
        {"ag": 1}, sa_frame(sa), 4
    ),
    lambda sa, models: sa.Context(sa.Features(d=1), model=models.Linear(), pairs=2).encode(
        [0.0], sa_frame(sa), 4, [[1.0]]
    ),
]


def sa_frame(sa):
    return sa.context.Frame() if sa is old else sa.Frame()


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_said_as_before(wrong):
    with pytest.raises(old.InvalidArgument) as theirs:
        wrong(old, old.models)
    with pytest.raises(old.InvalidArgument) as ours:
        wrong(new, new.models)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("value", [{"shared": "all "}, {"shared": None}])
def test_models_refuse_wrong_parameters(value):
    with pytest.raises(old.InvalidArgument, match="one per arm"):
        new.models.Linear(**value)
    with pytest.raises(old.InvalidArgument, match="kept"):
        new.models.Logistic(kept=-1)
    with pytest.raises(old.InvalidArgument, match="prior_mean"):
        new.models.Logistic(prior_mean=1.0)


@pytest.mark.parametrize("interactions", [True, False])
@pytest.mark.parametrize(
    "kind", [{"shared": True}, {"shared": "arms"}, {"shared": False}, {"shared": True, "intercept": False}]
)
@pytest.mark.parametrize("n_items", [1, 3])
def test_designs_have_the_same_dimensions(interactions, kind, n_items):
    arms = np.linspace(-1, 1, 8).reshape(4, 2)
    contexts = [
        sa.Context(sa.Features(d=3), arms, models.Linear(**kind), interactions, 2)
        for sa, models in ((old, old.models), (new, new.models))
    ]
    theirs, ours = old_design(contexts[0], 4, n_items), make_design(contexts[1], 4, n_items)
    assert ours.d == contexts[0].dimension(n_items) == contexts[1].dimension(n_items)
    assert ours.longest == longest_features(contexts[0], theirs)
    more = [context.with_arms(1, [[0.5, 0.25]]).arms.tolist() for context in contexts]
    assert more[0] == more[1]


def test_segments_have_names_and_numbers():
    features = new.Features(categorical={"country": ["NO", "SE", "other"], "device": ["phone", "other"]})
    context = new.Context(features)
    number = context.encode({"country": "DK", "device": "phone"}, new.Frame(), 3).segment
    assert (context.n_segments, context.segment_names[number]) == (6, "country=other, device=phone")
    assert context == new.Context(features)
    assert {context: 1}[new.Context(features)] == 1
