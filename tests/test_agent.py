"""Ask and tell: late, partial, repeated and corrected feedback in any order; growth; threads; data frames; errors."""

import copy
import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import superarm as sa
from superarm.actions import Explicit, Laminar, Pinned, Subsets
from superarm.agent import Agent, Learner
from superarm.context import Context, Features, models
from superarm.contextual import c2_ucb, logistic_kl_ucb, vac2_ucb
from superarm.core.errors import ConflictingFeedback, InvalidArgument, UnknownDecision
from superarm.core.streams import run_keys
from superarm.core.support import Sparse
from superarm.core.tally import Feedback
from superarm.environments import Bernoulli, Beta, Cascade, context_table
from superarm.indices import KL, Bernstein, BetaPosterior, KLMoss, Mean
from superarm.policies import IndexPolicy
from superarm.policies.batch import escb
from superarm.policies.directional import directional_kl_moss
from superarm.policies.forgetting import discounted, sliding_window
from superarm.policies.wrappers import EpsilonGreedy, epsilon_greedy
from superarm.problem import Problem
from superarm.rewards import Coverage, Linear
from superarm.simulation.engine import Run

RNG = np.random.default_rng(0)
KL_UCB, CTS, BC_UCB = IndexPolicy(KL()), IndexPolicy(BetaPosterior(), rounding="coin"), IndexPolicy(Bernstein())
POLICIES = {
    "kl_ucb": KL_UCB,
    "cts": CTS,
    "bc_ucb": BC_UCB,
    "epsilon_greedy": epsilon_greedy(0.3),
    "directional": directional_kl_moss(),
    "window": sliding_window(KL_UCB, 12, blocks=4),
    "window of cts": sliding_window(CTS, 12, blocks=4),
    "short window": sliding_window(directional_kl_moss(), 4, blocks=2),
    "discount": discounted(IndexPolicy(KLMoss()), 2),
    "wrapped window": EpsilonGreedy(sliding_window(BC_UCB, 6, blocks=2), 0.3),
}
PROBLEM = Problem(n_arms=7, n_items=3, reward=Coverage(), actions=Subsets(2))


def make(policy=KL_UCB, **options):
    return Agent(PROBLEM, policy, seed=1, **options)


def play(agent, rounds, rng):
    decisions = []
    for _ in range(rounds):
        decision = agent.ask()
        agent.tell(decision, rng.random((2, agent.problem.n_items)) < 0.4)
        decisions.append(decision)
    return decisions


def saved(agent):
    return json.dumps(agent.to_state(), sort_keys=True)


def again(agent):
    return Agent.from_state(json.loads(json.dumps(agent.to_state(), allow_nan=False)))


# --- any order of calls


def naive_tally(agent, told):
    """Pulls, sums, squares and unseen counts of what was told: lists of (arm, outcomes, seen)."""
    shape = (len(agent.arms), len(agent.items))
    pulls, total, square, missed = np.zeros(shape[0]), np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for arms, outcomes, seen in told:
        for j, given_row, given_marks in zip(arms, outcomes, seen, strict=True):
            late = shape[1] - len(given_row)  # items that were added since
            row, marks = np.append(given_row, [0.0] * late), np.append(given_marks, [False] * late).astype(bool)
            x = np.floor(row * 2**24 + 0.5) / 2**24
            if marks.any():
                pulls[j] += 1
                total[j] += np.where(marks, x, 0.0)
                square[j] += np.where(marks, np.floor(x * x * 2**24 + 0.5) / 2**24, 0.0)
                missed[j] += ~marks
    return pulls, total, square, missed


CALLS = ["ask", "ask", "tell", "tell", "untell", "cancel", "arms", "items", "retire", "back", "policy", "save"]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(CALLS), min_size=5, max_size=40), st.integers(0, 2**32 - 1))
def test_any_order_of_calls_gives_the_tally_of_a_naive_count(calls, seed):  # noqa: PLR0912
    rng, agent = np.random.default_rng(seed), make(arms=list("abcdefg"))
    exact = [policy for policy in POLICIES.values() if policy.rounding == "exact"]
    open_, told, retired = [], [], []
    for call in calls:
        if call == "ask":
            open_.append(agent.ask())
        elif call == "tell" and open_:
            decision = open_.pop(rng.integers(len(open_)))
            n_items = len(agent.items)
            rows, seen = rng.random((2, n_items)), rng.random((2, n_items)) < rng.choice([0.3, 1.0])
            arms = decision.action if rng.random() < 0.8 else rng.choice(7, 2, replace=False)
            agent.tell(decision, rows, seen, arms=arms.tolist())
            told.append((decision, (arms, rows, seen)))
        elif call == "untell" and told:
            decision, (arms, rows, seen) = told.pop(rng.integers(len(told)))
            agent.untell(decision, rows, seen, arms=arms.tolist())
            open_.append(decision)
        elif call == "cancel" and open_:
            agent.cancel(open_.pop(rng.integers(len(open_))))
        elif call == "arms":
            agent.add_arms(1)
        elif call == "items" and len(agent.items) < 6:
            agent.add_items(1, [0.5])
        elif call == "retire" and len(retired) < 4:
            left = [name for name in agent.arms if name not in retired]
            retired.append(left[rng.integers(len(left))])
            agent.retire_arms([retired[-1]])
        elif call == "back" and retired:
            agent.add_arms([retired.pop()])
        elif call == "policy":
            agent.change_policy(exact[rng.integers(len(exact))])
        elif call == "save":
            agent = again(agent)
    pulls, total, square, missed = naive_tally(agent, [feedback for _, feedback in told])
    tally = agent.tally
    assert np.array_equal(tally.pulls[0], pulls)
    assert np.array_equal(tally.total[0].T, total)
    assert np.array_equal(tally.square[0].T, square)
    assert np.array_equal(tally.missed[0].T, missed) if tally.partial else not missed.any()
    seen = pulls[:, None] - missed
    with np.errstate(all="ignore"):
        assert np.array_equal(agent.estimates()[0], np.where(seen > 0, total / seen, np.nan), equal_nan=True)
    pending = np.zeros(len(agent.arms))
    for decision in open_:
        pending[decision.action] += 1
    assert np.array_equal(agent.learner.pending[0], pending)
    assert sorted(d.id for d in agent.pending) == sorted(d.id for d in open_)
    last = agent.ask()
    assert not set(last.arms) & set(retired)
    if "save" not in calls:
        assert again(agent).ask().action.tolist() == agent.ask().action.tolist()


