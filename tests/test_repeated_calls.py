"""Kernels that are called again and again: the same answers, whatever comes between."""

import gc
import pickle
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import superarm as sa
from superarm._jit import kernel, verb
from superarm._repeated_calls import RepeatedCall, have_same_types


class Pair(NamedTuple):
    factor: float
    values: np.ndarray


@kernel
def weigh(pair, places):
    total = 0.0
    for n in range(len(places)):
        total += pair.factor * pair.values[places[n]]
    return total


VALUES = np.arange(12.0)
READ_ONLY = VALUES[:5].copy()
READ_ONLY.flags.writeable = False
ARGUMENTS = {
    "the same": (Pair(2.0, VALUES), np.array([1, 3])),
    "another array": (Pair(2.0, VALUES[:4] + 1.0), np.array([1, 3, 2])),
    "every second": (Pair(2.0, VALUES[::2]), np.array([1, 3])),
    "backwards": (Pair(2.0, VALUES[::-1]), np.array([1, 3])[::-1]),
    "read-only": (Pair(2.0, READ_ONLY), np.array([1, 3])),
    "of int32": (Pair(2.0, VALUES), np.array([1, 3], np.int32)),
    "of float32": (Pair(2.0, VALUES.astype(np.float32)), np.array([1, 3])),
    "an int": (Pair(3, VALUES), np.array([1, 3])),
    "a plain tuple": (Pair(2.0, VALUES), (1, 3)),
}


@pytest.mark.compiled("it is about machine code for types of arguments")
@pytest.mark.parametrize("between", ARGUMENTS)
@pytest.mark.parametrize("first", ["the same", "every second", "read-only"])
def test_arguments_of_other_types_are_seen(first, between):
    repeated = RepeatedCall(weigh)
    for name in (first, first, between, between, first, between, first, first):
        assert repeated(*ARGUMENTS[name]) == weigh.py_func(*ARGUMENTS[name])


def test_what_is_no_tuple_array_or_number_is_not_compared():
    assert have_same_types((1, 2.0, None, np.zeros(1)), (3, 4.0, None, np.zeros(2)))
    assert not have_same_types(([1],), ([2],))
    assert not have_same_types((1,), (1, 2))
    assert not have_same_types((np.zeros((3, 3)).T[:, :2],), (np.zeros((2, 2)),))


def test_an_array_that_was_changed_in_place_is_compared_again():
    values = np.zeros(6)
    before = (values,)
    assert have_same_types((values,), before)
    values.flags.writeable = False
    assert not have_same_types((values,), before)


class Doubling:
    def act(self, x):
        return 2 * x


class Halving:
    def act(self, x):
        return x / 2


def test_a_verb_goes_to_the_class_of_its_first_argument():
    repeated = RepeatedCall(verb(Doubling.act))
    for _ in range(3):
        assert repeated(Doubling(), 4) == 8
        assert repeated(Doubling(), 4) == 8
        assert repeated(Halving(), 4) == 2


@pytest.mark.compiled("it is about machine code for types of arguments")
def test_an_agent_takes_arrays_in_any_order_of_memory():
    features = sa.Features(d=3)
    context = sa.Context(features, model=sa.models.Linear(shared="arms"))
    problem = sa.Problem(4, 3, sa.Linear(), sa.Subsets(2), context=context)
    given, strided = (sa.Agent(problem, sa.c2_ucb(), seed=0) for _ in range(2))
    rng = np.random.default_rng(0)
    for t in range(12):
        x, outcome, seen = rng.uniform(-1, 1, 3), rng.random((2, 3)), rng.random((2, 3)) < 0.8
        one = given.ask(context=x)
        other = strided.ask(context=np.repeat(x, 2)[::2] if t % 2 else x)
        assert one.action.tolist() == other.action.tolist()
        given.tell(one, outcome, seen)
        if t % 3:
            outcome, seen = np.asfortranarray(outcome), np.asfortranarray(seen)
        strided.tell(other, outcome, seen)
    for part, twin in zip(given.tally, strided.tally, strict=True):
        assert part.tobytes() == twin.tobytes()


def make_agent(with_context):
    features = sa.Features(d=2)
    context = sa.Context(features, model=sa.models.Linear(shared="arms")) if with_context else None
    problem = sa.Problem(4, 3, sa.Coverage(), sa.Subsets(2), context=context)
    return sa.Agent(problem, sa.c2_ucb() if with_context else sa.kl_ucb(), seed=0)


def play(agent, rounds, with_context):
    actions = []
    for n in range(rounds):
        decision = agent.ask(context=[0.5, n % 3 - 1.0]) if with_context else agent.ask()
        agent.tell(decision, np.full((2, 3), n % 2))
        actions.append(decision.action.tolist())
    return actions


@pytest.mark.parametrize("with_context", [False, True])
@pytest.mark.parametrize("rounds", [0, 5])
def test_a_pickled_agent_goes_on_as_the_agent_does(with_context, rounds):
    agent = make_agent(with_context)
    play(agent, rounds, with_context)
    again = pickle.loads(pickle.dumps(agent))
    assert play(again, 8, with_context) == play(agent, 8, with_context)


@pytest.mark.parametrize("with_context", [False, True])
def test_growth_leaves_nothing_of_the_problem_before(with_context):
    agent = make_agent(with_context)
    play(agent, 3, with_context)
    before = weakref.ref(agent.learner.tally.total)
    agent.add_arms(2)
    gc.collect()
    assert before() is None
