"""Memories of all policies: what they hold depends on what was told, not on when, and survives being saved.

A history has a decision in each round, and between rounds another policy takes over, and arms and items are added. It
is told twice: at once, and late, in another order, with slips that are taken back.
"""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as sa
from superarm import contextual
from superarm.context import Contexts
from superarm.contextual import for_context
from superarm.core.tally import Feedback
from superarm.policies import discounted, sliding_window
from superarm.policies.directional import Covariance
from tests.test_segments import OWN_MEMORY

ROUNDS, K, N_SEGMENTS = 20, 2, 3
COUNTRIES = {"categorical": {"country": ["NO", "SE", "DK"]}}
PLAIN = {
    "kl_ucb": sa.kl_ucb(),
    "directional": sa.directional_kl_moss(),
    "covariance": sa.directional_kl_moss(Covariance()),
    "escb": sa.policies.escb(),
    "escb_c": sa.policies.escb_c(),
    "epsilon": sa.policies.EpsilonGreedy(sa.directional_kl_moss(), 0.2),
    "pooled": sa.pooled_thompson(),
    "list": sa.pooled_thompson(baseline=[2, 0]),
    "window": sliding_window(sa.kl_ucb(), 6, 3),
    "window of directional": sliding_window(sa.directional_kl_moss(), 6, 3),
    "discounted covariance": discounted(sa.directional_kl_moss(Covariance()), 2),
    "window of pooled": sliding_window(sa.pooled_thompson(), 6, 3),
    "function": OWN_MEMORY["functions"],
    "class": OWN_MEMORY["class"],
}
LINEAR = {
    "c2_ucb": contextual.c2_ucb(0.3),
    "vac2_ucb": contextual.vac2_ucb(),
    "window of c2_ucb": sliding_window(contextual.c2_ucb(0.3), 6, 3),
}
LOGISTIC = {
    "logistic_kl_ucb": contextual.logistic_kl_ucb(0.2),
    "logistic_ts": contextual.logistic_ts(0.2),
    "discounted logistic": discounted(contextual.logistic_kl_ucb(0.2), 2),
}


def problem_of(kind):
    context = {
        "plain": None,
        "segments": sa.Context(sa.Features(**COUNTRIES), model=sa.models.Segments(pooling=1.0)),
        "linear": sa.Context(sa.Features(d=2), model=sa.models.Linear(shared="arms")),
        "logistic": sa.Context(sa.Features(d=2), model=sa.models.Logistic(shared="arms", kept=5000)),
    }[kind]
    return sa.Problem(4, 2, sa.Linear(), sa.Subsets(K), [1.0, 0.7], context=context)


KINDS = {"plain": PLAIN, "segments": PLAIN, "linear": LINEAR, "logistic": LOGISTIC}
FUNCTIONS = {f"window of {name}": sliding_window(policy, 6, 3) for name, policy in OWN_MEMORY.items()}
MORE = {"plain": FUNCTIONS, "segments": FUNCTIONS, "linear": {}, "logistic": {}}
"""Where a window begins anew with each block, late feedback counts in the block in which it comes."""
AT_ONCE = np.arange(1, ROUNDS + 1)


def larger(problem, event):
    if event == "arms":
        return problem.changed(n_arms=problem.n_arms + 1, support=None)
    if event == "items":
        return problem.changed(n_items=problem.n_items + 1, weights=[*problem.weights, 0.5], support=None)
    return problem.changed(weights=0.5 * problem.weights)


def context_of(problem, rng, t):
    if problem.context is None:
        return None
    regression = problem.context.n_segments == 1
    x = np.array([[1.0, *rng.integers(-4, 5, 2) / 4.0]]) if regression else np.zeros((1, 0))
    given = Contexts(rng.integers(0, problem.context.n_segments, 1), x, np.zeros((1, problem.n_arms, 0)), np.array([t]))
    if regression:
        shape, logistic = (1, K, problem.n_items), isinstance(problem.context.model, type(sa.models.Logistic()))
        given.weights = rng.integers(1, 1025, shape) / 4096 if logistic else rng.integers(1, 99, shape) / 4
        given.shifts = rng.integers(-999, 999, shape) / 4096 if logistic else None
    return given


def history(kind, names, rng):
    """Feedback to the decision of each round, and what happens after it."""
    problem, told, events = problem_of(kind), [], {}
    for t in range(1, ROUNDS + 1):
        action = rng.permutation(problem.n_arms)[:K][None]
        x = rng.choice([0.0, 1.0, rng.random()], (1, K, problem.n_items))
        told.append(Feedback(t, action, x, rng.random(x.shape) < 0.9, context_of(problem, rng, t)))
        if rng.random() < 0.25:
            event = str(rng.choice(["arms", "items", "weights", *names, *names]))
            events[t] = event
            problem = problem if event in names else larger(problem, event)
    return told, events


