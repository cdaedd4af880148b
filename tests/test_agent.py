"""Ask and tell: late, partial, repeated and corrected feedback; growth; saving."""

import copy
import json
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as sa
from superarm.core.tally import estimates, merge

RNG = np.random.default_rng(0)
SOME = [sa.kl_ucb(), sa.cts(), sa.bc_ucb(), sa.epsilon_greedy()]
PROBLEM = sa.Problem(n_arms=7, n_items=3, reward=sa.Coverage(), actions=sa.Subsets(2))


def make(policy=None, **options):
    return sa.Agent(PROBLEM, policy or sa.kl_ucb(), seed=1, **options)


def play(agent, rounds, rng):
    decisions = []
    for _ in range(rounds):
        decision = agent.ask()
        agent.tell(decision, rng.random((2, agent.problem.n_items)) < 0.4)
        decisions.append(decision)
    return decisions


def same_state(a, b):
    return json.dumps(a.to_state(), sort_keys=True) == json.dumps(b.to_state(), sort_keys=True)


def test_every_arm_is_tried_in_as_few_rounds_as_possible():
    agent = make()
    first = [agent.ask().action.tolist() for _ in range(4)]
    assert first == [[0, 1], [2, 3], [4, 5], [6, 0]]


def test_tell_is_idempotent_and_conflicts_are_refused():
    agent = make()
    decision = agent.ask()
    assert agent.tell(decision, [[1, 0, 0], [0, 1, 0]]) is True
    before = agent.to_state()
    assert agent.tell(decision.id, np.array([[1, 0, 0], [0, 1, 0]], bool)) is False
    with pytest.raises(sa.ConflictingFeedback):
        agent.tell(decision, [[1, 1, 0], [0, 1, 0]])
    assert agent.to_state() == before


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
    before = agent.to_state()
    with pytest.raises(sa.InvalidArgument) as caught:
        agent.tell(decision, outcome, seen)
    assert caught.value.argument == argument
    assert caught.value.remedy
    assert agent.to_state() == before


@pytest.mark.parametrize("bad", [[7], [-1], [0, 0], ["nobody"], [0.5], [[0]]])
def test_bad_eligible_arms_change_nothing(bad):
    agent = make()
    before = agent.to_state()
    with pytest.raises(sa.InvalidArgument):
        agent.ask(eligible=bad)
    assert agent.to_state() == before


def test_unknown_decisions_are_refused():
    agent = make()
    with pytest.raises(sa.UnknownDecision, match="never asked"):
        agent.tell("17", [[0, 0, 0]] * 2)
    with pytest.raises(sa.UnknownDecision):
        agent.untell("17", [[0, 0, 0]] * 2)
    with pytest.raises(sa.UnknownDecision):
        agent.cancel("17")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((PROBLEM, sa.kl_ucb), "policy: .* parentheses"),
        ((sa.kl_ucb(), PROBLEM), "problem: .* swap the arguments"),
        ((PROBLEM, sa.indices.KL()), r"policy: .* wrap it: IndexPolicy\(KL\("),
        ((PROBLEM, sa.kl_ucb(), "one"), "seed: 'one' is not a seed"),
        ((PROBLEM, sa.kl_ucb(), -1), "seed: -1 is not a seed"),
    ],
)
def test_wrong_arguments_are_refused_at_the_door(arguments, said):
    with pytest.raises(sa.InvalidArgument, match=said):
        sa.Agent(*arguments)


def test_seeds_of_every_kind():
    def first(seed):
        agent = sa.Agent(PROBLEM, sa.cts(), seed)
        play(agent, 10, np.random.default_rng(0))
        return agent.to_state()["mind"]

    assert first(7) == first(np.random.SeedSequence(7)) == first(np.int64(7))
    assert first(np.random.default_rng(7)) == first(np.random.default_rng(7))
    drawn = np.random.default_rng(7)
    assert len({first(drawn), first(drawn), first(None), first(None), first(7)}) == 5


