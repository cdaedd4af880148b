"""Learnt items: against a plain EM, known classes, exact counts, and answers without groups."""

import json
import math

import numpy as np
import pytest

import superarm as sa
from superarm.core.errors import ConflictingFeedback, UnknownDecision
from superarm.core.tally import GRID
from superarm.items import ItemAgent, learn, need
from superarm.items.counts import count_answers, to_rows
from superarm.items.latent import Fit, Rows, arm_rates, centres, fit_classes, learn_rows, log_likelihoods

ONE_ITEM = sa.Problem(12, 1, sa.Coverage(), sa.Subsets(4))
OPPOSED = np.where(np.arange(12)[:, None] // 6 == np.arange(2), 0.5, 0.05)  # two tastes, six films each
SIMILAR = np.full((12, 1), 0.3)


def make_log(p, n, seed, k=4, shares=None):
    """Random slates for visitors of classes with the rates ``p`` (n_arms, M)."""
    rng = np.random.default_rng(seed)
    taste = rng.choice(p.shape[1], n, p=shares)
    slates = np.argsort(rng.random((n, len(p))), axis=1)[:, :k]
    answers = rng.random((n, k)) < p[slates, taste[:, None]]
    problem = sa.Problem(len(p), 1, sa.Coverage(), sa.Subsets(k))
    return sa.offline.Log.from_arrays(problem, slates, answers), taste


def test_known_classes_are_found_with_their_shares_rates_and_slate():
    log, _ = make_log(OPPOSED, 4000, 0, k=9, shares=[0.7, 0.3])
    items = learn(log)
    order = np.argsort(-items.shares)
    assert items.n_classes == 2
    assert items.shares[order] == pytest.approx([0.7, 0.3], abs=0.04)
    assert np.abs(items.p[:, order] - OPPOSED).max() < 0.12
    slate = items.slate(3)
    assert sorted((slate // 6).tolist()) == [0, 0, 1]
    truth = 0.7 * (1 - 0.5**2 * 0.95) + 0.3 * (1 - 0.5 * 0.95**2)
    assert items.worth(slate) == pytest.approx(truth, abs=0.05)
    assert items.crossed(3) == pytest.approx(truth, abs=0.06)
    assert "2 groups of visitors in 4000 rows" in repr(items)
    assert len(items.table()) == 2


@pytest.mark.parametrize("seed", range(8))
def test_where_there_are_no_groups_none_are_found(seed):
    """z > 2 of a paired gain that is negative in the mean: at most one of eight seeds would be one too many."""
    assert learn(make_log(SIMILAR, 1500, seed)[0], seed=seed).n_classes == 1


@pytest.mark.parametrize("n", [0, 1, 5, 20])
def test_of_hardly_any_visitors_there_is_one_class(n):
    """At most 20 of them: two or three held-out visitors say nothing, and there may be none."""
    rng = np.random.default_rng(n)
    rows = Rows.of(np.arange(n), rng.integers(0, 12, n), rng.random(n), 12)
    assert {learn_rows(rows, seed=seed).n_classes for seed in range(20)} == {1}


def naive_em_pass(seen, answer, rates, strength, fit):
    """One pass as the formulas of the module say it, unit by unit."""
    n_arms, m = fit.p.shape
    n, s, total, likelihood = np.zeros((n_arms, m)), np.zeros((n_arms, m)), np.zeros(m), 0.0
    for u in range(len(seen)):
        joint = [
            fit.shares[c]
            * math.prod(
                fit.p[j, c] ** answer[u, j] * (1 - fit.p[j, c]) ** (1 - answer[u, j]) for j in np.flatnonzero(seen[u])
            )
            for c in range(m)
        ]
        likelihood += math.log(sum(joint))
        for c in range(m):
            r = joint[c] / sum(joint)
            total[c] += r
            n[:, c] += r * seen[u]
            s[:, c] += r * answer[u] * seen[u]
    centre = centres(rates, fit.level)
    step = ((s - n * centre).sum(0) - fit.level) / (1 + (n * centre * (1 - centre)).sum(0))
    level = fit.level + np.clip(step, -1, 1)
    p = np.clip((s + strength * centres(rates, level)) / (n + strength), 1e-4, 1 - 1e-4)
    return Fit((total + 1) / (total + 1).sum(), p, level, likelihood)


def test_em_takes_the_steps_of_its_formulas(monkeypatch):
    rng = np.random.default_rng(1)
    seen = rng.random((30, 5)) < 0.6
    answer = np.where(seen, rng.integers(0, 5, (30, 5)) / 4, 0.0)
    unit, arm = np.nonzero(seen)
    rows = Rows.of(unit, arm, answer[seen], 5)
    rates = arm_rates(rows)
    start = Fit(np.array([0.4, 0.6]), rng.uniform(0.2, 0.8, (5, 2)), np.zeros(2), -np.inf)
    monkeypatch.setattr("superarm.items.latent.MAX_PASSES", 3)
    found, expected = fit_classes(rows, rates, 10.0, start), start
    for _ in range(3):
        expected = naive_em_pass(seen, answer, rates, 10.0, expected)
    assert found.shares == pytest.approx(expected.shares)
    assert found.p == pytest.approx(expected.p)
    assert found.level == pytest.approx(expected.level)
    assert found.likelihood == pytest.approx(expected.likelihood)
    each, weight = log_likelihoods(rows, found)
    assert weight.sum(axis=1) == pytest.approx(np.ones(len(each)))


def test_rows_of_a_unit_are_one_and_an_arm_that_it_saw_twice_counts_once():
    rows = Rows.of(np.array([0, 0, 0, 1]), np.array([2, 2, 1, 2]), np.array([1.0, 0.0, 1.0, 1.0]), 3)
    assert rows.seen.toarray().tolist() == [[0, 1, 1], [0, 0, 1]]
    assert rows.answer.toarray().tolist() == [[0, 1, 0.5], [0, 0, 1]]


def test_units_help_and_wrong_logs_are_refused():
    log, taste = make_log(OPPOSED, 600, 2, k=2)
    known = learn(log, units=taste * 50 + np.arange(600) % 50)  # 100 visitors
    assert known.rows.seen.shape[0] == 100
    assert known.n_classes == 2
    with pytest.raises(sa.InvalidArgument, match="one for each of 600 rounds"):
        learn(log, units=[1, 2])
    two = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(1))
    with pytest.raises(sa.InvalidArgument, match="a log of one item"):
        learn(sa.offline.Log.from_arrays(two, [[0]], [[[1, 0]]]))


def test_the_tally_of_items_holds_the_answers_of_every_class_and_the_prior():
    log, _ = make_log(OPPOSED, 500, 3)
    items = learn(log, classes=2)
    seen, total = items.tally.counts(items.tally.pulls)[0], items.tally.total[0]
    prior = items.strength * centres(items.rates, items.level)
    assert (seen.sum(0) - 2 * items.strength) == pytest.approx(log.tally.pulls[0], abs=1e-5)
    assert (total - prior.T).sum(0) == pytest.approx(log.tally.total[0, 0], abs=1e-5)
    assert (items.tally.total * GRID % 1.0 == 0.0).all()
    agent = sa.Agent(sa.Problem(items=items, actions=sa.Subsets(4)), sa.kl_moss(), seed=0, tally=items.tally)
    assert len(agent.ask().action) == 4


def test_a_problem_is_made_of_items():
    items = learn(make_log(OPPOSED, 500, 3)[0], classes=2)
    problem = sa.Problem(items=items, actions=sa.Subsets(3))
    assert problem == sa.Problem(12, 2, sa.Coverage(), sa.Subsets(3), items.shares)
    assert sa.Problem(items=items, actions=sa.Subsets(3), reward=sa.Linear()).reward == sa.Linear()
    with pytest.raises(sa.InvalidArgument, match="leave out n_arms"):
        sa.Problem(12, items=items, actions=sa.Subsets(3))
    with pytest.raises(sa.InvalidArgument, match="n_arms: 0"):
        sa.Problem()


def test_a_log_says_whether_it_needs_items():
    opposed = need(make_log(OPPOSED, 3000, 4)[0])
    assert opposed.found
    assert "2 groups of visitors found" in repr(opposed)
    similar = need(make_log(SIMILAR, 3000, 5)[0])
    assert "One item suffices" in repr(similar)
    assert abs(similar.gap_z) < 3.3
    assert abs(similar.pairs_z) < 3.3
    rare = need(make_log(np.full((12, 1), 0.02), 3000, 6)[0])
    assert "hardly overlap" in repr(rare)
    levels = np.array([[0.02, 0.8]] * 12)  # some like everything, others nothing
    little = need(make_log(levels, 300, 7)[0])
    assert little.gap_z > 3.0
    assert "answers of one visitor hang together" in repr(little)
    assert "Too few complete rounds" in repr(need(make_log(SIMILAR, 50, 8)[0]))
    assert "items: 2 groups" in repr(make_log(OPPOSED, 3000, 4)[0].check())


@pytest.mark.parametrize(("p", "n"), [(OPPOSED, 399), (SIMILAR, 399), (OPPOSED, 400), (SIMILAR, 400)])
def test_classes_are_looked_for_from_a_number_of_rounds_on(p, n):
    """At one round fewer than enough, groups that are plainly there are not looked for; at enough they are found."""
    found = need(make_log(p, n, 3, k=9)[0], enough_to_learn=400, enough_to_clear=500)
    assert (found.items is not None) == (n == 400)
    assert found.found == (n == 400 and p is OPPOSED)


@pytest.mark.parametrize(("n", "said"), [(499, "Too few complete rounds"), (500, "One item suffices")])
def test_finding_no_groups_means_something_from_a_number_of_rounds_on(n, said):
    found = need(make_log(SIMILAR, n, 5)[0], enough_to_learn=400, enough_to_clear=500)
    assert said in repr(found)
    assert ("499 of 500" in repr(found)) == (n == 499)


def test_the_default_thresholds_are_those_of_the_documentation():
    found = need(make_log(SIMILAR, 50, 8)[0])
    assert (found.enough_to_learn, found.enough_to_clear) == (1_000, 3_000)


def make_features(n, seed, signal=1.0):
    """Slates of visitors with two tastes, and two numbers that are known of each visitor."""
    log, taste = make_log(OPPOSED, n, seed, k=3, shares=[0.6, 0.4])
    return log, taste, np.random.default_rng(seed + 99).normal(signal * taste[:, None] * [2.0, 0.0], 1.0)


def test_features_tell_classes_of_new_visitors_and_find_them_earlier():
    log, _, x = make_features(400, 0)
    items = learn(log, features=x)
    assert items.n_classes == 2
    first = int(items.p[:6].mean(0).argmax())  # the class that likes the films of taste 0
    _, taste, new = make_features(2000, 1)
    guess = np.array([items.posterior(features=row)[first] < 0.5 for row in new])
    assert (guess == taste).mean() > 0.8  # 0.85 are told apart at best, by the means 0 and 2 with deviation 1
    for t in (0, 1):
        shares = items.posterior(features=[2.0 * t, 0.0])
        assert (items.slate(3, shares) // 6 == t).sum() >= 2
    both = items.posterior([0, 1, 2], [1, 1, 1], features=[0.0, 0.0])  # answers count beside features
    assert both[first] > max(items.posterior(features=[0.0, 0.0])[first], items.posterior([0, 1, 2], [1, 1, 1])[first])
    with pytest.raises(sa.InvalidArgument, match="3 numbers; give 2"):
        items.posterior(features=[1.0, 2.0, 3.0])
    with pytest.raises(sa.InvalidArgument, match="one row per round"):
        learn(log, features=x[:5])


@pytest.mark.parametrize("seed", range(4))
def test_features_that_say_nothing_make_no_groups(seed):
    log, _ = make_log(SIMILAR, 800, seed)
    assert learn(log, features=np.random.default_rng(seed).normal(size=(800, 5)), seed=seed).n_classes == 1


def test_effects_of_features_are_those_that_maximise_the_likelihood():
    """EM ends where no small change of the effects, with everything else as it is, makes the posterior larger."""
    log, _, x = make_features(600, 2)
    items = learn(log, classes=2, features=x)

    def objective(effects):
        each, _ = log_likelihoods(items.rows, items.fit._replace(effects=effects))
        return each.sum() - 0.5 * (effects**2).sum()

    best = objective(items.effects)
    for place in np.ndindex(items.effects.shape):
        for step in (-0.2, 0.2):
            moved = items.effects.copy()
            moved[place] += step
            assert objective(moved) < best


def test_posteriors_have_the_same_bits_alone_and_together():
    log, _, x = make_features(300, 4)
    items = learn(log, classes=3, features=x)
    row, arm = np.repeat(np.arange(300), 3), log.slates.ravel()
    y = log.rows.outcome[:, 0][np.argsort(3 * log.rows.round + log.rows.slot)]
    together = items.posteriors(row, arm, y, 300, x)
    assert (together * GRID % 1.0 == 0.0).all()
    assert (together.sum(axis=1) == 1.0).all()
    exact = log_likelihoods(Rows.of(row, arm, y, 12)._replace(features=items.rows.features), items.fit)[1]
    assert together == pytest.approx(exact, abs=1e-5)
    for n in (0, 7, 299):
        assert np.array_equal(items.posterior(log.slates[n], y[3 * n : 3 * n + 3], x[n]), together[n])


def play(agent, n, seed, p=OPPOSED, units=False):
    rng = np.random.default_rng(seed)
    for v in range(n):
        taste = rng.integers(0, p.shape[1])
        decision = agent.ask(unit=f"u{taste}-{v % 100}" if units else None)
        agent.tell(decision, rng.random(len(decision.action)) < p[decision.action, taste])


def test_an_agent_learns_items_and_shows_something_for_every_taste():
    agent = ItemAgent(12, sa.Subsets(2), seed=0, first=300)
    play(agent, 2000, 0)
    assert agent.items.n_classes == 2
    assert sorted(agent.ask().action // 6) == [0, 1]
    assert agent.version == 5


def test_a_prior_is_fitted_when_it_is_due_and_not_for_every_decision(monkeypatch):
    fits, fit = [], sa.pooled_thompson().__class__.fit
    monkeypatch.setattr(sa.pooled_thompson().__class__, "fit", lambda *given: fits.append(given) or fit(*given))
    play(ItemAgent(12, sa.Subsets(2), sa.pooled_thompson(), seed=0, first=300), 200, 0)
    assert 12 <= len(fits) <= 25


def test_known_units_get_slates_of_their_own():
    agent = ItemAgent(12, sa.Subsets(2), seed=0, first=300, personal=True)
    play(agent, 2500, 1, units=True)
    assert agent.shares("u0-0") == pytest.approx(agent.shares("u0-1"), abs=0.3)
    for taste in (0, 1):
        assert (agent.ask(unit=f"u{taste}-3").action // 6 == taste).all()
    assert np.array_equal(agent.shares("never seen"), agent.items.shares)


def test_visitors_with_features_get_slates_of_their_own():
    agent, rng = ItemAgent(12, sa.Subsets(2), seed=0, first=300, growth=2.0, personal=True), np.random.default_rng(0)
    for visit in range(1300):
        taste = int(rng.integers(0, 2))
        decision = agent.ask(features=[4.0 * taste + rng.normal()] if visit % 5 or visit < 1200 else None)
        agent.tell(decision, rng.random(2) < OPPOSED[decision.action, taste])
    assert agent.items.n_classes == 2
    for taste in (0, 1):
        assert (agent.ask(features=[4.0 * taste]).action // 6 == taste).all()
    again = ItemAgent.from_state(json.loads(json.dumps(agent.to_state())))
    assert json.dumps(again.to_state()) == json.dumps(agent.to_state())
    assert np.array_equal(again.counts.learner.tally.total, agent.counts.learner.tally.total)


def test_policies_that_forget_are_refused():
    with pytest.raises(sa.InvalidArgument, match="forgets"):
        ItemAgent(12, sa.Subsets(2), sa.policies.sliding_window(sa.kl_moss(), 100))


def test_only_the_newest_answers_are_kept(monkeypatch):
    monkeypatch.setattr("superarm.items.counts.MAX_ROWS", 120)
    agent = ItemAgent(12, sa.Subsets(2), seed=0, first=100)
    early = agent.ask()
    play(agent, 99, 0)
    waiting = agent.ask()
    play(agent, 51, 1)  # learnt after 100 answers, and after 150
    assert agent.version == 2
    assert sorted(int(name) for name in agent.counts.told)[0] == agent.counts.since > 1
    assert len(agent.counts.told) == 120
    assert agent.tell(early, [1, 1])  # too old to count
    assert agent.tell(waiting, [1, 1])
    assert len(agent.counts.told) == 121
    assert agent.counts.learner.tally.pulls.sum() == 12 * 10 + 2 * 121


def test_taking_back_is_exact_also_across_a_refit():
    """What is taken back leaves no trace: the tally is that of the answers that stayed, under the same items."""
    rng = np.random.default_rng(3)
    agent = ItemAgent(12, sa.Subsets(3), seed=1, first=150, growth=3.0)
    decisions = [agent.ask() for _ in range(5)]
    for _ in range(400):
        decisions.append(agent.ask())
        one = decisions.pop(int(rng.integers(len(decisions))))
        agent.tell(one, rng.integers(0, 5, 3) / 4)
    assert agent.version == 1
    gone = [name for name in list(agent.counts.told) if int(name) % 3 == 0]
    for name in gone:
        agent.untell(name)
    naive_n, naive_s = np.zeros((12, agent.items.n_classes)), np.zeros((12, agent.items.n_classes))
    for told in agent.counts.told.values():
        for arm, answer in zip(told.arms, told.answers, strict=True):
            share = agent.items.posterior(told.arms, told.answers)
            naive_n[arm] += share
            naive_s[arm] += np.floor(share * answer * GRID + 0.5) / GRID
    fresh = ItemAgent.from_state(json.loads(json.dumps(agent.to_state())))
    for name in ("mean", "deviation"):  # kept up to date arm by arm, against those of all answers at once
        assert np.array_equal(getattr(agent.counts.learner.tally, name), getattr(fresh.counts.learner.tally, name))
    empty = sa.items.latent.prior_tally(agent.items, np.zeros_like(naive_n), np.zeros_like(naive_n))
    for tally in (agent.counts.learner.tally, fresh.counts.learner.tally):
        assert np.array_equal(tally.total[0] - empty.total[0], naive_s.T)
        assert np.array_equal(tally.counts(tally.pulls)[0] - empty.counts(empty.pulls)[0], naive_n.T)


def test_further_arms_change_nothing_that_is_counted():
    agent = ItemAgent(12, sa.Subsets(2), seed=0, first=300)
    play(agent, 250, 0)
    counts, waiting = agent.counts, agent.ask()
    counts.adopt(learn_rows(to_rows(list(counts.told.values()), 12), (2,)))
    counts.grow([*counts.items.arms, "new"], sa.Subsets(3), counts.policy)
    assert counts.items.p.shape == (13, 2)
    assert counts.learner.problem.k == 3
    assert counts.learner.pending[0, waiting.action].tolist() == [1, 1]
    whole = count_answers(counts.items, list(counts.told.values()))
    for name in ("pulls", "total", "square", "missed", "mean"):
        assert np.array_equal(getattr(counts.learner.tally, name), getattr(whole, name))


@pytest.mark.parametrize("policy", [None, sa.pooled_thompson(baseline=[3, 1, 2])])
def test_a_saved_agent_continues_to_the_last_bit_across_a_refit(policy):
    first = ItemAgent(12, sa.Subsets(2), policy, seed=5, first=100, growth=1.5, personal=True)
    play(first, 130, 9, units=True)
    waiting = first.ask()
    second = ItemAgent.from_state(json.loads(json.dumps(first.to_state())))
    for agent in (first, second):
        play(agent, 150, 10, units=True)
        agent.tell(waiting, [1, 0])
    assert first.version == second.version == 3
    assert json.dumps(first.to_state()) == json.dumps(second.to_state())


def test_wrong_calls_are_answered_by_their_names():
    agent = ItemAgent(5, sa.Subsets(2), seed=0, arms=["a", "b", "c", "d", "e"])
    decision = agent.ask(eligible=["a", "b"], id="x")
    assert set(decision.arms) == {"a", "b"}
    assert agent.ask(id="x") == decision
    with pytest.raises(sa.InvalidArgument, match="one for each arm"):
        agent.tell(decision, [1])
    assert agent.tell("x", [1, 0])
    assert not agent.tell("x", [1, 0])
    with pytest.raises(ConflictingFeedback):
        agent.tell("x", [0, 0])
    with pytest.raises(UnknownDecision):
        agent.untell("y")
    with pytest.raises(UnknownDecision):
        agent.tell("y", [0, 0])
    with pytest.raises(sa.InvalidArgument, match="growth"):
        ItemAgent(5, sa.Subsets(2), growth=1.0)
