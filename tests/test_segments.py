"""Segments: bit for bit one learner per segment, and pooling as it is defined."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

import superarm as sa
from superarm import contextual
from superarm.agent.learner import Learner
from superarm.context import Frame
from superarm.context.models import MAX_SEGMENTS
from superarm.core import streams
from superarm.core.tally import Feedback
from superarm.policies.directional import Covariance
from superarm.policies.memory import Memory, SplitMemory

FEATURES = sa.Features(categorical={"country": ["NO", "SE", "other"], "device": ["phone", "desk"]})
POLICIES = {
    "kl_ucb": sa.kl_ucb(),
    "bc_ucb": sa.bc_ucb(),
    "cts": sa.cts(),
    "epsilon_greedy": sa.policies.epsilon_greedy(0.3),
    "directional": sa.directional_kl_moss(),
    "covariance": sa.directional_kl_moss(Covariance()),
}


def problem(by=("country",), pooling=0.0, context=True):
    declared = sa.Context(FEATURES, model=sa.models.Segments(by=by, pooling=pooling)) if context else None
    return sa.Problem(5, 3, sa.Coverage(), sa.Subsets(2), context=declared)


def visits(n, seed=0):
    """Contexts with the number of their segment by country, outcomes, and what was seen."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        country = str(rng.choice(["NO", "SE", "DK"]))
        segment = ["NO", "SE", "DK"].index(country)
        context = {"country": country, "device": str(rng.choice(["phone", "desk"]))}
        yield segment, context, rng.random((2, 3)).round(2), rng.random((2, 3)) < 0.8


def most_wins(problem, view, memory):
    wins = memory.get("wins", np.zeros_like(view.counts))
    return problem.actions.heaviest((wins + 1.0) / (view.counts + 1.0), view)


def count_wins(problem, memory, feedback, sign):
    won = ((feedback.outcome > 0.5) & (True if feedback.seen is None else feedback.seen)).any(axis=2)
    wins = memory.setdefault("wins", np.zeros((len(won), problem.n_arms)))
    np.add.at(wins, (np.arange(len(won))[:, None], feedback.action), sign * won)


class WinsMemory(Memory):
    """The sums, and how often each arm won, a row for each replication."""

    by_row = ("wins",)

    def __init__(self, policy, problem, rows=1, partial=False):
        self.wins = np.zeros((rows, problem.n_arms))
        super().__init__(policy, problem, rows, partial)

    def learn(self, feedback, weight=1.0):
        super().learn(feedback, weight)
        if feedback.t > self.begun:
            count_wins(self.problem, {"wins": self.wins}, feedback, weight)


class Wins(sa.Policy):
    """The same as a class, whose memory can be split."""

    remembers = WinsMemory

    def choose(self, problem, view, memory):
        return most_wins(problem, view, {"wins": memory.wins})


OWN_MEMORY = {
    "functions": sa.policy(most_wins, count_wins),
    "functions, epsilon": sa.policies.EpsilonGreedy(sa.policy(most_wins, count_wins), 0.3),
    "class": Wins(),
}
ALL = POLICIES | OWN_MEMORY


def wins_of(memory):
    """The wins, a row for each replication."""
    if isinstance(memory, SplitMemory):
        return np.concatenate([wins_of(part) for part in memory.parts])
    return memory.wins if isinstance(memory, WinsMemory) else memory.own["wins"]


@pytest.mark.parametrize("name", sorted(ALL))
def test_segments_decide_as_one_learner_per_segment(name):
    """With feedback three decisions late; the random numbers of a learner are those of the agent's round."""
    agent = sa.Agent(problem(), ALL[name], seed=3)
    learners = [Learner(problem(context=False), ALL[name]) for _ in range(3)]
    keys, waiting = streams.run_keys([np.random.SeedSequence(3)]), []
    for t, (segment, context, outcome, seen) in enumerate(visits(60), start=1):
        decision = agent.ask(context=context)
        learner = learners[segment]
        own = learner.asked + 1
        expected = learner.choose(learner.view(own, streams.round_keys(keys.policy, t)))
        assert decision.action.tolist() == expected.tolist(), t
        learner.pend(expected, own)
        waiting.append((decision, learner, outcome, seen))
        if len(waiting) > 3:
            told, owner, *late = waiting.pop(0)
            agent.tell(told, *late)
            owner.unpend(told.action)
            owner.apply(Feedback(told.t, told.action[None], *(part[None] for part in late)), keys.rounding)
    np.testing.assert_array_equal(agent.tally.total, np.concatenate([learner.tally.total for learner in learners]))
    if name in OWN_MEMORY:
        agent.retire_items(["0"])
        wins = [wins_of(learner.memory) for learner in learners]
        np.testing.assert_array_equal(wins_of(agent.learner.memory.inner), np.concatenate(wins))