def widened(feedback, problem):
    """Feedback as it is told once there are more arms and items."""
    room, given = ((0, 0), (0, 0), (0, problem.n_items - feedback.outcome.shape[2])), deepcopy(feedback.context)
    if given is not None:
        given.pairs = np.zeros((1, problem.n_arms, 0))
        for name in ("weights", "shifts"):
            if getattr(given, name) is not None:
                setattr(given, name, np.pad(getattr(given, name), room))
    outcome, seen = np.pad(feedback.outcome, room), np.pad(feedback.seen, room)
    return Feedback(feedback.t, feedback.action, outcome, seen, given)


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, part in expected.items():
        np.testing.assert_array_equal(found[name], part, name)


def unchanged(memory, act):
    """What ``act`` returns; the memory stays as it was."""
    before = deepcopy(memory.to_arrays())
    found = act()
    assert_equal(memory.to_arrays(), before)
    return found


def play(kind, first, told, events, policies, due, slips=(), plans=False, reload=False):
    """The policy, the problem and the memory at the end; feedback n is told after round ``due[n]``."""
    problem, policy = problem_of(kind), for_context(policies[first], problem_of(kind))
    memory = policy.new_memory(problem, 1)
    for t in range(1, ROUNDS + 1):
        ahead = memory if reload else unchanged(memory, lambda m=memory, t=t: m.at(t))
        memory.advance(t)
        if plans:
            assert_equal(ahead.to_arrays(), memory.to_arrays())
            unchanged(memory, lambda given=(policy, problem, memory, t): choice(*given))
            plan = unchanged(memory, lambda m=memory, t=t: m.plan(t))
            if plan is not None:
                memory.accept(plan)
        for n, feedback in enumerate(told):
            if due[n] == t:
                for weight in (1.0, 1.0, -1.0) if n in slips else (1.0,):
                    memory.learn(widened(feedback, problem), weight)
        event, before = events.get(t), memory
        if event in policies:
            policy = for_context(policies[event], problem)
            memory = policy.new_memory(problem, 1)
            unchanged(before, lambda new=memory, old=before, t=t: new.inherit(old, t))
        elif event is not None:
            problem = larger(problem, event)
            memory = unchanged(before, lambda old=before, new=problem, t=t: old.grown(new, t))
        if reload:
            arrays = memory.to_arrays()
            memory = policy.new_memory(problem, 1).from_arrays(arrays)
            assert_equal(memory.to_arrays(), arrays)
    return policy, problem, memory


def choice(policy, problem, memory, t):
    view = problem.view(memory.tally, t)
    view.context = context_of(problem, np.random.default_rng(t), t)
    if view.context is not None:
        row = view.context.segment
        view.counts, view.eligible = memory.tally.pulls[row], np.ones((1, problem.n_arms), bool)
        view.keys, view.pinned = view.keys[:1], view.pinned[:1]
    return policy.choose(problem, view, memory).tolist()


def drawn(kind, seed, more=()):
    rng, policies = np.random.default_rng(seed), KINDS[kind] | dict(more)
    names = rng.permutation(sorted(policies))[:3].tolist()
    return rng, (kind, names[0], *history(kind, names, rng), policies)


@pytest.mark.filterwarnings("ignore:.*keeps a memory of its own")
@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_a_memory_is_what_was_told_at_any_time_and_in_any_order(kind, seed):
    rng, case = drawn(kind, seed)
    late = np.minimum(AT_ONCE + rng.integers(0, 9, ROUNDS), ROUNDS)
    first, second = play(*case, AT_ONCE), play(*case, late, slips=rng.integers(0, ROUNDS, 4))
    assert_equal(second[2].to_arrays(), first[2].to_arrays())
    assert choice(*first, ROUNDS + 1) == choice(*second, ROUNDS + 1)


@pytest.mark.filterwarnings("ignore:.*keeps a memory of its own")
@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_a_saved_memory_goes_on_as_a_live_one_does(kind, seed):
    """Fits are taken, and choices, plans and looks ahead change nothing."""
    rng, case = drawn(kind, seed, MORE[kind])
    late = np.minimum(AT_ONCE + rng.integers(0, 9, ROUNDS), ROUNDS)
    live, saved = (play(*case, late, plans=True, reload=reload) for reload in (False, True))
    assert_equal(saved[2].to_arrays(), live[2].to_arrays())
    assert choice(*live, ROUNDS + 9) == choice(*saved, ROUNDS + 9)