@st.composite
def histories(draw):
    """How many rounds there are, of which feedback came, of which it was taken back, and when the policy changes."""
    rounds = draw(st.integers(2, 14))
    told = [t for t in range(1, rounds + 1) if draw(st.booleans())]
    return rounds, told, [t for t in told if draw(st.booleans())], draw(st.integers(0, rounds))


def feedback_of(t, rng):
    return Feedback(t, rng.choice(7, 2, replace=False)[None], rng.random((1, 2, 3)), rng.random((1, 2, 3)) < 0.8)


def state_of(learner):
    from superarm.agent.state import learner_to_plain

    return json.dumps([learner_to_plain(learner), learner.pending.tolist()], sort_keys=True)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(POLICIES)), st.sampled_from(sorted(POLICIES)), histories(), st.integers(0, 2**32 - 1))
def test_the_order_of_feedback_and_of_a_change_of_policy_does_not_matter(first, second, history, seed):
    """Decisions before the change count for its round, whether their feedback comes before it or after."""
    rounds, told, undone, changed = history
    rng, key = np.random.default_rng(seed), np.array([7], np.uint64)
    given_ = {t: feedback_of(t, rng) for t in range(1, rounds + 1)}

    def change(learner):
        learner.change_policy(POLICIES[second], changed)
        learner.warm_start(PROBLEM.past([0, 1], [[1, 0, 0], [0.5, 0.25, 1]]), changed + 1)

    live = Learner(PROBLEM, POLICIES[first])
    for t in range(1, rounds + 2):
        if t == changed + 1:
            change(live)
        if t <= rounds:
            live.pend(given_[t].action[0], t)
        if t in told:
            live.apply(given_[t], key, 1.0, int(t > changed))
    for t in undone:
        live.apply(given_[t], key, -1.0, int(t > changed))

    replay = Learner(PROBLEM, POLICIES[first])
    change(replay)
    for t in rng.permutation(np.arange(1, rounds + 1)).tolist():
        replay.pend(given_[t].action[0], t)
        if t in told and t not in undone:
            replay.apply(given_[t], key, 1.0, int(t > changed))
    assert state_of(live) == state_of(replay)
    before = state_of(live)
    for t in (rounds + 1, rounds + 5):
        chosen = [one.choose(one.view(t, key)).tolist() for one in (live, replay)]
        assert chosen[0] == chosen[1]
    assert state_of(live) == before, "choosing changed something"


@pytest.mark.parametrize("second", POLICIES)
def test_what_was_told_under_another_policy_is_taken_back_exactly(second):
    agent, rng = Agent(PROBLEM, CTS, seed=4), np.random.default_rng(5)
    decision, late = agent.ask(), agent.ask()
    outcome = rng.random((2, 3))
    agent.tell(decision, outcome)
    assert set(np.unique(agent.tally.total)) <= {0.0, 1.0}, "Thompson sampling records coin flips"
    agent.change_policy(POLICIES[second])
    agent = again(agent)
    agent.tell(late, outcome)
    agent.untell(late, outcome)
    agent.untell(decision, outcome)
    assert not agent.tally.total.any()
    assert not agent.tally.pulls.any()
    agent.tell(late, outcome)
    assert set(np.unique(agent.tally.total)) <= {0.0, 1.0}
    other = again(agent)
    for one in (agent, other):
        for _ in range(8):
            one.tell(one.ask(), [[0.25, 0.5, 0.1], [0.5, 0.25, 0.7]])
    assert saved(agent) == saved(other)


@pytest.mark.parametrize("policy", POLICIES)
def test_untell_is_exact(policy):
    agent = make(POLICIES[policy])
    play(agent, 9, np.random.default_rng(2))
    decision = agent.ask()
    before = saved(agent)
    outcome, seen = RNG.random((2, 3)), RNG.random((2, 3)) < 0.5
    agent.tell(decision, outcome, seen)
    with pytest.raises(ConflictingFeedback):
        agent.untell(decision, 1.0 - outcome, seen)
    agent.untell(decision, outcome, seen)
    assert saved(agent) == before
    assert agent.tell(decision, outcome) is True


# --- one algorithm


@pytest.mark.parametrize("world", [Bernoulli, Cascade, lambda p: Beta(p, 3.0)])
@pytest.mark.parametrize("policy", POLICIES)
def test_an_agent_decides_as_a_simulation_with_the_same_seed(policy, world):
    environment = world(np.random.default_rng(3).uniform(0.1, 0.6, (7, 3)))
    seed = np.random.SeedSequence(11)
    run = Run(PROBLEM, environment, POLICIES[policy], run_keys([seed]))
    agent = Agent(PROBLEM, POLICIES[policy], seed)
    for t in range(1, 41):
        run.play_round()
        decision = agent.ask()
        assert decision.action.tolist() == run.last[0].tolist()
        answer = environment.draw(PROBLEM, decision.action[None], t, run.keys.environment)
        agent.tell(decision, answer.outcome[0], None if answer.seen is None else answer.seen[0])
    assert np.array_equal(agent.tally.total, run.tally.total)