@pytest.mark.parametrize("name", sorted(OWN_MEMORY))
def test_memories_of_segments_are_saved_and_taken_back(name):
    agent, history = sa.Agent(problem(pooling=5.0), OWN_MEMORY[name], seed=3), []
    for _, context, outcome, _ in visits(30):
        history.append((agent.ask(context=context), outcome))
        agent.tell(*history[-1])
        agent.learner.restore(agent.learner.memory.to_arrays(), agent.learner.asked)
    assert wins_of(agent.learner.memory.inner).sum() > 30.0
    for decision, outcome in history:
        agent.untell(decision, outcome)
    assert not wins_of(agent.learner.memory.inner).any()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("wrap", [False, True])
def test_the_default_policy_works_on_segments_sparse_and_wrapped(wrap, sparse):
    matrix = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 1]])
    context = sa.Context(FEATURES, model=sa.models.Segments(by=("country",)))
    support = csr_array(matrix) if sparse else None
    task = sa.Problem(5, 3, sa.Coverage(), sa.Subsets(2), support=support, context=context)
    policy = sa.pooled_thompson()
    agent = sa.Agent(task, sa.policies.EpsilonGreedy(policy, 0.0) if wrap else policy, seed=1)
    plain = sa.Agent(task, policy, seed=1)
    for _, given, outcome, _ in visits(20):
        decision = agent.ask(context=given)
        assert decision.action.tolist() == plain.ask(context=given).action.tolist()
        told = outcome[matrix[decision.action] > 0] if sparse else outcome
        agent.tell(decision, told)
        plain.tell(decision.id, told)


def test_segments_decide_as_one_agent_per_segment():
    agent, agents = sa.Agent(problem(), sa.kl_ucb()), [sa.Agent(problem(context=False), sa.kl_ucb()) for _ in range(3)]
    for segment, context, outcome, _ in visits(80, seed=1):
        decision, other = agent.ask(context=context), agents[segment].ask()
        assert decision.action.tolist() == other.action.tolist()
        agent.tell(decision, outcome)
        agents[segment].tell(other, outcome)


def test_segments_are_the_combinations_of_levels():
    every = sa.Context(FEATURES)
    assert every.n_segments == 6
    numbers = {every.encode(c, Frame(), 5).segment for _, c, _, _ in visits(60)}
    assert numbers == set(range(6))
    with pytest.raises(sa.InvalidArgument, match=r"context\['device'\]: missing"):
        every.encode({"country": "NO"}, Frame(), 5)


def pooled(totals, pulls, segment, strength):
    """The pooled mean of each entry by its definition, from sums per segment."""
    others = pulls.sum(axis=0) - pulls[segment]
    share = np.where(others > 0, np.minimum(1.0, strength / np.maximum(others, 1e-9)), 0.0)
    n = pulls[segment] + share * others
    total = totals[segment] + share[:, None] * (totals.sum(axis=0) - totals[segment])
    return total / np.maximum(n, 1e-9)[:, None], n


def test_pooling_counts_other_segments_as_so_many_pulls():
    """``follow_the_leader`` plays greedily at the pooled means, which are computed anew here."""
    strength, plain = 4.0, problem(context=False)
    agent = sa.Agent(problem(pooling=strength), sa.policies.follow_the_leader())
    totals, pulls = np.zeros((3, 5, 3)), np.zeros((3, 5))
    compared = 0
    for segment, context, outcome, _ in visits(120, seed=2):
        decision = agent.ask(context=context)
        mean, n = pooled(totals, pulls, segment, strength)
        if (n > 0.0).all():
            best = sa.oracles.solve(plain, np.clip(mean, 0, 1), sa.oracles.Greedy())
            assert set(decision.action.tolist()) == set(best.tolist())
            compared += 1
        agent.tell(decision, outcome)
        totals[segment][decision.action] += outcome
        pulls[segment][decision.action] += 1.0
    assert compared > 90


def test_a_new_segment_starts_from_what_others_like():
    """Without pooling it tries every arm; with it, it plays what the other segment has found."""
    p = np.array([[0.9] * 3, [0.8] * 3, [0.1] * 3, [0.1] * 3, [0.1] * 3])
    first = {}
    for pooling in (0.0, 50.0):
        agent, rng = sa.Agent(problem(pooling=pooling), sa.policies.follow_the_leader()), np.random.default_rng(0)
        for _ in range(60):
            decision = agent.ask(context={"country": "NO"})
            agent.tell(decision, (rng.random((2, 3)) < p[decision.action]).astype(float))
        first[pooling] = [sorted(agent.ask(context={"country": "SE"}).action.tolist()) for _ in range(3)]
    assert first[0.0] == [[0, 1], [2, 3], [0, 4]]
    assert first[50.0] == [[0, 1], [0, 1], [0, 1]]


