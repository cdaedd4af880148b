"""Features: what contexts become, that bad input is answered by name, and that standardisation is exact."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import superarm as sa
from superarm.context import FeatureMoments, Frame, frame_number
from superarm.context.design import make_design
from superarm.context.encoding import encode
from superarm.describe import build, describe

SHOP = sa.Features(
    numeric={"age": (0, 100), "basket": None},
    categorical={"country": ["NO", "SE", "other"], "device": ["phone", "desk"]},
    hashed={"query": 8},
    missing=["age"],
)


def encoded(context, frame=Frame()):  # noqa: B008
    return dict(zip(SHOP.coordinates, encode(SHOP, frame, context).tolist(), strict=True))


def test_every_kind_of_feature_has_its_coordinates():
    found = encoded(
        {"age": 75, "basket": 130.0, "country": "NO", "device": "desk"}, Frame(1, {"basket": (100.0, 60.0)})
    )
    assert found["age"] == 0.5
    assert found["basket"] == 0.5
    assert [found[f"country={level}"] for level in ("NO", "SE", "other")] == [1.0, 0.0, 0.0]
    assert [found["device=phone"], found["device=desk"], found["age missing"]] == [0.0, 1.0, 0.0]
    assert all(found[f"query#{n}"] == 0.0 for n in range(8))


def test_values_outside_of_a_range_count_as_its_ends():
    assert encoded({"age": -5})["age"] == -1.0
    assert encoded({"age": 1e9})["age"] == 1.0


@pytest.mark.parametrize("nothing", [{}, {"age": None}, {"age": math.nan}, {"age": np.float64("nan")}])
def test_missing_values_are_at_the_centre_and_marked(nothing):
    found = encoded(nothing)
    assert (found["age"], found["age missing"]) == (0.0, 1.0)
    assert found["country=other"] == 1.0
    assert (found["device=phone"], found["device=desk"]) == (0.0, 0.0)


def test_unlisted_levels_are_other_ones():
    assert encoded({"country": "DK"})["country=other"] == 1.0


def test_hashed_values_have_length_one_and_stay_where_they_are():
    one, both = (np.array(list(encoded({"query": q}).values()))[-8:] for q in ("shoes", ["shoes", "red", "red"]))
    assert sorted(one) == [0.0] * 7 + [1.0]
    assert np.isclose(both @ both, 1.0, atol=2**-9)
    assert both[one == 1.0] > 0.0
    # part of the stored format: a hash that changes would mix up what was learnt
    assert (np.flatnonzero(one).tolist(), np.flatnonzero(both).tolist()) == ([0], [0, 4])


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"contry": "NO"}, "context: feature 'contry' is unknown, did you mean 'country'?"),
        ({"device": "fone"}, "context['device']: 'fone' is unknown, did you mean 'phone'?"),
        ({"age": "old"}, "context['age']: 'old' is not a finite number"),
        ({"age": math.inf}, "context['age']: inf is not a finite number"),
        ({"query": 7}, "context['query']: 7 is not text"),
        ([1.0], "context: list is not a mapping"),
    ],
)
def test_a_bad_context_is_answered_by_name(context, said):
    with pytest.raises(sa.InvalidArgument) as caught:
        encode(SHOP, Frame(), context)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("declaration", "said"),
    [
        ({"numeric": ["a"], "categorical": {"a": ["x"]}}, "features: 'a' is declared twice"),
        ({"numeric": {"a": (1, 1)}}, "numeric['a']: (1, 1) is empty"),
        ({"numeric": {"a": 3}}, "numeric['a']: 3 is not a range"),
        ({"categorical": {"a": ["x", "x"]}}, "categorical['a']"),
        ({"categorical": {"a": "xyz"}}, "categorical['a']"),
        ({"hashed": {"a": 1}}, "hashed['a']: 1 is not a whole number >= 2"),
        ({"numeric": ["age"], "missing": ["aeg"]}, "Features.missing: 'aeg' is unknown, did you mean 'age'?"),
        ({"d": 3, "numeric": ["a"]}, "Features.d: 3 beside named features"),
        ({"d": 1025}, "features: 1025 coordinates; use at most 1024"),
        ({"numeric": "age"}, "numeric: 'age' is not a mapping"),
    ],
)
def test_a_bad_declaration_is_refused(declaration, said):
    with pytest.raises(sa.InvalidArgument) as caught:
        sa.Features(**declaration)
    assert str(caught.value).startswith(said)


def test_plain_arrays_and_sparse_vectors_are_the_same():
    features = sa.Features(d=4)
    vector = np.array([0.5, 0.0, -0.25, 0.0])
    for same in (vector.tolist(), sparse.csr_array(vector[None]), {0: 0.5, 2: -0.25}, {"0": 0.5, "2": -0.25}):
        assert encode(features, Frame(), same).tolist() == vector.tolist()
    for bad, said in (([1, 2, 3, 4], "values range over [1, 4]"), ([0.0], "shape (1,)"), ({4: 1.0}, "coordinate 4")):
        with pytest.raises(sa.InvalidArgument) as caught:
            encode(features, Frame(), bad)
        assert said in str(caught.value)


@given(st.floats(-1e6, 1e6), st.floats(0.1, 1e6), st.floats(-1e7, 1e7))
def test_coordinates_are_on_the_grid(low, width, value):
    found = encode(sa.Features(numeric={"a": (low, low + width)}), Frame(), {"a": value})
    assert (found * 1024 == np.round(found * 1024)).all()
    assert np.abs(found).max() <= 1.0


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20), st.randoms())
def test_moments_do_not_depend_on_the_order_and_can_be_undone(values, random):
    first, second = FeatureMoments(["a"]), FeatureMoments(["a"])
    shuffled = random.sample(values, len(values))
    for one, other in zip(values, shuffled, strict=True):
        first.add("a", one)
        second.add("a", other)
    second.add("a", 7.25)
    second.add("a", 7.25, -1)
    assert first.frame(1) == second.frame(1)
    center, scale = first.frame(1).places["a"]
    assert np.isclose(center, np.mean(values), rtol=1e-6, atol=1e-6)
    deviation = np.std(values)
    assert np.isclose(scale, 3.0 * deviation, rtol=1e-4, atol=1e-2) or deviation < 1e-2
    assert FeatureMoments.from_plain(json.loads(json.dumps(first.to_plain()))).sums == first.sums


def test_frames_change_after_16_64_256_and_1024_contexts():
    changes = [n for n in range(1, 5000) if frame_number(n) != frame_number(n - 1)]
    assert changes == [16, 64, 256, 1024]


# ---- contexts of problems

ARMS = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]


def problem(context, n_arms=3, n_items=2):
    return sa.Problem(n_arms, n_items, sa.Coverage(), sa.Subsets(2), context=context)


def test_the_context_stays_with_the_problem():
    made = problem(sa.Context(SHOP, arms=ARMS, model=sa.models.Linear(shared=True)))
    for same in (
        pickle.loads(pickle.dumps(made)),
        build(json.loads(json.dumps(describe(made)))),
        made.changed(actions=sa.Subsets(1)),
    ):
        assert same.context.features == made.context.features
        assert same.context.model == made.context.model
        assert np.array_equal(same.context.arms, made.context.arms)


def test_a_problem_without_context_says_so():
    assert list(describe(problem(None))) == [
        "type",
        "n_arms",
        "n_items",
        "reward",
        "actions",
        "weights",
        "support",
        "context",
    ]
    assert build(describe(problem(None))).context is None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: sa.Context(SHOP, model=sa.models.Linear(shared=True)), "Context.arms: a model shared over all arms"),
        (lambda: sa.Context(sa.Features(d=2)), "Segments.by: there is no categorical feature"),
        (
            lambda: sa.Context(SHOP, model=sa.models.Segments(by=["contry"])),
            "Segments.by: 'contry' is unknown, did you",
        ),
        (lambda: sa.Context(SHOP, arms=[[2.0]]), "arms: 2.0 in row 0, column 0"),
        (lambda: sa.Context("shop"), "Context.features: 'shop' is not a declaration"),
        (lambda: sa.Context(SHOP, model=sa.models.Linear), "Context.model: LinearModel is a class; write"),
        (lambda: sa.models.Linear(shared="some"), "LinearModel.shared: 'some'; give False"),
        (lambda: sa.Context(SHOP, model=sa.models.Linear(intercept=False)), "LinearModel.intercept: 'basket' is"),
        (lambda: problem(sa.Context(SHOP, arms=ARMS), n_arms=4), "Context.arms: 3 rows for 4 arms"),
        (lambda: problem(sa.Context(sa.Features(d=64), model=sa.models.Linear())), "Context.features: 65 coordinates"),
        (
            lambda: problem(sa.Context(sa.Features(d=600), arms=ARMS, model=sa.models.Linear(shared=True))),
            "Context.features: 1805 coordinates",
        ),
        (lambda: problem("context"), "context: 'context' is not a context"),
    ],
)
def test_a_bad_context_of_a_problem_is_refused(make, said):
    with pytest.raises(sa.InvalidArgument) as caught:
        make()
    assert str(caught.value).startswith(said)


def test_the_largest_contexts_are_accepted():
    problem(sa.Context(sa.Features(d=63), model=sa.models.Linear()))
    problem(sa.Context(sa.Features(d=339), arms=ARMS, model=sa.models.Linear(shared=True)))


def test_arms_may_be_given_by_name():
    kinds = sa.Features(numeric={"price": (0, 10)}, categorical={"kind": ["shoe", "hat"]})
    made = sa.Context(
        sa.Features(d=1), [{"price": 10, "kind": "hat"}, {"price": 5}], sa.models.Linear(), arm_features=kinds
    )
    assert made.arms.tolist() == [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    with pytest.raises(sa.InvalidArgument, match="has no range"):
        sa.Context(sa.Features(d=1), [{"price": 1}], sa.models.Linear(), arm_features=sa.Features(numeric=["price"]))


@pytest.mark.parametrize("interactions", [True, False])
@pytest.mark.parametrize("kind", [{"shared": True}, {"shared": "arms"}, {"shared": False}], ids=str)
@pytest.mark.parametrize("n_items", [1, 3])
def test_designs_have_the_dimensions_of_their_features(interactions, kind, n_items):
    context = sa.Context(
        sa.Features(d=3), np.linspace(-1, 1, 8).reshape(4, 2), sa.models.Linear(**kind), interactions, 2
    )
    shared = kind["shared"] is True
    own = 4 * 3 if shared and interactions else 4 + 2 * shared  # of users, with an intercept, and of arms
    items = n_items if n_items > 1 and kind["shared"] else 0
    assert make_design(context, 4, n_items).d == context.dimension(n_items) == own + 2 + items
    assert context.with_arms(1, [[0.5, 0.25]]).arms[-1].tolist() == [0.5, 0.25]


def test_models_refuse_wrong_parameters():
    for wrong, said in (({"kept": -1}, "kept"), ({"prior_mean": 1.0}, "prior_mean"), ({"shared": None}, "one per arm")):
        with pytest.raises(sa.InvalidArgument, match=said):
            sa.models.Logistic(**wrong)


def test_segments_have_names_and_numbers():
    features = sa.Features(categorical={"country": ["NO", "SE", "other"], "device": ["phone", "other"]})
    context = sa.Context(features)
    number = context.encode({"country": "DK", "device": "phone"}, Frame(), 3).segment
    assert (context.n_segments, context.segment_names[number]) == (6, "country=other, device=phone")
    assert context == sa.Context(features)
    assert {context: 1}[sa.Context(features)] == 1