FEATURES = Features(numeric={"age": (0, 100)}, categorical={"country": ["NO", "SE", "other"]})
USERS = [{"age": 10 * n, "country": ["NO", "SE", "DK"][n % 3]} for n in range(9)]
ARM_FEATURES = np.round(RNG.random((5, 2)), 2)
CONTEXTS = {
    "segments": (models.Segments(["country"]), KL_UCB),
    "pooled": (models.Segments(["country"], pooling=3.0), CTS),
    "forgetting": (models.Segments(["country"]), sliding_window(KL_UCB, 8, blocks=2)),
    "linear": (models.Linear(shared=True), vac2_ucb()),
    "linear of arms": (models.Linear(shared="arms"), c2_ucb(0.1)),
    "linear of entries": (models.Linear(), c2_ucb(0.1)),
    "discounted": (models.Linear(shared=True), discounted(c2_ucb(0.1), 8)),
    "logistic": (models.Logistic(shared=True), logistic_kl_ucb()),
}


def in_context(name, features=FEATURES):
    model, policy = CONTEXTS[name]
    arms = ARM_FEATURES if getattr(model, "shared", "") == "all" else None
    return Problem(5, 2, Coverage(), Subsets(2), context=Context(features, arms, model)), policy


@pytest.mark.parametrize("name", CONTEXTS)
def test_an_agent_with_contexts_decides_as_a_simulation(name):
    from superarm.contextual import for_context

    problem, policy = in_context(name)
    environment = context_table(problem, USERS, np.random.default_rng(3).uniform(0.1, 0.6, (9, 5, 2)), replay=True)
    seed = np.random.SeedSequence(11)
    run, agent = Run(problem, environment, for_context(policy, problem), run_keys([seed])), Agent(problem, policy, seed)
    for t in range(1, 41):
        run.play_round()
        decision = agent.ask(context=USERS[(t - 1) % 9])
        assert decision.action.tolist() == run.last[0].tolist()
        answer = environment.draw(problem, decision.action[None], t, run.keys.environment)
        agent.tell(decision, answer.outcome[0])


@pytest.mark.parametrize("standardised", [False, True])
@pytest.mark.parametrize("name", CONTEXTS)
def test_contexts_are_undone_saved_and_grown_exactly(name, standardised):
    if standardised and name in ("discounted",):
        return  # windows need ranges
    features = Features(numeric=["age"], categorical={"country": ["NO", "SE", "other"]}) if standardised else FEATURES
    problem, policy = in_context(name, features)
    agent, rng = Agent(problem, policy, seed=3), np.random.default_rng(1)
    open_ = []
    for n in range(30):
        open_.append(agent.ask(context=USERS[n % 9]))
        if n % 3:
            decision = open_.pop(rng.integers(len(open_)))
            outcome = (rng.random((2, 2)) < 0.4).astype(float)
            before = saved(agent)
            agent.tell(decision, outcome)
            if n % 4 == 0:
                agent.untell(decision, outcome)
                after, before = json.loads(saved(agent)), json.loads(before)
                assert all(after[part] == before[part] for part in ("memory", "contexts"))
                agent.tell(decision, outcome)
    agent.explain(agent.ask(context=USERS[0]))
    for change in ("none", "arms", "items"):
        if change == "arms":
            agent.add_arms(["new"], features=[[0.5, 0.5]] if problem.context.arms.size else None)
        elif change == "items":
            agent.add_items(["late"])
        other = again(agent)
        assert saved(other) == saved(agent)
        for n in range(6):
            decisions = [one.ask(context=USERS[n]) for one in (agent, other)]
            assert decisions[0].action.tolist() == decisions[1].action.tolist()
            for one in (agent, other):
                one.tell(one.pending[-1], np.full((len(decisions[0].action), len(one.items)), 0.5))
        late = open_.pop()
        for one in (agent, other):
            assert one.tell(late.id, [[1, 0], [0, 1]])
        assert saved(other) == saved(agent)


def test_arms_of_a_decision_are_pending_one_by_one():
    problem, policy = in_context("linear")
    agent = Agent(problem, policy, seed=0)
    decision, learner = agent.ask(context=USERS[1]), agent.learner
    made = agent._decisions.pending[decision.id].asked.context
    before = learner.contexts.pending.copy()
    assert before.any()
    for sign in (1.0, -1.0, 1.0):
        for j in decision.action:
            arm = np.array([j])
            learner.unpend(arm, made, sign, decision.action)
        assert np.array_equal(learner.contexts.pending, 0.0 * before if sign > 0 else before)
    assert learner.contexts.n_pending == learner.pending.sum() == 0


def test_features_of_arms_and_pairs_grow_with_the_arms():
    context = Context(FEATURES, arms=RNG.random((5, 2)), model=models.Linear(shared=True), pairs=1)
    problem = Problem(5, 2, Coverage(), Subsets(2), context=context)
    agent = Agent(problem, c2_ucb(), seed=0)
    waiting = agent.ask(context=USERS[1], pairs=np.zeros((5, 1)))
    with pytest.raises(InvalidArgument, match="give 2 features for each new arm"):
        agent.add_arms(["new"])
    agent.add_arms(["new"], features=[[0.5, 0.5]])
    assert agent.tell(waiting, [[1, 0], [0, 1]])
    agent.tell(agent.ask(context=USERS[2], pairs=np.ones((6, 1))), [[1, 0], [0, 1]])
    told = agent.explain(agent.ask(context=USERS[3], pairs=np.ones((6, 1))), most=3)
    assert all(1 <= len(arm.features) <= 3 for arm in told.arms)
    assert saved(again(agent)) == saved(agent)
    with pytest.raises(InvalidArgument, match="context: missing"):
        agent.ask(pairs=np.ones((6, 1)))
    with pytest.raises(InvalidArgument, match="pairs: missing"):
        agent.ask(context=USERS[3])


# --- feedback


def test_tell_is_idempotent_and_conflicts_are_refused():
    agent = make()
    decision = agent.ask()
    assert agent.tell(decision, [[1, 0, 0], [0, 1, 0]]) is True
    before = saved(agent)
    assert agent.tell(decision.id, np.array([[1, 0, 0], [0, 1, 0]], bool)) is False
    with pytest.raises(ConflictingFeedback):
        agent.tell(decision, [[0, 0, 0], [0, 1, 0]])
    assert saved(agent) == before