@pytest.mark.parametrize("eligible", [3, "b"])
def test_eligible_arms_are_a_list(eligible):
    with pytest.raises(sa.InvalidArgument, match=r"give a list: \["):
        make(arms=list("abcdefg")).ask(eligible)


def test_the_value_that_is_no_number_is_named():
    agent = make()
    with pytest.raises(sa.InvalidArgument, match="outcome: 'click' is not a number"):
        agent.tell(agent.ask(), [[1, 0, "click"], [0, 0, 0]])


def test_names_may_be_integers():
    ids = [3, 5, 7, 1, 9, 11, 0]
    agent = make(arms=ids, items=np.array([30, 10, 20]))
    assert agent.arms == ("3", "5", "7", "1", "9", "11", "0")
    assert agent.ask(eligible=[0, 3]).arms == ("3", "0")
    agent.retire_arms([3])
    agent = sa.Agent.from_state(json.loads(json.dumps(agent.to_state())))
    assert all("3" not in agent.ask().arms for _ in range(8))
    agent.add_arms([3, 100])
    assert agent.ask(eligible=[100, "3"]).arms == ("100", "3")
    for wrong in (["new"], [5], [True], "new"):
        with pytest.raises(sa.InvalidArgument):
            agent.add_arms(wrong)
    with pytest.raises(sa.InvalidArgument, match="unknown name"):
        agent.ask(eligible=[2])
    with pytest.raises(sa.InvalidArgument, match="5 is not a name"):
        make(arms=["a", 5, *"cdefg"])


@pytest.mark.parametrize("again", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])
def test_a_copy_goes_on_alone(again):
    agent = make()
    play(agent, 5, np.random.default_rng(0))
    other = again(agent)
    assert same_state(agent, other)
    assert np.array_equal(agent.ask().action, other.ask().action)
    play(other, 1, np.random.default_rng(0))
    assert other.t == agent.t + 1


def test_threads_take_turns():
    agent, made, told = make(), [], []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def work():
        for _ in range(100):
            decision = agent.ask()
            made.append(decision.id)
            told.append(agent.tell(decision, [[1, 0, 0], [0, 0, 1]]))

    try:
        with ThreadPoolExecutor(4) as pool:
            for future in [pool.submit(work) for _ in range(4)]:
                future.result()
    finally:
        sys.setswitchinterval(interval)
    assert len(set(made)) == len(made) == agent.t == 400
    assert all(told)
    assert not agent.pending
    assert agent.tally.pulls.sum() == 800


FRAMES = {
    "pandas": lambda table, columns, index: pandas.DataFrame(table, index, columns),
    "polars": lambda table, columns, index: polars.DataFrame(table, columns, orient="row"),
}


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
    assert same_state(*told)


@pytest.mark.parametrize("library", FRAMES)
def test_frames_without_names_are_taken_by_place_and_other_names_are_refused(library):
    frame, table = FRAMES[library], [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]
    agent = make(arms=list("abcdefg"), items=list("xyz"))
    decision = agent.ask()
    before = agent.to_state()
    for columns in (["x", "y", "other"], ["x", "x", "y"] if library == "pandas" else ["X", "Y", "Z"]):
        with pytest.raises(sa.InvalidArgument, match="outcome: columns named"):
            agent.tell(decision, frame(table, columns, None))
    with pytest.raises(sa.InvalidArgument, match="seen: columns named"):
        agent.tell(decision, table, frame(np.ones((2, 3), bool), ["x", "y", "other"], None))
    if library == "pandas":
        with pytest.raises(sa.InvalidArgument, match="outcome: rows named"):
            agent.tell(decision, frame(table, list("xyz"), ["a", "g"]))
    assert agent.to_state() == before
    assert agent.tell(decision, frame(table, None, None))
    assert agent.tell(decision, table) is False
    nameless = make()
    decision = nameless.ask()
    assert nameless.tell(decision, frame(table, ["x", "y", "z"], None))
    assert nameless.tell(decision, table) is False


