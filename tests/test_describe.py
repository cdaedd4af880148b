"""Descriptions: plain data that JSON holds, built again to the last bit, and nothing else built."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

import superarm as sa
from superarm.core.describe import build, describe
from superarm.core.errors import InvalidArgument


def through_json(thing):
    return build(json.loads(json.dumps(describe(thing), allow_nan=False)))


@given(
    st.sampled_from([np.float64, np.int64, np.bool_, np.dtype(">f8")]).flatmap(
        lambda kind: arrays(kind, st.lists(st.integers(0, 3), max_size=3).map(tuple))
    )
)
def test_arrays_survive_to_the_bit(array):
    again = through_json(array)
    assert again.shape == array.shape
    assert again.dtype == array.dtype.newbyteorder("=")
    assert np.array_equal(again, array, equal_nan=array.dtype.kind == "f")
    assert again.flags.writeable


def test_a_component_is_its_name_and_its_fields():
    assert describe(sa.bc_ucb(1.5)) == {
        "type": "superarm.policies.index_policy:IndexPolicy",
        "confidence": {"type": "superarm.indices.bernstein:Bernstein", "rho": 1.5},
        "oracle": {"type": "superarm.oracles.default:Default"},
        "intake": {"type": "superarm.intake:Exact"},
    }


@pytest.mark.parametrize("rho", [0.1, 1 / 3, 5e-324, 1.7976931348623157e308])
def test_numbers_survive_to_the_bit(rho):
    assert through_json(sa.indices.Bernstein(rho)).rho == rho


def test_problems_survive():
    mask = sparse.csr_array([[1, 0, 1], [0, 1, 0]])
    for problem in (
        sa.Problem(2, 3, sa.Logistic(0.7), sa.Explicit([[0], [0, 1]]), weights=[0.1, 0.2, 0.3]),
        sa.Problem(2, 3, sa.Coverage(), sa.Subsets(2), support=mask),
    ):
        again = through_json(problem)
        assert type(again) is sa.Problem
        assert repr(again) == repr(problem)
        assert again.weights.tobytes() == problem.weights.tobytes()
        p = np.linspace(0.1, 0.9, problem.n_entries)
        assert again.value(p, [0]) == problem.value(p, [0])


def test_numpy_scalars_become_plain():
    assert type(describe(np.float64(0.5))) is float
    assert type(describe(np.int64(2))) is int


@pytest.mark.parametrize(
    ("description", "said"),
    [
        ({"type": "os:system"}, "unknown component 'os:system'; import os first"),
        ({"type": "superarm.indices.bernstein:math"}, "unknown component"),
        ({"type": "superarm.indices.bernstein:Bernstein"}, "Bernstein lacks 'rho'; describe it anew"),
        ({"type": "superarm.indices.bernstein:Bernstein", "rho": -3.0}, "Bernstein.rho: -3.0 is not positive"),
        ({"type": "superarm.indices.bernstein:Bernstein", "rho": "3x"}, "rho: '3x' is not a number"),
        ({"type": "superarm.actions.subsets:Subsets", "k": 0}, "Subsets.k: 0 is below 1"),
    ],
)
def test_bad_descriptions_are_refused(description, said):
    with pytest.raises(InvalidArgument, match=said):
        build(description)


def test_a_whole_number_for_a_float_is_the_same_component():
    built = build({"type": "superarm.indices.bernstein:Bernstein", "rho": 3})
    assert type(built.rho) is float


def test_an_index_policy_is_stored_under_the_names_of_0_1_0():
    usual, triggered = describe(sa.kl_ucb()), describe(sa.bcucb_t())
    assert (usual["type"], triggered["type"]) == (
        "superarm.policies.index_policy:IndexPolicy",
        "superarm.policies.optimistic:Optimistic",
    )
    assert list(usual) == list(triggered) == ["type", "confidence", "oracle", "intake"]
    assert repr(build(usual)) == repr(sa.kl_ucb())
    assert repr(build(triggered)) == repr(sa.bcucb_t())


def test_optimistic_warns_and_is_an_index_policy_without_a_start():
    with pytest.warns(DeprecationWarning, match="without_start"):
        optimistic = sa.policies.Optimistic
    assert repr(optimistic(sa.indices.Bernstein())) == repr(sa.bcucb_t())