def test_a_larger_value_replaces_a_smaller_one_and_any_value_one_that_is_amended():
    """As a purchase does after a click, in whatever order both are repeated."""
    agent, other = make(), make()
    decision = agent.ask()
    click, purchase = np.array([[0.1, 0, 0], [0, 0.1, 0]]), np.array([[0.1, 0, 0], [0, 1, 0]])
    assert agent.tell(decision, click)
    assert agent.tell(decision, purchase)
    assert not agent.tell(decision, purchase)
    assert not agent.tell(decision, click)  # an earlier request, repeated
    assert agent.tell(decision, 0.0 * click, amend=True)
    other.tell(other.ask(), 0.0 * click)
    np.testing.assert_array_equal(agent.tally.total, other.tally.total)
    np.testing.assert_array_equal(agent.tally.pulls, other.tally.pulls)
    agent.untell(decision, 0.0 * click)
    assert not agent.tally.pulls.any()
    assert agent.pending == (decision,)


def test_feedback_may_come_in_parts():
    agent, whole = make(), make()
    decision = agent.ask()
    first, second = decision.arms
    assert agent.tell(decision, [[1, None, 0]], arms=[first], more=True)
    assert second in decision.arms
    assert agent.pending == (decision,)
    assert agent.learner.pending[0, decision.action].tolist() == [0.0, 1.0]
    assert agent.tally.missed[0, 1, decision.action[0]] == 1.0
    assert agent.tell(decision, [[None, 0.5, None], [0, 0, 1]], more=True)
    assert not agent.pending
    assert not agent.learner.pending.any()
    whole.tell(whole.ask(), [[1, 0.5, 0], [0, 0, 1]])
    for name in ("pulls", "total", "square"):
        np.testing.assert_array_equal(getattr(agent.tally, name), getattr(whole.tally, name))
    late = agent.ask()
    assert agent.tell(late, [[1, 0, 1]], arms=[late.arms[0]], more=True)
    assert agent.tell(late, [[1, 0, 1]], arms=[late.arms[0]])  # nothing more will come
    assert not agent.pending
    assert agent.tally.pulls.sum() == 3.0
    with pytest.raises(InvalidArgument, match="NaN"):
        agent.tell(agent.ask(), [[1, None, 0], [0, 0, 0]])


@pytest.mark.parametrize(
    ("outcome", "seen", "argument"),
    [
        ([[1, 0, 2], [0, 0, 0]], None, "outcome"),
        ([[1, 0, -0.1], [0, 0, 0]], None, "outcome"),
        ([[1, 0, np.nan], [0, 0, 0]], None, "outcome"),
        ([[1, 0, np.inf], [0, 0, 0]], None, "outcome"),
        ([[1, 0], [0, 0]], None, "outcome"),
        ([[1, 0, 0]], None, "outcome"),
        ([["a", 0, 0], [0, 0, 0]], None, "outcome"),
        ([[None, 0, 0], [0, 0, 0]], None, "outcome"),
        ([["0.5", None, 0], [0, 0, 0]], None, "outcome"),
        ([[0, 0], [0, 0, 0]], None, "outcome"),
        ([[1, 0, 0], [0, 0, 0]], [[True, False]], "seen"),
        ([[1, 0, 0], [0, 0, 0]], [[1, 1, 1], [0, 0, 0]], "seen"),
    ],
)
def test_bad_feedback_names_the_argument_and_changes_nothing(outcome, seen, argument):
    agent = make()
    decision = agent.ask()
    before = saved(agent)
    with pytest.raises(InvalidArgument) as caught:
        agent.tell(decision, outcome, seen)
    assert caught.value.argument == argument
    assert caught.value.remedy
    assert saved(agent) == before


def test_the_value_that_is_no_number_is_named():
    agent = make()
    with pytest.raises(InvalidArgument, match="outcome: 'click' is not a number"):
        agent.tell(agent.ask(), [[1, 0, "click"], [0, 0, 0]])


def test_unknown_and_forgotten_decisions_are_refused():
    agent = make(remember=2)
    for call in (agent.tell, agent.untell):
        with pytest.raises(UnknownDecision):
            call("17", [[0, 0, 0]] * 2)
    for call in (agent.cancel, agent.explain):
        with pytest.raises(UnknownDecision):
            call("17")
    decisions = play(agent, 3, np.random.default_rng(0))
    before = saved(agent)
    with pytest.raises(UnknownDecision):
        agent.tell(decisions[0], [[0, 0, 0]] * 2)
    assert saved(agent) == before


def test_what_was_not_seen_is_not_a_zero():
    agent = make()
    decision = agent.ask()
    agent.tell(decision, [[1, np.nan, 0], [0, 1, 1]], seen=[[True, False, True], [True, True, False]])
    mean, _ = agent.estimates()
    nan = np.nan
    assert np.array_equal(mean[decision.action], [[1.0, nan, 0.0], [0.0, 1.0, nan]], equal_nan=True)
    assert np.isnan(np.delete(mean, decision.action, axis=0)).all()


def test_feedback_is_recognised_and_taken_back_after_items_were_added():
    agent = make()
    decision, late = agent.ask(), agent.ask()
    outcome = [[1, 0, 1], [0, 0.5, 0]]
    agent.tell(decision, outcome)
    agent.add_items(["late"])
    assert agent.tell(decision, outcome) is False
    assert agent.tell(decision, [[1, 0, 1, 0], [0, 0.5, 0, 0]], seen=[[True] * 3 + [False]] * 2) is False
    with pytest.raises(ConflictingFeedback):
        agent.tell(decision, [[1, 0, 1, 1], [0, 0.5, 0, 1]])
    agent.untell(decision, outcome)
    assert not agent.tally.total.any()
    agent.tell(late, [[1, 0, 1, 1], [0, 0.5, 0, 1]])
    assert agent.tell(late, [[1, 0, 1, 1], [0, 0.5, 0, 1]]) is False


