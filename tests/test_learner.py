"""One problem being learnt: choosing changes nothing, and feedback commutes with changes of the policy."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as sa
from superarm.learner import Learner
from superarm.learner.state import learner_to_plain
from superarm.core.streams import Stream, new_stream, seek
from superarm.core.tally import Feedback

PROBLEM = sa.Problem(n_arms=5, n_items=2, reward=sa.Coverage(), actions=sa.Subsets(2))
ROUNDING = new_stream(np.random.SeedSequence(3))
POLICIES = {
    "kl_ucb": sa.kl_ucb(),
    "cts": sa.cts(),
    "window": sa.sliding_window(sa.kl_ucb(), 12, blocks=4),
    "window of cts": sa.sliding_window(sa.cts(), 12, blocks=4),
    "short window": sa.sliding_window(sa.bc_ucb(), 4, blocks=2),
    "discount": sa.discounted(sa.kl_moss(), 2),
}


def saved(learner: Learner) -> str:
    return json.dumps([learner_to_plain(learner), learner.pending.tolist()], sort_keys=True)


def key(n: int) -> np.ndarray:
    return np.array([n * 7_919 + 1], np.uint64)


def stream(n: int) -> Stream:
    return Stream(key(n), key(n))


def feedback(t: int, rng: np.random.Generator) -> Feedback:
    action = rng.choice(5, 2, replace=False)
    return Feedback(t, action, rng.random(4), rng.random(4) < 0.8)


def played(policy: sa.IndexPolicy, rounds: int) -> Learner:
    learner, rng = Learner(PROBLEM, policy), np.random.default_rng(1)
    for t in range(1, rounds + 1):
        batch = learner.choose(t, learner.playable(), stream(t))
        learner.pend(batch, t)
        if t % 3:
            learner.unpend(batch)
            learner.apply(Feedback(t, batch, rng.random(4), rng.random(4) < 0.9), ROUNDING)
    return learner


@pytest.mark.parametrize("name", POLICIES)
def test_choosing_changes_nothing(name):
    learner = played(POLICIES[name], 11)
    before = saved(learner)
    first = [learner.choose(t, learner.playable(), stream(t)).tolist() for t in range(12, 40)]
    learner.choose_each(12, learner.playable(), np.concatenate([key(n) for n in range(30)]))
    learner.choose(30, learner.playable(), stream(0), sa.Pinned(PROBLEM.actions, [4]))
    assert saved(learner) == before
    assert [learner.choose(t, learner.playable(), stream(t)).tolist() for t in range(12, 40)] == first


@pytest.mark.parametrize("name", POLICIES)
def test_batches_by_one_call_are_those_of_one_call_each(name):
    learner = played(POLICIES[name], 11)
    keys = np.concatenate([key(n) for n in range(20)])
    together = learner.choose_each(12, learner.playable(), keys, reserved=[0, 0, 3])
    learner.pend([0, 0, 3], 11)
    one_by_one = []
    for n in range(20):
        batch = learner.choose(12 + n, learner.playable(), Stream(keys[n : n + 1], keys[n : n + 1].copy()))
        learner.pend(batch, 12 + n)
        one_by_one.append(batch.tolist())
    assert together == one_by_one


@st.composite
def histories(draw):
    """How many rounds there are, of which of them feedback came, and of which it was taken back."""
    rounds = draw(st.integers(2, 14))
    told = [t for t in range(1, rounds + 1) if draw(st.booleans())]
    undone = [t for t in told if draw(st.booleans())]
    return rounds, told, undone


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(POLICIES)),
    st.sampled_from(sorted(POLICIES)),
    histories(),
    st.integers(0, 14),
    st.integers(0, 2**32 - 1),
)
def test_the_order_of_feedback_and_of_a_change_of_policy_does_not_matter(first, second, history, changed, seed):
    """Decisions before the change count for its round, whether their feedback comes before it or after."""
    rounds, told, undone = history
    changed = min(changed, rounds)
    rng = np.random.default_rng(seed)
    given_ = {t: feedback(t, rng) for t in range(1, rounds + 1)}
    past = PROBLEM.past([0, 1], [[1, 0], [0.5, 0.25]])

    def version(t):
        return int(t > changed)

    live = Learner(PROBLEM, POLICIES[first])
    for t in range(1, rounds + 1):
        if t == changed + 1:
            live.change_policy(POLICIES[second], changed)
            live.warm_start(past, changed + 1)
        live.pend(given_[t].action, t)
        if t in told:
            live.apply(given_[t], ROUNDING, 1.0, version(t))
    if changed == rounds:
        live.change_policy(POLICIES[second], changed)
        live.warm_start(past, changed + 1)
    for t in undone:
        live.apply(given_[t], ROUNDING, -1.0, version(t))

    replay = Learner(PROBLEM, POLICIES[first])
    replay.change_policy(POLICIES[second], changed)
    replay.warm_start(past, changed + 1)
    for t in rng.permutation(np.arange(1, rounds + 1)).tolist():
        replay.pend(given_[t].action, t)
        if t in told and t not in undone:
            replay.apply(given_[t], ROUNDING, 1.0, version(t))
    for one in (live, replay):
        one.tally = one.tally._replace(missed=one.tally.missed if one.tally.missed.any() else np.zeros(0))
    assert saved(live) == saved(replay)
    for t in (rounds + 1, rounds + 5):
        chosen = [one.choose(t, one.playable(), stream(t)).tolist() for one in (live, replay)]
        assert chosen[0] == chosen[1]


def test_a_window_forgets_also_what_was_observed_before_it_was_taken_on():
    agent = sa.Agent(PROBLEM, sa.kl_ucb())
    for _ in range(6):
        agent.tell(agent.ask(), [[1, 1], [1, 1]])
    agent.change_policy(sa.sliding_window(sa.kl_ucb(), 8, blocks=4))
    assert agent.learner.memory.now.pulls.tolist() == agent.tally.pulls.tolist()
    for _ in range(12):
        agent.tell(agent.ask(eligible=[0, 1]), [[0, 0], [0, 0]])
    assert agent.learner.memory.now.pulls[2:].tolist() == [0.0, 0.0, 0.0]
    assert set(agent.ask().action.tolist()) <= {2, 3, 4}


@pytest.mark.parametrize("second", POLICIES)
def test_an_agent_takes_back_what_it_told_another_policy_and_continues_from_its_state(second):
    agent = sa.Agent(PROBLEM, sa.cts(), seed=4)
    rng = np.random.default_rng(5)
    decision = agent.ask()
    late = agent.ask()
    outcome = rng.random((2, 2))
    before = agent.tally.total.copy()
    agent.tell(decision, outcome)
    agent.change_policy(POLICIES[second])
    agent = sa.Agent.from_state(json.loads(json.dumps(agent.to_state())))
    agent.tell(late, outcome)
    agent.untell(late, outcome)
    agent.untell(decision, outcome)
    assert np.array_equal(agent.tally.total, before)
    agent.tell(late, outcome)
    assert set(np.unique(agent.tally.total)) <= {0.0, 1.0}, "asked for by Thompson sampling: rounded to coins"
    again = sa.Agent.from_state(json.loads(json.dumps(agent.to_state())))
    for one in (agent, again):
        for _ in range(8):
            one.tell(one.ask(), [[0.25, 0.5], [0.5, 0.25]])
    assert agent.to_state() == again.to_state()


def test_a_policy_that_does_not_fit_leaves_the_learner_as_it_was():
    learner = played(sa.kl_ucb(), 5)
    before = saved(learner)
    with pytest.raises(sa.InvalidArgument, match="modular"):
        learner.change_policy(sa.escb())
    assert saved(learner) == before


def test_streams_of_other_rounds_draw_the_same_numbers():
    from superarm.learner.rounds import stream_as_of
    from superarm.core.streams import uniform

    other = stream_as_of(ROUNDING, 5, 90)
    seek(ROUNDING, 5, 3)
    seek(other, 90, 3)
    assert uniform(ROUNDING) == uniform(other)
