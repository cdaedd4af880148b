"""Scores told to agents: in any order, amended, taken back, merged and restarted, always as if encoded by hand."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as sa
from superarm.core.errors import ConflictingFeedback

SCALE = sa.Thresholds(-5, 10, bins=6)
PROBLEM = sa.Problem(n_arms=5, items=SCALE, actions=sa.Subsets(3))
ARMS = ["a", "b", "c", "d", "e"]
SCORE = st.one_of(st.none(), st.integers(-28, 48).map(lambda x: x / 4.0))


def fresh(policy=None, seed=0):
    return sa.Agent(PROBLEM, policy, seed=seed, arms=ARMS)


def restarted(agent):
    return sa.Agent.from_state(json.loads(json.dumps(agent.to_state())))


def sums_of(told):
    """Pulls and sums of parts by arm, from the scores that stand in the end, by loops."""
    pulls, total = np.zeros(5), np.zeros((6, 5))
    for scores in told.values():
        for arm, score in scores.items():
            if score is None:
                continue
            pulls[ARMS.index(arm)] += 1
            for i in range(6):
                low, high = SCALE.edges[i], SCALE.edges[i + 1]
                part = min(max((score - low) / (high - low), 0.0), 1.0)
                total[i, ARMS.index(arm)] += np.floor(part * 2**24 + 0.5) / 2**24
    return pulls, total


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(SCORE, SCORE, SCORE, st.sampled_from(["list", "names", "one by one"])), min_size=1, max_size=6),
    st.randoms(),
)
def test_any_order_amendment_undo_merge_and_restart_give_the_sums_of_what_stands(given_scores, random):
    agent, told = fresh(), {}
    made = [(agent.ask(), scores) for *scores, _ in given_scores]
    hows = [how for *_, how in given_scores]
    steps = list(zip(made, hows, strict=True))
    random.shuffle(steps)
    for (decision, scores), how in steps:
        by_name = dict(zip(decision.arms, scores, strict=True))
        if how == "one by one":
            for arm in random.sample(decision.arms, 3):
                agent.tell(decision, scores={arm: by_name[arm]}, more=True)
            agent.tell(decision, scores={}, more=False)
        else:
            agent.tell(decision, scores=scores if how == "list" else by_name)
        told[decision.id] = by_name
        if random.random() < 0.3:
            agent = restarted(agent)
        if random.random() < 0.5:  # replace it, and take it back, and tell it again
            other = {arm: random.choice([None, 3.25, 100.0]) for arm in decision.arms}
            agent.tell(decision, scores=other, amend=True)
            told[decision.id] = other
            if random.random() < 0.5:
                agent.untell(decision, scores=other)
                assert decision.id in [one.id for one in agent.pending]
                agent.tell(decision, scores=by_name)
                told[decision.id] = by_name
    pulls, total = sums_of(told)
    np.testing.assert_array_equal(agent.tally.pulls[0], pulls)
    np.testing.assert_array_equal(agent.tally.total[0], total)
    half, rest = (dict(list(told.items())[n::2]) for n in (0, 1))
    merged = PROBLEM.past(*_flat(half))
    merged.add(PROBLEM.past(*_flat(rest)))
    np.testing.assert_array_equal(agent.tally.total, merged.total)
    scores = [x for by_name in told.values() for x in by_name.values() if x is not None]
    beyond = sum(not -5.0 <= x <= 10.0 for x in scores)
    assert agent.clipped == beyond / max(len(scores), 1)
    assert restarted(agent).to_state() == agent.to_state()
    assert restarted(agent).ask().arms == agent.ask().arms


def _flat(told):
    pairs = [(ARMS.index(arm), x) for scores in told.values() for arm, x in scores.items() if x is not None]
    return [arm for arm, _ in pairs], SCALE.encode([x for _, x in pairs]).reshape(-1, 6)


ONE_BIN = sa.Problem(n_arms=5, items=sa.Thresholds(edges=[0, 1]), actions=sa.Subsets(2))
PLAIN = sa.Problem(5, 1, sa.Coverage(), sa.Subsets(2))


OTHERS = {"bg_cts", "comb_ucb1", "escb", "escb_c", "greedy_then_commit", "llr", "ols_ucb_c", "total_thompson"}
"""Policies for other rewards."""
MADE = {
    "sliding_window": lambda: sa.policies.sliding_window(sa.cts(), 7),
    "discounted": lambda: sa.policies.discounted(sa.cucb(), 9),
    "ladder": lambda: sa.policies.ladder([0.1, 0.2, 0.1, 0.3, 0.1]),
    "spend_set": lambda: sa.policies.spend_set([0.1, 0.2, 0.1, 0.3, 0.1], spend=0.3),
}


@pytest.mark.parametrize("name", sorted(set(sa.policies.catalog.__all__) - OTHERS))
def test_one_bin_and_scores_of_0_and_1_are_outcomes_bit_for_bit(name):
    """Every policy of the catalogue decides alike, whichever way it is told."""
    policy = MADE.get(name, getattr(sa.policies, name))()
    first, second = sa.Agent(ONE_BIN, policy, seed=3), sa.Agent(PLAIN, policy, seed=3)
    rng = np.random.default_rng(0)
    for _ in range(40):
        one, other = first.ask(), second.ask()
        assert one.arms == other.arms
        x = (rng.random(len(one.arms)) < 0.4).astype(float)
        first.tell(one, scores=x)
        second.tell(other, x[:, None])
    np.testing.assert_array_equal(first.tally.total, second.tally.total)


def test_scores_are_repeated_raised_and_refused_as_outcomes_are():
    agent = fresh()
    decision = agent.ask()
    assert agent.tell(decision, scores=[1.0, float("nan"), 9.0])
    assert not agent.tell(decision, scores=[1.0, None, 9.0])
    assert agent.tell(decision, scores=[2.0, None, 9.0])  # a larger one takes the place of a smaller one
    assert not agent.tell(decision, scores=[1.0, None, 9.0])  # which was told before
    with pytest.raises(ConflictingFeedback, match=r"arm '\w': another score was told before.* give amend=True"):
        agent.tell(decision, scores=[2.0, None, 8.0])
    with pytest.raises(ConflictingFeedback, match="give the one to take back"):
        agent.untell(decision, scores=[1.0, None, 9.0])
    agent.untell(decision, scores=[2.0, None, 9.0])
    assert not agent.tally.total.any()


def test_a_score_after_an_unseen_one_needs_amend_or_more():
    agent = sa.Agent(sa.Problem(n_arms=2, items=SCALE, actions=sa.Subsets(2)), arms=["a", "b"], seed=0)
    decision = agent.ask()
    agent.tell(decision, scores=[None, 6])
    unseen = f"arm '{decision.arms[0]}' was told as unseen before; give amend=True to replace that; with more=True"
    with pytest.raises(ConflictingFeedback, match=unseen):
        agent.tell(decision, scores=[5, 6])
    assert agent.tell(decision, scores=[5, 6], amend=True)
    later = agent.ask()
    agent.tell(later, scores=[None, 6], more=True)
    assert agent.tell(later, scores=[5, 6])


def test_everything_is_in_the_units_of_scores():
    agent, rng = fresh(sa.kl_ucb(), seed=4), np.random.default_rng(0)
    told = {arm: [] for arm in ARMS}
    sets = []
    for _ in range(60):
        decision = agent.ask()
        scores = rng.uniform(-5.0, 10.0, 3)
        agent.tell(decision, scores=scores)
        for arm, score in zip(decision.arms, scores, strict=True):
            told[arm].append(score)
        if decision.claimed is not None:
            sets.append((decision.claimed, scores.max()))
    for row in agent.table():
        assert row["score"] == pytest.approx(np.mean(told[row["arm"]]), abs=1e-5)
    decision = agent.ask()
    explained = agent.explain(decision)
    assert [len(arm.estimate) for arm in explained.arms] == [1, 1, 1]
    assert explained.arms[0].estimate[0] == pytest.approx(np.mean(told[decision.arms[0]]), abs=1e-5)
    assert sum(arm.estimated_gain for arm in explained.arms) == pytest.approx(decision.claimed)
    assert PROBLEM.value(agent.estimates().mean, decision.action) == pytest.approx(decision.claimed)
    claimed, realised = np.mean(sets, axis=0)
    assert agent.claims == (len(sets), pytest.approx(claimed, abs=1e-5), pytest.approx(realised, abs=1e-5))
    assert f"claimed {claimed:.3f}"[:-1] in str(agent.claims)
    assert restarted(agent).claims == agent.claims
    assert "score" in agent._repr_html_()
    assert "Thresholds(-5, 10, bins=6)" in repr(agent)


def test_segments_claim_by_their_own_scores():
    """One segment has scores of 2, the other of 8: so are the claims."""
    context = sa.Context(
        sa.Features(categorical={"country": ["NO", "other"]}), model=sa.models.Segments(by=["country"])
    )
    problem = sa.Problem(n_arms=3, items=sa.Thresholds(0, 10, bins=5), actions=sa.Subsets(2), context=context)
    agent, claimed = sa.Agent(problem, seed=0), {}
    for n in range(30):
        country = ("NO", "other")[n % 2]
        decision = agent.ask(context={"country": country})
        agent.tell(decision, scores=[2.0 if country == "NO" else 8.0] * 2)
        claimed[country] = decision.claimed
    assert claimed == {"NO": pytest.approx(2.0), "other": pytest.approx(8.0)}
    assert agent.claims.realised == pytest.approx(5.0, abs=0.5)


def test_silence_is_the_lowest_score():
    agent = sa.Agent(PROBLEM, seed=0, silence=0.0)
    decision = agent.ask()
    assert agent.tally.pulls.sum() == 3.0
    agent.tell(decision, scores={decision.action[0]: 4.0}, more=True)
    known = sorted(row["score"] for row in agent.table() if row["pulls"])
    assert known == pytest.approx([-5.0, -5.0, 4.0], abs=1e-6)
    with pytest.raises(sa.InvalidArgument, match="give 0, the lowest score"):
        sa.Agent(PROBLEM, silence=0.5)


def test_scores_beyond_the_scale_count_as_its_ends_and_warn_once():
    agent = fresh()
    for n in range(40):
        decision = agent.ask()
        if n == 33:
            with pytest.warns(UserWarning, match=r"2 of 102 scores lie beyond Thresholds\(-5, 10, bins=6\), as 12"):
                agent.tell(decision, scores=[12.0, 5.0, 5.0])
        else:
            agent.tell(decision, scores=[11.0 if n == 0 else 5.0, 5.0, -20.0 if n == 39 else 5.0])
    assert agent.clipped == 3 / 120
    assert agent.tally.mean[0, -1].max() <= 1.0


def test_fractions_that_are_told_as_chances_warn_once(monkeypatch):
    monkeypatch.setattr(sa.agent.Scale, "made", False)

    def told(values, problem=PLAIN):
        agent = sa.Agent(problem, seed=0)
        for value in values:
            agent.tell(agent.ask(), [[value], [0.0]])
        return agent

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told(np.tile(np.arange(11) / 10.0, 3))  # shares of ten
        told(np.random.default_rng(0).random(30), sa.Problem(5, 1, sa.Linear(), sa.Subsets(2)))
    with pytest.warns(UserWarning, match="an outcome is a chance of success") as caught:
        told(np.random.default_rng(0).random(30))
    assert len(caught) == 1
    sa.agent.Scale(100.0)
    told(np.random.default_rng(0).random(30))


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1.0, 2.0], "scores: shape (2,); give 3, one for each arm in the order of the decision"),
        ([[1.0, 2.0, 3.0]], "scores: shape (1, 3); give 3"),
        ([1.0, "high", 2.0], "scores: 'high' is not a number; give numbers, or None where none was seen"),
        (["8", "6", "7"], "scores: '8' is not a number"),
        ([1.0, True, 2.0], "scores: True is not a number"),
        (np.array([True, False, True]), "is not a number"),
        ({"a": False}, "scores: False is not a number"),
        ([1.0, float("inf"), 2.0], "give finite numbers"),
        ({"nobody": 1.0}, "unknown name 'nobody'"),
    ],
)
def test_wrong_scores_are_refused_and_change_nothing(scores, message):
    agent = fresh()
    decision = agent.ask()
    before = agent.to_state()
    with pytest.raises(sa.InvalidArgument) as caught:
        agent.tell(decision, scores=scores)
    assert message in str(caught.value)
    assert agent.to_state() == before


def test_scores_go_with_thresholds_alone():
    agent = sa.Agent(PLAIN, seed=0)
    with pytest.raises(sa.InvalidArgument, match="declare items=Thresholds"):
        agent.tell(agent.ask(), scores=[1.0, 2.0])
    agent = fresh()
    decision = agent.ask()
    with pytest.raises(sa.InvalidArgument, match="give scores alone"):
        agent.tell(decision, np.zeros((3, 6)), scores=[1.0, 2.0, 3.0])