def test_sparse_agents_take_outcomes_laid_flat():
    support = csr_array([[1, 0, 1], [0, 1, 0], [0, 1, 1]])
    agent = Agent(Problem(3, 3, Coverage(), Subsets(2), support=support), KL_UCB)
    decision = agent.ask()
    with pytest.raises(InvalidArgument, match="shape"):
        agent.tell(decision, [[1, 0, 1], [0, 1, 0]])
    assert agent.tell(decision, [1, 0, 1], [True, False, True])
    nan = np.nan
    assert np.array_equal(agent.estimates()[0], [1, nan, 1, nan, nan], equal_nan=True)
    with pytest.raises(InvalidArgument, match="support"):
        agent.add_arms(["new"])
    agent.add_arms(["new"], support=csr_array([[1, 0, 1], [0, 1, 0], [0, 1, 1], [1, 1, 1]]))
    assert "new" in agent.ask().arms
    assert saved(again(agent)) == saved(agent)


# --- decisions


def test_every_arm_is_tried_in_as_few_rounds_as_possible():
    agent = make()
    assert [agent.ask().action.tolist() for _ in range(4)] == [[0, 1], [2, 3], [4, 5], [6, 0]]


@pytest.mark.parametrize("bad", [[7], [-1], [0, 0], ["nobody"], [0.5], [[0]], 3, "b", []])
def test_bad_eligible_arms_change_nothing(bad):
    agent = make()
    before = saved(agent)
    with pytest.raises(InvalidArgument):
        agent.ask(eligible=bad)
    assert saved(agent) == before


def test_only_eligible_arms_are_handed_out_around_the_pinned_ones():
    agent = make(arms=list("abcdefg"))
    assert set(agent.ask(eligible=["b", 3, "g"]).arms) <= {"b", "d", "g"}
    play(agent, 20, np.random.default_rng(0))
    decision = agent.ask(pinned=["f"])
    assert decision.arms[0] == "f"
    assert len(decision.arms) == 2
    before = saved(agent)
    for wrong in ({"pinned": ["a", "b", "c"]}, {"pinned": ["f"], "eligible": ["a", "b"]}, {"pinned": ["z"]}):
        with pytest.raises(InvalidArgument):
            agent.ask(**wrong)
    assert saved(agent) == before
    fixed = Agent(PROBLEM.changed(actions=Pinned(Subsets(3), [2])), KL_UCB)
    assert set(fixed.ask(pinned=[4]).action.tolist()) > {2, 4}


def test_an_id_of_ones_own_gives_the_same_decision_again():
    agent = make()
    first = agent.ask(id="mine")
    assert agent.ask(id="mine") is first
    assert agent.t == 1
    agent.tell("mine", [[0, 0, 0]] * 2)
    assert agent.ask(id="mine") is first
    with pytest.raises(InvalidArgument):
        agent.ask(id="")
    with pytest.raises(ValueError, match="read-only"):
        first.action[0] = 5


def test_pulls_under_way_spread_the_batches_out_and_leave_the_means_alone():
    agent, frozen = make(), make()
    for one in (agent, frozen):
        play(one, 30, np.random.default_rng(3))
    before = agent.estimates()
    actions, repeated = set(), set()
    for _ in range(60):
        actions.add(tuple(sorted(agent.ask().action)))
        decision = frozen.ask()
        frozen.cancel(decision)
        repeated.add(tuple(sorted(decision.action)))
    assert len(repeated) < len(actions)
    assert all(np.array_equal(x, y, equal_nan=True) for x, y in zip(before, agent.estimates(), strict=True))


def test_arms_that_nothing_was_told_of_stay_hopeful_however_many_pulls_are_under_way():
    agent = make(IndexPolicy(Mean()))
    agent.tell(agent.ask(eligible=[0, 1]), [[1, 0, 0], [1, 0, 0]])
    assert all(agent.ask().action[0] in {2, 3, 4, 5, 6} for _ in range(20))


def test_an_explanation_has_the_numbers_of_the_choice():
    agent = make(BC_UCB, arms=list("abcdefg"))
    play(agent, 9, np.random.default_rng(0))
    decision, before = agent.ask(), saved(agent)
    told = agent.explain(decision)
    assert [arm.name for arm in told.arms] == list(decision.arms)
    q = np.array([arm.optimistic for arm in told.arms])
    assert np.isclose(sum(arm.gain for arm in told.arms), (1.0 - np.prod(1.0 - q, axis=0)).sum())
    assert "gain" in str(told)
    assert saved(agent) == before
    other = Agent(Problem(4, 1, Linear(), Subsets(2)), escb())
    decision = other.ask()
    with pytest.raises(InvalidArgument, match="other things than parameters"):
        other.explain(decision)
    assert "7 arms, 3 items" in repr(agent)
    assert "<td>a</td>" in agent._repr_html_()


# --- changes


def test_arms_come_and_go():
    agent = make()
    play(agent, 5, np.random.default_rng(0))
    waiting = agent.ask()
    pulls = agent.tally.pulls.copy()
    agent.add_arms(["new", "newer"])
    assert agent.ask().arms == ("new", "newer")
    assert np.array_equal(agent.tally.pulls[:, :7], pulls)
    agent.retire_arms([int(waiting.action[0]), "new"])
    assert agent.tell(waiting, [[1, 1, 1], [0, 0, 0]])
    assert all({"new", waiting.arms[0]}.isdisjoint(agent.ask().arms) for _ in range(6))
    for wrong in (["newer"], ["new", "new"], "new", [""]):
        with pytest.raises(InvalidArgument):
            agent.add_arms(wrong)
    assert len(agent.arms) == 9
    agent.add_arms(["new", "third"])
    assert agent.arms[-1] == "third"
    assert not agent.learner.retired[7]