def test_rows_of_pairs_and_of_new_arms_are_found_by_name():
    features = sa.Features(numeric={"age": (0, 1)})
    linear = sa.models.Linear(shared=True)
    context = sa.Context(features, arms=[[0.5, 0.0], [0.0, 0.5]], model=linear, pairs=1)
    problem = sa.Problem(2, 1, sa.Linear(), sa.Subsets(1), context=context)
    pairs = np.array([[0.25], [-0.5]])
    agents = [sa.Agent(problem, sa.c2_ucb(), arms=["a", "b"]) for _ in range(2)]
    for agent, table in zip(agents, (pairs, FRAMES["pandas"](pairs[::-1], ["x"], ["b", "a"])), strict=True):
        agent.tell(agent.ask(context={"age": 0.5}, pairs=table), [[1.0]])
    new = np.array([[0.125, 0.25], [0.75, 1.0]])
    agents[0].add_arms(["c", "d"], features=new)
    agents[1].add_arms(["c", "d"], features=FRAMES["pandas"](new[::-1], None, ["d", "c"]))
    assert same_state(*agents)
    with pytest.raises(sa.InvalidArgument, match="pairs: rows named"):
        agents[0].ask(context={"age": 0.5}, pairs=FRAMES["pandas"](np.zeros((4, 1)), None, list("abcx")))
    named = sa.Features(numeric={"price": (0, 1)})
    with pytest.raises(sa.InvalidArgument, match="a data frame; give one mapping"):
        sa.Context(features, FRAMES["pandas"]([[1.0]], ["price"], None), linear, arm_features=named)


def test_columns_of_past_data_that_are_numbers_are_put_into_order():
    frame = FRAMES["pandas"]([[0.0, 1.0, 0.25]], [2, 0, 1], None)
    assert PROBLEM.past([4], frame).total.reshape(7, 3)[4].tolist() == [1.0, 0.25, 0.0]
    p = np.arange(21).reshape(7, 3) / 21
    shuffled = FRAMES["pandas"](p[::-1, ::-1], [2, 1, 0], range(6, -1, -1))
    assert np.array_equal(PROBLEM.entries(shuffled), p.reshape(-1))


def test_only_eligible_arms_are_handed_out_by_name_or_number():
    agent = make(arms=list("abcdefg"))
    for _ in range(5):
        decision = agent.ask(eligible=["b", 3, "g"])
        assert set(decision.arms) <= {"b", "d", "g"}
        assert len(decision.arms) == 2


def test_pinned_arms_are_in_the_batch_and_the_rest_is_chosen_around_them():
    agent = make(arms=list("abcdefg"))
    play(agent, 20, np.random.default_rng(0))
    for _ in range(3):
        decision = agent.ask(pinned=["f"])
        assert "f" in decision.arms
        assert len(decision.arms) == 2
        agent.tell(decision, [[0, 0, 1], [1, 0, 0]])
    before = agent.to_state()
    with pytest.raises(sa.InvalidArgument):
        agent.ask(pinned=["a", "b", "c"])
    with pytest.raises(sa.InvalidArgument):
        agent.ask(pinned=["f"], eligible=["a", "b"])
    assert agent.to_state() == before


def test_no_batch_out_of_no_arms():
    with pytest.raises(sa.InvalidArgument) as caught:
        make().ask(eligible=[])
    assert caught.value.argument == "eligible"


def test_an_id_of_ones_own_gives_the_same_decision_again():
    agent = make()
    first = agent.ask(id="mine")
    assert agent.ask(id="mine") is first
    assert agent.t == 1
    agent.tell("mine", [[0, 0, 0]] * 2)
    assert agent.ask(id="mine").action.tolist() == first.action.tolist()
    with pytest.raises(sa.InvalidArgument):
        agent.ask(id="")


