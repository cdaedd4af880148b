"""What published results need, each against a twin that is written out as in the paper."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

import superarm as sa
from superarm.core.errors import InvalidArgument
from superarm.core.streams import run_keys
from superarm.policies.hybrid import find_marginals
from superarm.testing import check_environment, check_index
from tests.naive import reversed_cascade_ucb1


def _follow(instance, policy, twin, rounds, seed=3):
    """Play an agent against a twin: a function of the history that returns the set of arms it would play.

    It returns None while not every arm was played, and at ties, which are few.
    """
    agent, rng, p = sa.Agent(instance.problem, policy, seed=0), np.random.default_rng(seed), np.ravel(instance.p)
    history, compared = [], 0
    for t in range(1, rounds + 1):
        decision = agent.ask()
        played = decision.action.tolist()
        wanted = twin(t, history)
        assert wanted is None or set(played) == wanted, t
        compared += wanted is not None
        outcome = (rng.random(len(played)) < p[played]).astype(float)
        agent.tell(decision, outcome[:, None])
        history.append((played, outcome.tolist()))
    assert compared > rounds / 2


def _means(history, n_arms):
    n, s = [0] * n_arms, [0.0] * n_arms
    for played, outcome in history:
        for arm, x in zip(played, outcome, strict=True):
            n[arm] += 1
            s[arm] += x
    return n, s


def test_comb_ucb1_on_paths_is_the_best_of_all_paths_at_its_index():
    """All paths are listed; the index is not clipped, as in the paper."""
    instance = sa.instances.grid_paths(2, 0.8)
    ends = instance.problem.actions
    paths = [set(chosen) for chosen in itertools.combinations(range(12), 4) if ends.includes(np.array(chosen), 12)]
    assert len(paths) == 6

    def twin(t, history):
        n, s = _means(history, 12)
        if min(n) == 0:
            return None
        q = [s[e] / n[e] + math.sqrt(1.5 * math.log(t - 1) / n[e]) for e in range(12)]
        values = sorted((sum(q[e] for e in path), path) for path in paths)
        return values[-1][1] if values[-1][0] > values[-2][0] + 1e-9 else None

    _follow(instance, sa.policies.comb_ucb1(), twin, 150)


def test_the_best_path_of_the_grid_is_along_the_good_edges():
    instance = sa.instances.grid_paths(3, 0.4)
    best = sa.oracles.solve(instance.problem, instance.p)
    assert instance.value(best) == pytest.approx(6 * 0.7)
    assert int((np.ravel(instance.p) > 0.5).sum()) == 6
    assert instance.problem.n_arms == 24


def test_an_index_above_1_needs_an_exact_oracle_and_a_reward_that_adds_up():
    coverage = sa.instances.random_coverage(6, 2, 2).problem
    with pytest.raises(InvalidArgument, match="reward that adds up"):
        sa.policies.comb_ucb1().validate(coverage)
    greedy = sa.Problem(6, 1, sa.Linear(), sa.actions.Knapsack([1.0] * 6, 2.0))
    with pytest.raises(InvalidArgument, match="reward that adds up"):
        sa.policies.comb_ucb1(oracle=sa.oracles.Greedy()).validate(greedy)


def test_a_clock_of_plays_is_the_index_of_the_published_code():
    """MP-KL-UCB with log(kt): the largest q with N kl(mean, q) <= log(k t), by bisection."""
    instance = sa.instances.top_arms([0.7, 0.6, 0.5, 0.4, 0.3], 2)

    def kl(p, q):
        terms = [(p, q), (1.0 - p, 1.0 - q)]
        return sum(a * math.log(a / b) for a, b in terms if a > 0.0)

    def upper(mean, level):
        low, high = mean, 1.0 - 1e-15
        for _ in range(80):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if kl(mean, middle) <= level else (low, middle)
        return low

    def twin(t, history):
        n, s = _means(history, 5)
        if min(n) == 0:
            return None
        q = [upper(s[j] / n[j], math.log(2 * t) / n[j]) for j in range(5)]
        order = sorted(range(5), key=lambda j: -q[j])
        return set(order[:2]) if q[order[1]] > q[order[2]] + 1e-9 else None

    index = sa.indices.Plays(sa.indices.KL(c=0.0), 2)
    check_index(index)
    _follow(instance, sa.IndexPolicy(index), twin, 150)


def test_a_known_horizon_is_the_level_of_the_last_round_from_the_beginning():
    index, known = sa.indices.KL(), sa.indices.Plays(sa.indices.KL(), 1, horizon=500)
    pulls = np.array([3.0, 7.0])
    assert known.level(pulls, 2, 0.1).tolist() == index.level(pulls, 500, 0.1).tolist()
    assert sa.indices.Plays(index, 1).consistent
    assert not known.consistent
    check_index(known)


def test_llr_on_paths_is_the_best_of_all_paths_at_its_index():
    instance = sa.instances.grid_paths(2, 0.8)
    ends = instance.problem.actions
    paths = [set(chosen) for chosen in itertools.combinations(range(12), 4) if ends.includes(np.array(chosen), 12)]

    def twin(t, history):
        n, s = _means(history, 12)
        if min(n) == 0:
            return None
        q = [s[e] / n[e] + math.sqrt((4 + 1) * math.log(t) / n[e]) for e in range(12)]
        values = sorted((sum(q[e] for e in path), path) for path in paths)
        return values[-1][1] if values[-1][0] > values[-2][0] + 1e-9 else None

    check_index(sa.indices.LLR(4))
    _follow(instance, sa.policies.llr(4), twin, 150)


def test_the_boost_is_that_of_the_authors_code():
    """f = 2 (1 + λ)(log t + (m + 2) log log t + m / 2 log(1 + e / λ)), g = f / log t, as its notebook has them."""

    def boost(t, m, slack):
        t_f = max(t, math.e)
        constant = 0.0 if slack == 0 else math.log(1 + math.e / slack)
        f = (1 + slack) * 2 * (math.log(t_f) + (m + 2) * math.log(math.log(t_f)) + m / 2 * constant)
        return f / (1.0 if t < 2 else math.log(t))

    for t, m, slack in itertools.product((1, 2, 3, 50, 10_000), (1, 7), (0.0, 0.01, 1.0)):
        index = sa.indices.BoostedGaussian(m, 0.5, slack)
        found = index.level(np.array([1.0, 9.0]), t, 0.1)
        assert found == pytest.approx([0.25 * boost(t, m, slack), 0.25 * boost(t, m, slack) / 9.0])
        assert index.level(np.array([0.0]), t, 0.1)[0] == pytest.approx(1e16 * boost(t, m, slack))


def test_bg_cts_plays_the_set_of_the_larger_sum_of_its_samples():
    """20,000 samples of 4 arms: means within five standard errors and deviations within 5 %, then the better set."""
    problem = sa.instances.two_sets(4).problem
    tally = problem.past([0, 1, 2, 3, 3], [[1], [0], [1], [1], [0]])
    view = problem.view(tally, t=100, keys=np.arange(20_000).astype(np.uint64))
    view.counts = np.tile(tally.pulls, (20_000, 1))
    view.eligible, view.pinned = np.ones((20_000, 4), bool), np.empty((20_000, 0), np.int64)
    policy = sa.policies.bg_cts(2)
    samples = policy.scores(problem, view)[:, 0]
    deviation = 0.5 * math.sqrt(2 * (math.log(100) + 4 * math.log(math.log(100))) / math.log(100))
    expected = deviation / np.sqrt([1, 1, 1, 2])
    assert (np.abs(samples.mean(0) - [1, 0, 1, 0.5]) < 5 * expected / math.sqrt(20_000)).all()
    assert samples.std(0) == pytest.approx(expected, rel=0.05)
    sums = samples[:, :2].sum(1) < samples[:, 2:].sum(1)
    assert (policy.choose(problem, view, policy.new_memory(problem, 1))[:, 0] // 2 == sums).all()


@pytest.mark.parametrize("first", ["worst", "best"])
def test_lists_with_the_worst_arm_first_have_the_regret_of_a_program_that_is_written_out(first):
    """60 runs each: within five standard errors of the difference, which fails falsely with probability below 1e-6."""
    oracle = sa.oracles.Reversed() if first == "worst" else sa.oracles.TopArms()
    lists = {"CascadeUCB1": sa.policies.cascade_ucb1(oracle=oracle)}
    found = sa.simulate(sa.instances.cascade(16, 4, 0.2, 0.075), lists, 1500, 60, seed=2, progress=False)
    here = found.regret["CascadeUCB1"][:, -1]
    twin = reversed_cascade_ucb1(16, 4, 0.075, 1500, 60, first=first)
    assert abs(here.mean() - twin.mean()) < 5 * math.sqrt((here.var() + twin.var()) / 59)


def test_clicks_alone_say_that_all_above_the_last_one_was_examined():
    """Against a loop over readers: up to the last click, and the whole list without a click."""
    instance = sa.instances.dependent_clicks(6, 3, p=0.6, gap=0.3, leave=0.5, free_samples=0)
    logged, read = instance.environment, sa.environments.DependentClick(instance.p, [0.5] * 3)
    keys = run_keys(np.random.SeedSequence(1).spawn(400)).environment
    batches = np.tile([0, 4, 2], (400, 1))
    clicks, truth = logged.draw(instance.problem, batches, 1, keys), read.draw(instance.problem, batches, 1, keys)
    kinds = set()
    for outcome, seen, reached in zip(clicks.outcome[..., 0], clicks.seen[..., 0], truth.seen[..., 0], strict=True):
        places = [n for n in range(3) if outcome[n] == 1.0 and reached[n]]
        wanted = [n <= places[-1] for n in range(3)] if places else [True] * 3
        assert seen.tolist() == wanted
        kinds.add(len(places))
    assert kinds == {0, 1, 2, 3}
    check_environment(read, instance.problem)


class Masked(sa.environments.Cascade):
    """A cascade whose outcomes are 0 where they are not seen."""

    def draw(self, problem, action, t, keys):
        answer = super().draw(problem, action, t, keys)
        return answer._replace(outcome=answer.outcome * answer.seen)


def test_outcomes_that_are_not_seen_may_be_anything():
    check_environment(Masked([[0.5], [0.3], [0.4]]))


def test_the_marginals_of_hybrid_minimise_the_regularised_loss():
    """Against SciPy's constrained minimiser."""
    losses, t, k = np.array([0.0, 3.0, 7.0, 1.0, 12.0]), 9, 2

    def objective(x):
        return losses @ x / math.sqrt(t) + float((-np.sqrt(x) + (1.0 - x) * np.log(1.0 - x)).sum())

    found = minimize(
        objective,
        np.full(5, 0.4),
        bounds=[(1e-9, 1.0 - 1e-9)] * 5,
        constraints={"type": "eq", "fun": lambda x: x.sum() - k},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert find_marginals(losses[None], t, k)[0] == pytest.approx(found.x, abs=2e-4)


def test_hybrid_plays_sets_with_its_marginals_and_estimates_losses():
    """4,000 sets: each frequency within five standard errors, which fails falsely with probability below 1e-5."""
    problem = sa.instances.top_arms([0.5] * 5, 2).problem
    policy = sa.policies.Hybrid()
    memory = policy.new_memory(problem, 4000)
    memory.losses[:] = [0.0, 3.0, 7.0, 1.0, 12.0]
    view = problem.view(keys=np.arange(4000).astype(np.uint64), t=9)
    sets = policy.choose(problem, view, memory)
    x = find_marginals(memory.losses[:1], 9, 2)[0]
    share = np.bincount(sets.ravel(), minlength=5) / 4000
    assert (np.abs(share - x) < 5 * np.sqrt(x * (1 - x) / 4000)).all()
    assert all(len(set(row)) == 2 for row in sets.tolist())