def test_explicit_and_laminar_sets_need_new_sets_for_new_arms():
    agent = Agent(Problem(3, 1, Coverage(), Explicit([[0, 1], [2]])), BC_UCB)
    with pytest.raises(InvalidArgument, match="arm 3 is in no batch"):
        agent.add_arms(1)
    assert len(agent.arms) == 3
    agent.add_arms(1, actions=Explicit([[0, 1], [2], [3]]))
    assert [agent.ask().action.tolist() for _ in range(3)] == [[0, 1], [2], [3]]
    agent = Agent(Problem(3, 1, Coverage(), Laminar([([0, 1], 1), (range(3), 2)])), BC_UCB)
    with pytest.raises(InvalidArgument, match=r"families do not name the new arms.*add_arms\(\[…\], actions=…\)"):
        agent.add_arms(2)
    agent.add_arms(2, Laminar([([0, 1], 1), (range(5), 2)]))
    assert len(agent.ask().action) == 2
    agent.retire_arms(["1"])
    agent.add_arms(["1"])


def test_a_new_arm_under_a_brand_rule_says_how_and_one_that_is_there_says_so():
    brands = sa.actions.PartitionMatroid(["own", "other", "own"], {"own": 1, "other": 1})
    agent = Agent(Problem(3, 1, Linear(), brands), BC_UCB, arms=["tent", "stove", "lamp"])
    with pytest.raises(InvalidArgument, match=r"3 for 4 arms.*old and new: add_arms\(\[…\], actions=…\)"):
        agent.add_arms(["compass"])
    agent.retire_arms(["stove"])
    rule = sa.actions.PartitionMatroid(["own", "other", "own", "other"], {"own": 1, "other": 1})
    agent.add_arms(["compass", "stove"], actions=rule)
    assert agent.arms[-1] == "compass"
    for again in (["compass"], ["rope", "compass"]):
        with pytest.raises(InvalidArgument, match="'compass' is an arm already"):
            agent.add_arms(again)


def test_items_come_and_go():
    agent = make()
    play(agent, 6, np.random.default_rng(0))
    mean = agent.estimates()[0]
    agent.add_items(["late"], weights=[2.0])
    assert agent.items[-1] == "late"
    assert np.array_equal(agent.estimates()[0][:, :3], mean, equal_nan=True)
    assert np.isnan(agent.estimates()[0][:, 3]).all()
    agent.retire_items(["late", 0])
    assert agent.problem.weights.tolist() == [0.0, 1.0, 1.0, 0.0]
    with pytest.raises(InvalidArgument):
        agent.add_items(2, weights=[1.0])
    assert again(agent).learner.retired_items == {0, 3}


def test_warm_start_from_data_and_prior():
    past = PROBLEM.past([0, 0, 3], [[1, 0, 0], [0, 0, 0], [1, 1, 1]])
    agent = make(tally=past)
    assert agent.t == 2
    agent.warm_start(PROBLEM.prior(np.full((7, 3), 0.25), 4))
    assert agent.estimates()[0][0].tolist() == [2 / 6, 1 / 6, 1 / 6]
    with pytest.raises(InvalidArgument, match="another problem"):
        agent.warm_start(Problem(2, 3, Coverage(), Subsets(1)).prior(np.zeros((2, 3)), 1))


def test_a_window_forgets_also_what_was_observed_before_it_was_taken_on():
    agent = make()
    for _ in range(6):
        agent.tell(agent.ask(), np.ones((2, 3)))
    agent.change_policy(sliding_window(KL_UCB, 8, blocks=4))
    assert agent.learner.memory.inner.tally.pulls.tolist() == agent.tally.pulls.tolist()
    for _ in range(12):
        agent.tell(agent.ask(eligible=[0, 1]), np.zeros((2, 3)))
    assert not agent.learner.memory.inner.tally.pulls[0, 2:].any()
    assert set(agent.ask().action.tolist()) <= {2, 3, 4, 5, 6}


def test_another_action_set_chooses_and_changes_nothing():
    agent = make()
    play(agent, 9, np.random.default_rng(1))
    learner, key = agent.learner, np.array([3], np.uint64)
    before = saved(agent)
    view = learner.view(10, key)
    first = learner.choose(view).tolist()
    assert len(learner.choose(view, Subsets(4))) == 4
    assert learner.choose(view, Pinned(Subsets(2), [5]))[0] == 5
    assert learner.choose(view).tolist() == first
    assert saved(agent) == before


@pytest.mark.parametrize("kind", ["dense", "sparse", "features"])
def test_other_prices_are_taken_on_without_a_new_arm(kind):
    """Where arms have features, or touch some items only, those of the new arms were asked for."""
    support = Sparse(2, 3, np.array([0, 1, 2, 4]), np.array([0, 1, 0, 1])) if kind == "sparse" else None
    known = sa.Features(numeric={"size": (0.0, 1.0)})
    context = sa.Context(sa.Features(), arm_features=known, arms=[{"size": x} for x in (0.1, 0.5, 0.9)])
    context = context if kind == "features" else None
    problem = sa.Problem(3, 2, sa.Coverage(), sa.Knapsack([1.0, 1.0, 3.0], 3.0), support=support, context=context)
    agent = sa.Agent(problem, seed=0, arms=["a", "b", "c"])
    decision = agent.ask(pinned=["a"])
    assert decision.arms == ("a", "b")
    agent.tell(decision, np.ones((2, 2)) if support is None else np.ones(2))
    before = agent.tally.pulls.tolist()
    agent.add_arms([], actions=sa.Knapsack([3.0, 1.0, 1.0], 3.0))
    assert agent.ask(pinned=["a"]).arms == ("a",)
    assert (agent.tally.pulls.tolist(), agent.arms) == (before, ("a", "b", "c"))
    assert agent.problem.support == problem.support


def count_wins(problem, memory, feedback, sign):
    wins = memory.setdefault("wins", np.zeros(problem.n_arms))
    np.add.at(wins, feedback.action[0], sign * feedback.outcome[0].max(axis=1))


MEMORY = sa.policy(lambda problem, view, memory: problem.actions.heaviest(1.0 / (1.0 + view.counts), view), count_wins)