def test_pulls_under_way_spread_the_batches_out():
    agent = make()
    play(agent, 30, np.random.default_rng(3))
    actions = {tuple(sorted(agent.ask().action)) for _ in range(60)}
    assert len(actions) > 3
    frozen = make()
    play(frozen, 30, np.random.default_rng(3))
    repeated = set()
    for _ in range(60):
        decision = frozen.ask()
        frozen.cancel(decision)
        repeated.add(tuple(sorted(decision.action)))
    assert len(repeated) < len(actions)


def test_arms_that_nothing_was_told_of_stay_hopeful_however_many_pulls_are_under_way():
    agent = make(sa.follow_the_leader())
    told = agent.ask(eligible=[0, 1])
    agent.tell(told, [[1, 0, 0], [1, 0, 0]])
    waiting = [agent.ask().action.tolist() for _ in range(20)]
    assert all(action[0] in {2, 3, 4, 5, 6} for action in waiting)


def test_pulls_under_way_leave_the_means_alone():
    agent = make()
    play(agent, 10, np.random.default_rng(3))
    before = agent.estimates()
    agent.ask()
    assert all(np.array_equal(x, y, equal_nan=True) for x, y in zip(before, agent.estimates(), strict=True))


@given(st.permutations(range(6)))
@settings(derandomize=True, max_examples=30, deadline=None)
def test_the_order_of_feedback_does_not_matter(order):
    outcomes = np.random.default_rng(5).random((6, 2, 3))
    agents = []
    for sequence in (range(6), order):
        agent = make(sa.cts())
        decisions = [agent.ask() for _ in range(6)]
        for n in sequence:
            agent.tell(decisions[n], outcomes[n])
        agents.append(agent)
    assert all(np.array_equal(x, y) for x, y in zip(agents[0].tally, agents[1].tally, strict=True))
    assert agents[0].ask().action.tolist() == agents[1].ask().action.tolist()


def test_what_was_not_seen_is_not_a_zero():
    agent = make()
    decision = agent.ask()
    agent.tell(decision, [[1, np.nan, 0], [0, 1, 1]], seen=[[True, False, True], [True, True, False]])
    mean, _ = agent.estimates()
    nan = np.nan
    assert np.array_equal(mean[decision.action], [[1.0, nan, 0.0], [0.0, 1.0, nan]], equal_nan=True)
    assert np.isnan(np.delete(mean, decision.action, axis=0)).all()
    assert agent.tally.missed.reshape(7, 3)[decision.action].tolist() == [[0, 1, 0], [0, 0, 1]]
    other = agent.ask(eligible=decision.action.tolist())
    agent.tell(other, [[1, 1, 1], [1, 1, 1]])
    seen_twice, seen_once = agent.estimates()[0][decision.action[0]][[0, 1]]
    assert (seen_twice, seen_once) == (1.0, 1.0)


@pytest.mark.parametrize("policy", SOME, ids=str)
def test_untell_is_exact(policy):
    agent = make(policy)
    play(agent, 9, np.random.default_rng(2))
    decision = agent.ask()
    before = copy.deepcopy(agent)
    outcome, seen = RNG.random((2, 3)), RNG.random((2, 3)) < 0.5
    agent.tell(decision, outcome, seen)
    with pytest.raises(sa.ConflictingFeedback):
        agent.untell(decision, 1.0 - outcome, seen)
    agent.untell(decision, outcome, seen)
    assert np.array_equal(agent.tally.total, before.tally.total)
    assert np.array_equal(agent.tally.pulls, before.tally.pulls)
    assert not agent.tally.missed.any()
    assert agent.tell(decision, outcome) is True


def test_cancelled_decisions_count_no_longer():
    agent = make()
    decision = agent.ask()
    assert [d.id for d in agent.pending] == [decision.id]
    agent.cancel(decision)
    assert agent.pending == ()
    with pytest.raises(sa.UnknownDecision):
        agent.tell(decision, [[0, 0, 0]] * 2)
    assert agent.ask().action.tolist() == decision.action.tolist()