@pytest.mark.parametrize("pooling", [0.0, 3.0])
def test_saved_agents_continue_and_feedback_can_be_taken_back(pooling):
    agent, told = sa.Agent(problem(pooling=pooling), sa.cts(), seed=5), []
    for n, (_, context, outcome, seen) in enumerate(visits(50, seed=3)):
        decision = agent.ask(context=context)
        if n % 5:
            agent.tell(decision, outcome, seen)
            told.append((decision, outcome, seen))
        if n == 20:
            agent.add_arms(["new"])
        if n == 30:
            agent = sa.Agent.from_state(json.loads(json.dumps(agent.to_state())))
    saved = json.dumps(agent.to_state())
    copy = sa.Agent.from_state(json.loads(saved))
    for decision, outcome, seen in told[-8:]:
        agent.untell(decision, outcome, seen)
    for decision, outcome, seen in reversed(told[-8:]):
        agent.tell(decision, outcome, seen)
    for part in ("pulls", "total", "square", "missed"):
        np.testing.assert_array_equal(getattr(agent.tally, part), getattr(copy.tally, part))
    for _, context, _, _ in visits(10, seed=4):
        assert agent.ask(context=context).action.tolist() == copy.ask(context=context).action.tolist()


def test_contexts_are_asked_for_and_refused_by_name():
    with pytest.raises(sa.InvalidArgument, match="context: missing; give \\['country', 'device'\\]"):
        sa.Agent(problem(), sa.kl_ucb()).ask()
    with pytest.raises(sa.InvalidArgument, match="context: the problem has none"):
        sa.Agent(problem(context=False), sa.kl_ucb()).ask(context={"country": "NO"})
    with pytest.raises(sa.InvalidArgument, match="policy: LinearPolicy needs a context"):
        sa.Agent(problem(context=False), contextual.c2_ucb())
    with pytest.raises(sa.InvalidArgument, match="LinearPolicy does not learn the model Segments"):
        sa.Agent(problem(), contextual.c2_ucb())


def test_as_many_segments_as_allowed_are_accepted_and_not_one_more():
    def context(n_first: int, n_second: int) -> sa.Context:
        levels = {"a": [f"a{n}" for n in range(n_first)], "b": [f"b{n}" for n in range(n_second)]}
        return sa.Context(sa.Features(categorical=levels), model=sa.models.Segments())

    assert context(64, 64).model.n_segments(context(64, 64).features) == MAX_SEGMENTS
    with pytest.raises(sa.InvalidArgument, match=r"by: 4097 segments; use at most 4096"):
        context(17, 241)


def test_past_observations_with_their_contexts_are_those_of_their_segments():
    rng, own = np.random.default_rng(4), problem()
    seen = rng.random((60, 3)) < 0.8
    arms, outcomes, there = rng.integers(0, 5, 60), rng.random((60, 3)).round(2), list(visits(60))
    past = own.past(arms, outcomes, seen, contexts=[context for _, context, _, _ in there])
    named = own.past(arms, outcomes, seen, contexts=[own.context.segment_names[segment] for segment, *_ in there])
    np.testing.assert_array_equal(named.total, past.total)
    for number in range(3):
        mine = [segment == number for segment, _, _, _ in there]
        alone = problem(context=False).past(arms[mine], outcomes[mine], seen[mine])
        for name in ("pulls", "total", "square", "missed"):
            np.testing.assert_array_equal(getattr(past, name)[number], getattr(alone, name)[0])
    agent = sa.Agent(own, sa.kl_ucb(), tally=past)
    agent.warm_start(past)
    np.testing.assert_array_equal(agent.tally.pulls, 2.0 * past.pulls)
    regression = sa.Problem(5, 1, sa.Linear(), sa.Subsets(2), context=sa.Context(FEATURES, model=sa.models.Linear()))
    for given, contexts, message in [
        (own, None, "3 segments"),
        (own, [{}], "1 for 2 observations"),
        (own, [{"country": "NO", "device": "sofa"}] * 2, "sofa"),
        (own, ["country=NO", "country=DK"], "no segment 'country=DK'"),
        (own, [0, 3], "no segment 3"),
        (problem(context=False), [{}, {}], "the problem has none"),
        (regression, [{}, {}], "LinearModel"),
        (regression, None, "LinearModel"),
    ]:
        with pytest.raises(sa.InvalidArgument, match=message):
            given.past([0, 1], [[0.0] * given.n_items] * 2, contexts=contexts)