@pytest.mark.parametrize("change", ["retired item", "past data", "arms", "items", "policy"])
def test_a_memory_of_ones_own_is_kept_or_named_and_takes_back_what_it_learnt(change):
    problem = sa.Problem(4, 2, sa.Coverage(), sa.Subsets(2))
    agent = sa.Agent(problem, sa.kl_ucb() if change == "policy" else MEMORY, seed=1)
    told = [agent.ask() for _ in range(6)]
    for decision in told[:4]:
        agent.tell(decision, np.ones((2, 2)))
    if change == "items":
        with pytest.warns(UserWarning, match="forgets it now that items were added"):
            agent.add_items(1)
    elif change == "arms":
        agent.add_arms(1)
    elif change == "policy":
        agent.change_policy(MEMORY)
    elif change == "past data":
        agent.warm_start(problem.past([0], [[1, 1]]))
    else:
        agent.retire_items(["1"])
    kept = 0.0 if change in ("items", "policy") else 8.0
    assert np.sum(agent.learner.memory.own.get("wins", 0.0)) == kept
    late = agent.ask()
    agent.tell(late, np.ones((2, 3 if change == "items" else 2)))
    for decision in told[:4]:
        agent.untell(decision, np.ones((2, 2)))
    wins = agent.learner.memory.own["wins"]
    np.testing.assert_array_equal(wins[late.action], 1.0)
    assert wins.sum() == 2.0
    assert len(wins) == (5 if change == "arms" else 4)


def test_a_policy_that_does_not_fit_leaves_the_agent_as_it_was():
    agent = make()
    play(agent, 3, RNG)
    before = saved(agent)
    with pytest.raises(InvalidArgument, match="modular"):
        agent.change_policy(escb())
    for name, parameters in (("nothing", {}), ("kl_ucb", {"zeta": 1.0}), ("_DEFAULT", {}), ("c2_ucb", {})):
        with pytest.raises(InvalidArgument):
            agent.change_policy(name, **parameters)
    assert saved(agent) == before
    agent.change_policy("bc_ucb", rho=0.5)
    assert agent.policy == IndexPolicy(Bernstein(0.5))


# --- arguments


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((PROBLEM, escb.__class__), "policy: .* parentheses"),
        ((KL_UCB, PROBLEM), "problem: .* swap the arguments"),
        ((PROBLEM, KL()), r"policy: .* wrap it: IndexPolicy\(KL\("),
        ((PROBLEM, KL_UCB, "one"), "seed: 'one'"),
        ((PROBLEM, KL_UCB, -1), "seed: -1"),
        ((PROBLEM, c2_ucb()), "policy: .* needs a context"),
    ],
)
def test_wrong_arguments_are_refused_at_the_door(arguments, said):
    with pytest.raises(InvalidArgument, match=said):
        Agent(*arguments)


def test_seeds_of_every_kind():
    def first(seed):
        return Agent(PROBLEM, seed=seed).to_state()["mind"]

    assert first(7) == first(np.random.SeedSequence(7)) == first(np.int64(7))
    assert first(np.random.default_rng(7)) == first(np.random.default_rng(7))
    drawn = np.random.default_rng(7)
    assert len({first(drawn), first(drawn), first(None), first(None), first(7)}) == 5


def test_names_may_be_integers():
    agent = make(arms=[3, 5, 7, 1, 9, 11, 0], items=np.array([30, 10, 20]))
    assert agent.arms == ("3", "5", "7", "1", "9", "11", "0")
    assert agent.ask(eligible=[0, 3]).arms == ("3", "0")
    agent.retire_arms([3])
    agent = again(agent)
    assert all("3" not in agent.ask().arms for _ in range(8))
    agent.add_arms([3, 100])
    assert agent.ask(eligible=[100, "3"]).arms == ("100", "3")
    for wrong in (["new"], [5], [True], "new"):
        with pytest.raises(InvalidArgument):
            agent.add_arms(wrong)
    with pytest.raises(InvalidArgument, match="unknown name"):
        agent.ask(eligible=[2])
    with pytest.raises(InvalidArgument, match="5 is not a name"):
        make(arms=["a", 5, *"cdefg"])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_copy_goes_on_alone(policy, copied):
    agent = make(POLICIES[policy])
    play(agent, 5, np.random.default_rng(0))
    other = copied(agent)
    assert saved(agent) == saved(other)
    assert np.array_equal(agent.ask().action, other.ask().action)
    play(other, 1, np.random.default_rng(0))
    assert other.t == agent.t + 1


def test_threads_take_turns():
    agent, made, told = make(BC_UCB), [], []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def work():
        for _ in range(60):
            decision = agent.ask()
            made.append(decision.id)
            told.append(agent.tell(decision, [[1, 0, 0], [0, 0, 1]]))

    try:
        with ThreadPoolExecutor(4) as pool:
            for future in [pool.submit(work) for _ in range(4)]:
                future.result()
    finally:
        sys.setswitchinterval(interval)
    assert len(set(made)) == len(made) == agent.t == 240
    assert all(told)
    assert not agent.pending
    assert agent.tally.pulls.sum() == 480


def test_a_small_agent_needs_neither_numba_nor_scipy():
    code = """if True:
        import sys
        from superarm.agent import Agent
        from superarm.actions import Subsets
        from superarm.problem import Problem
        from superarm.rewards import Coverage
        agent = Agent(Problem(4, 3, Coverage(), Subsets(2)))
        for _ in range(5):
            agent.tell(agent.ask(), [[1, 0, 0], [0, 1, 0]])
        print([name for name in ("numba", "scipy", "matplotlib", "pandas") if name in sys.modules])
    """
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# --- data frames


def pandas_frame(table, columns=None, index=None):
    import pandas  # here, and not above: it takes half a second

    return pandas.DataFrame(table, index, columns)


def polars_frame(table, columns=None, index=None):
    import polars

    return polars.DataFrame(table, columns, orient="row")