def test_forgotten_decisions_are_unknown_not_learnt_twice():
    agent = make(remember=2)
    decisions = play(agent, 3, np.random.default_rng(0))
    pulls = agent.tally.pulls.copy()
    with pytest.raises(sa.UnknownDecision):
        agent.tell(decisions[0], [[0, 0, 0]] * 2)
    assert np.array_equal(agent.tally.pulls, pulls)


@pytest.mark.parametrize("policy", SOME, ids=str)
def test_a_restored_agent_continues_bit_for_bit(policy):
    agent = make(policy, arms=list("abcdefg"), items=["x", "y", "z"])
    play(agent, 12, np.random.default_rng(0))
    agent.ask()
    agent.retire_arms(["c"])
    again = sa.Agent.from_state(json.loads(json.dumps(agent.to_state())))
    assert same_state(agent, again)
    for one in (agent, again):
        play(one, 10, np.random.default_rng(9))
    assert same_state(agent, again)


@pytest.mark.parametrize("state", [{}, {"version": 99}, None, []])
def test_unknown_states_are_refused(state):
    with pytest.raises(sa.InvalidArgument, match="version"):
        sa.Agent.from_state(state)


def test_arms_come_and_go():
    agent = make()
    play(agent, 5, np.random.default_rng(0))
    waiting = agent.ask()
    pulls = agent.tally.pulls.copy()
    agent.add_arms(["new", "newer"])
    assert agent.ask().arms == ("new", "newer")
    assert np.array_equal(agent.tally.pulls[:7], pulls)
    agent.retire_arms([int(waiting.action[0]), "new"])
    assert agent.tell(waiting, [[1, 1, 1], [0, 0, 0]])
    assert all({"new", waiting.arms[0]}.isdisjoint(agent.ask().arms) for _ in range(6))
    with pytest.raises(sa.InvalidArgument, match="twice"):
        agent.add_arms(["newer"])


@pytest.mark.parametrize("more", [[], ["new"]])
def test_a_retired_arm_that_is_added_again_comes_back_with_what_was_learnt(more):
    agent = make(arms=list("abcdefg"))
    play(agent, 8, np.random.default_rng(0))
    pulls, mean = agent.tally.pulls.copy(), agent.estimates()[0]
    agent.retire_arms(["b", "c"])
    assert {"b", "c"}.isdisjoint(agent.ask().arms)
    with pytest.raises(sa.InvalidArgument, match="twice"):
        agent.add_arms(["b", "b", *more])
    agent.add_arms(["b", *more])
    assert agent.arms == (*"abcdefg", *more)
    assert np.array_equal(agent.tally.pulls[:7], pulls)
    assert np.array_equal(agent.estimates()[0][:7], mean)
    assert agent.ask(eligible=["a", "b"]).arms in {("a", "b"), ("b", "a")}
    assert agent.ask(eligible=["a", "c", "d"]).action.tolist() in ([0, 3], [3, 0])
    if more:
        assert "new" in agent.ask().arms


def test_explicit_sets_need_new_batches_for_new_arms():
    problem = sa.Problem(n_arms=3, n_items=1, reward=sa.Coverage(), actions=sa.Explicit([[0, 1], [2]]))
    agent = sa.Agent(problem, sa.bc_ucb())
    with pytest.raises(sa.InvalidArgument, match="arm 3 is in no batch"):
        agent.add_arms(1)
    assert len(agent.arms) == 3
    agent.add_arms(1, actions=sa.Explicit([[0, 1], [2], [3]]))
    assert [agent.ask().action.tolist() for _ in range(3)] == [[0, 1], [2], [3]]