FRAMES = {"pandas": pandas_frame, "polars": polars_frame}


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("seen", [None, [[True, True, False], [False, True, True]]])
def test_columns_and_rows_of_frames_are_found_by_name(library, seen):
    """The frame has the items z, x, y in the place of x, y, z and, in pandas, the arms in the other order."""
    told = []
    for as_frame in (False, True):
        agent = make(arms=list("abcdefg"), items=list("xyz"))
        decision = agent.ask()
        table, mask = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]), None if seen is None else np.array(seen)
        if as_frame:
            rows = [1, 0] if library == "pandas" else [0, 1]
            index = [decision.arms[j] for j in rows]
            table = FRAMES[library](table[rows][:, [2, 0, 1]], ["z", "x", "y"], index)
            mask = None if mask is None else mask[rows][:, [2, 0, 1]]
        agent.tell(decision, table, mask)
        told.append(agent)
    assert saved(told[0]) == saved(told[1])


@pytest.mark.parametrize("library", FRAMES)
def test_frames_without_names_are_taken_by_place_and_other_names_are_refused(library):
    frame, table = FRAMES[library], [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]
    agent = make(arms=list("abcdefg"), items=list("xyz"))
    decision = agent.ask()
    before = saved(agent)
    for columns in (["x", "y", "other"], ["x", "x", "y"] if library == "pandas" else ["X", "Y", "Z"]):
        with pytest.raises(InvalidArgument, match="outcome: columns named"):
            agent.tell(decision, frame(table, columns, None))
    with pytest.raises(InvalidArgument, match="seen: columns named"):
        agent.tell(decision, table, frame(np.ones((2, 3), bool), ["x", "y", "other"], None))
    if library == "pandas":
        with pytest.raises(InvalidArgument, match="outcome: rows named"):
            agent.tell(decision, frame(table, list("xyz"), ["a", "g"]))
    assert saved(agent) == before
    assert agent.tell(decision, frame(table, None, None))
    assert agent.tell(decision, table) is False
    nameless = make()
    decision = nameless.ask()
    assert nameless.tell(decision, frame(table, ["x", "y", "z"], None))
    assert nameless.tell(decision, table) is False


def test_rows_of_pairs_and_of_new_arms_are_found_by_name():
    context = Context(FEATURES, arms=[[0.5, 0.0], [0.0, 0.5]], model=models.Linear(shared=True), pairs=1)
    problem = Problem(2, 1, Linear(), Subsets(1), context=context)
    pairs = np.array([[0.25], [-0.5]])
    agents = [Agent(problem, c2_ucb(), seed=0, arms=["a", "b"]) for _ in range(2)]
    for agent, table in zip(agents, (pairs, FRAMES["pandas"](pairs[::-1], ["x"], ["b", "a"])), strict=True):
        agent.tell(agent.ask(context={"age": 0.5}, pairs=table), [[1.0]])
    new = np.array([[0.125, 0.25], [0.75, 1.0]])
    agents[0].add_arms(["c", "d"], features=new)
    agents[1].add_arms(["c", "d"], features=FRAMES["pandas"](new[::-1], None, ["d", "c"]))
    assert saved(agents[0]) == saved(agents[1])
    named = Features(numeric={"price": (0, 1)})
    with pytest.raises(InvalidArgument, match="a data frame; give one mapping"):
        Context(FEATURES, FRAMES["pandas"]([[1.0]], ["price"], None), models.Linear(shared=True), arm_features=named)
    with pytest.raises(InvalidArgument, match="pairs: rows named"):
        agents[0].ask(context={"age": 0.5}, pairs=FRAMES["pandas"](np.zeros((4, 1)), None, list("abcx")))


def test_columns_of_past_data_that_are_numbers_are_put_into_order():
    frame = FRAMES["pandas"]([[0.0, 1.0, 0.25]], [2, 0, 1], None)
    assert PROBLEM.past([4], frame).total[0, :, 4].tolist() == [1.0, 0.25, 0.0]
    p = np.arange(21).reshape(7, 3) / 21
    shuffled = FRAMES["pandas"](p[::-1, ::-1], [2, 1, 0], range(6, -1, -1))
    assert np.array_equal(PROBLEM.entries(shuffled), PROBLEM.entries(p))


def test_what_is_known_is_a_table_with_names():
    problem = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(2))
    agent = sa.Agent(problem, sa.kl_ucb(), seed=0, arms=["a", "b", "c"], items=["x", "y"])
    decision = agent.ask()
    agent.tell(decision, [[1, 0.5], [0, 1]], seen=[[True, True], [True, False]])
    first, second = decision.arms
    rows = {row["arm"]: row for row in agent.table()}
    assert rows[first] == {"arm": first, "pulls": 1.0, "x": 1.0, "y": 0.5}
    assert rows[second]["x"] == 0.0
    assert np.isnan(rows[second]["y"])
    assert agent.table().to_pandas().columns.tolist() == ["arm", "pulls", "x", "y"]
    assert agent.estimates().mean.shape == agent.estimates().variance.shape == (3, 2)


def test_an_arm_that_is_retired_until_a_date_comes_back_by_itself():
    agent = sa.Agent(sa.Problem(4, 1, sa.Linear(), sa.Subsets(3)), arms=["a", "b", "c", "d"], seed=1)
    now = datetime.now(UTC)
    agent.retire_arms(["a"], until=now + timedelta(days=1))
    agent.retire_arms(["b"], until=now - timedelta(days=1))
    agent = sa.Agent.from_state(json.loads(json.dumps(agent.to_state())))
    with pytest.raises(sa.InvalidArgument, match=r"ask\(now=datetime.now\(UTC\)\)"):
        agent.ask()
    assert sorted(agent.ask(now=now).arms) == ["b", "c", "d"]
    agent.retire_arms(["a"])  # for good
    agent.retire_arms(["c"], until=now)
    assert sorted(agent.ask(now=now).arms) == ["b", "c", "d"]
    assert "paused" not in agent.to_state()
    assert agent.ask().action.size == 3
    with pytest.raises(sa.InvalidArgument, match="time zone"):
        agent.retire_arms(["a"], until=datetime(2030, 1, 1))