def test_laminar_sets_need_new_families_for_new_arms():
    agent = sa.Agent(sa.Problem(3, 1, sa.Coverage(), sa.Laminar([([0, 1], 1), (range(3), 2)])), sa.bc_ucb())
    with pytest.raises(sa.InvalidArgument, match="give the families of all arms"):
        agent.add_arms(2)
    agent.add_arms(2, sa.Laminar([([0, 1], 1), (range(5), 2)]))
    assert len(agent.ask().action) == 2
    agent.retire_arms(["1"])
    agent.add_arms(["1"])
    agent.learner.grow_arms(1)  # as logs of earlier versions tell it
    assert len(agent.arms) == 6


def test_items_come_and_go():
    agent = make()
    play(agent, 6, np.random.default_rng(0))
    waiting = agent.ask()
    mean = agent.estimates()[0]
    agent.add_items(["late"], weights=[2.0])
    assert agent.items[-1] == "late"
    assert np.array_equal(agent.estimates()[0][:, :3], mean, equal_nan=True)
    assert np.isnan(agent.estimates()[0][:, 3]).all()
    assert agent.tell(waiting, [[1, 1, 1], [0, 0, 0]])
    missed = agent.tally.missed.reshape(7, 4)
    assert np.array_equal(missed[:, 3], agent.tally.pulls)
    assert not missed[:, :3].any()
    agent.retire_items(["late", 0])
    assert agent.problem.weights.tolist() == [0.0, 1.0, 1.0, 0.0]
    with pytest.raises(sa.InvalidArgument):
        agent.add_items(2, weights=[1.0])


def test_feedback_is_recognised_and_taken_back_after_items_were_added():
    agent = make()
    decision, late = agent.ask(), agent.ask()
    outcome = [[1, 0, 1], [0, 0.5, 0]]
    before = agent.tally.total.copy()
    agent.tell(decision, outcome)
    agent.add_items(["late"])
    assert agent.tell(decision, outcome) is False
    assert agent.tell(decision, [[1, 0, 1, 0], [0, 0.5, 0, 0]], seen=[[True] * 3 + [False]] * 2) is False
    with pytest.raises(sa.ConflictingFeedback):
        agent.tell(decision, [[1, 0, 1, 1], [0, 0.5, 0, 1]])
    agent.untell(decision, outcome)
    assert np.array_equal(agent.tally.total.reshape(7, 4)[:, :3].reshape(-1), before)
    agent.tell(late, [[1, 0, 1, 1], [0, 0.5, 0, 1]])
    assert agent.tell(late, [[1, 0, 1, 1], [0, 0.5, 0, 1]]) is False


def test_warm_start_from_data_and_prior():
    past = PROBLEM.past([0, 0, 3], [[1, 0, 0], [0, 0, 0], [1, 1, 1]])
    prior = PROBLEM.prior(np.full((7, 3), 0.25), 4)
    agent = make(tally=past)
    assert agent.t == 2
    agent.warm_start(prior)
    mean, _ = estimates(merge(past, prior), PROBLEM.support)
    assert np.array_equal(agent.estimates()[0].reshape(-1), mean)
    assert agent.estimates()[0][0].tolist() == [2 / 6, 1 / 6, 1 / 6]
    with pytest.raises(sa.InvalidArgument, match="another problem"):
        agent.warm_start(sa.Problem(2, 3, sa.Coverage(), sa.Subsets(1)).prior(np.zeros((2, 3)), 1))


def test_sparse_agents_take_outcomes_laid_flat():
    from scipy.sparse import csr_array

    support = csr_array([[1, 0, 1], [0, 1, 0], [0, 1, 1]])
    problem = sa.Problem(n_arms=3, n_items=3, reward=sa.Coverage(), actions=sa.Subsets(2), support=support)
    agent = sa.Agent(problem, sa.kl_ucb())
    decision = agent.ask()
    with pytest.raises(sa.InvalidArgument, match="shape"):
        agent.tell(decision, [[1, 0, 1], [0, 1, 0]])
    assert agent.tell(decision, [1, 0, 1])
    assert np.array_equal(agent.estimates()[0], [1, 0, 1, np.nan, np.nan], equal_nan=True)
