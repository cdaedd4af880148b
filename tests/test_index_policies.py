"""Whole runs of index policies, and of policies for lists, against NumPy loops that share no code with the package."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

import superarm as sa
from superarm.core import ops, streams
from superarm.environments import Bernoulli, Cascade, FreeSamples, Replay
from superarm.simulation.engine import Run
from tests.action_sets import ALL, playable, random_set

L, M, K, T = 12, 5, 3, 250


def bernstein(mean, variance, pulls, t):
    return np.minimum(1.0, mean + np.sqrt(6 * variance * math.log(t) / pulls) + 9 * math.log(t) / pulls)


def hoeffding(mean, variance, pulls, t):
    return np.minimum(1.0, mean + np.sqrt(3 * math.log(t) / (2 * pulls)))


def ucb_v(mean, variance, pulls, t):
    return np.minimum(1.0, mean + np.sqrt(2 * variance * math.log(t) / pulls) + 0.5 * math.log(t) / pulls)


def greedy(q, weights, pulls):
    """Picks by gain, then fewest pulls, then lowest arm; gains that differ by rounding only count as equal."""
    chosen, left = [], weights.copy()
    for _ in range(K):
        gains = q @ left
        best = max(gains[j] for j in range(L) if j not in chosen)
        tied = [j for j in range(L) if j not in chosen and gains[j] >= best - 1e-12]
        chosen.append(min(tied, key=lambda j: (pulls[j], j)))
        left = left * (1 - q[chosen[-1]])
    return chosen


def played_naively(table, weights, index):
    """BC-UCB and its kin, Algorithm 1, on a recorded table of outcomes (T, L, M)."""
    pulls, total, square, actions = np.zeros(L), np.zeros((L, M)), np.zeros((L, M)), []
    for t in range(1, T + 1):
        if (pulls == 0).any():
            action = sorted(range(L), key=lambda j: (pulls[j], j))[:K]
        else:
            mean = total / pulls[:, None]
            variance = np.maximum(0.0, square / pulls[:, None] - mean**2)
            action = greedy(index(mean, variance, pulls[:, None], t), weights, pulls)
        outcome = table[t - 1][action]
        pulls[action] += 1
        total[action] += outcome
        square[action] += outcome**2
        actions.append(action)
    return np.array(actions)


@pytest.mark.parametrize(
    ("policy", "index"), [(sa.bc_ucb(), bernstein), (sa.cucb(), hoeffding), (sa.policies.ucb_v(), ucb_v)]
)
@pytest.mark.parametrize("high", [0.1, 0.9])
def test_agent_and_simulation_play_the_batches_of_the_naive_loop(policy, index, high):
    rng = np.random.default_rng(8)
    weights = rng.uniform(0.5, 2.0, M)
    table = (rng.random((T, L, M)) < rng.uniform(0, high, (L, M))).astype(float)
    problem = sa.Problem(L, M, sa.Coverage(), sa.Subsets(K), weights=weights)
    expected = played_naively(table, weights, index)
    agent = sa.Agent(problem, policy)
    run = Run(problem, Replay(table), policy, streams.run_keys([np.random.SeedSequence(0)]), fuse=False)
    for t, action in enumerate(expected):
        decision = agent.ask()
        agent.tell(decision, table[t][decision.action])
        run.play_round()
        np.testing.assert_array_equal(decision.action, action)
        np.testing.assert_array_equal(run.last[0], action)


def test_first_rounds_cover_all_arms_with_listed_batches():
    problem = sa.Problem(5, 1, sa.Coverage(), sa.actions.Explicit([[0, 1], [1, 2], [2, 3], [4]]))
    agent = sa.Agent(problem, sa.kl_ucb())
    assert [agent.ask().action.tolist() for _ in range(3)] == [[0, 1], [2, 3], [4]]


def test_an_unsampled_arm_that_cannot_be_played_does_not_block():
    problem = sa.Problem(4, 1, sa.Coverage(), sa.actions.Explicit([[0, 1], [2, 3]]))
    agent = sa.Agent(problem, sa.kl_ucb())
    assert [agent.ask(eligible=[0, 1, 2]).action.tolist() for _ in range(3)] == [[0, 1]] * 3


POLICIES = {
    "bc_ucb": sa.bc_ucb(),
    "cucb": sa.cucb(),
    "kl_ucb": sa.kl_ucb(),
    "cts": sa.cts(),
    "escb": sa.policies.escb(),
    "directional": sa.directional_kl_moss(),
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("kind", ALL)
def test_every_policy_plays_every_arm_on_every_action_set(kind, name):
    for reward in (sa.Linear(), sa.Coverage()):
        if not reward.modular and name == "escb":
            continue
        rng = np.random.default_rng(5)
        actions, n, may_play = random_set(kind, rng)
        problem, environment = sa.Problem(n, 2, reward, actions), Bernoulli(rng.random((n, 2)))
        run = Run(problem, environment, POLICIES[name], streams.run_keys(np.random.SeedSequence(1).spawn(2)))
        batches = playable(may_play, n)
        for _ in range(30):
            run.play_round()
            for batch in run.last:
                assert tuple(sorted(batch[batch >= 0].tolist())) in batches
        if name == "cts":  # it draws from a prior, and plays no arm for its own sake
            continue
        usable = [j for j in range(n) if any(j in batch for batch in batches)]
        assert (run.tally.pulls[:, usable] > 0.0).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: sa.bc_ucb(rho=0),
        lambda: sa.kl_ucb(rho=-1),
        lambda: sa.policies.ucb_v(c=-1),
        lambda: sa.policies.epsilon_greedy(2.0),
        lambda: sa.policies.epsilon_greedy(0.1, decay=-1),
        lambda: sa.cucb(rho=float("nan")),
        lambda: sa.bc_ucb(rho="much"),
        lambda: sa.bc_ucb(oracle=sa.oracles.Greedy),
    ],
)
def test_constructors_explain_what_is_wrong(make):
    with pytest.raises(sa.InvalidArgument) as caught:
        make()
    assert caught.value.argument in str(caught.value)
    assert caught.value.remedy in str(caught.value)


# --- lists: the algorithms as printed

P = np.array([[0.5], [0.3], [0.2], [0.35], [0.1], [0.45]])
LIST, ROUNDS = sa.Problem(6, 1, sa.Coverage(), sa.Subsets(3)), 150
CASCADES = {"kl": sa.policies.cascade_kl_ucb(), "ts": sa.policies.ts_cascade()}


def kl_upper(p, x):
    """The largest q with kl(p, q) <= x, by bisection."""
    low, high = p, 1.0
    for _ in range(60):
        q = 0.5 * (low + high)
        d = (p * np.log(p / q) if p > 0 else 0.0) + ((1 - p) * np.log((1 - p) / (1 - q)) if p < 1 else 0.0)
        low, high = (q, high) if d <= x else (low, q)
    return low


def printed(name, keys):
    """Pulls and sums after ROUNDS rounds of the printed algorithm, with a free sample of every arm at the start."""

    def attraction(t):
        """What every arm would do in round t."""
        return Bernoulli(P).draw(LIST, np.arange(6)[None], t, keys.environment).outcome[0, :, 0]

    pulls, sums = np.ones(6), attraction(0).copy()
    for t in range(1, ROUNDS + 1):
        if name == "ts":  # Cheung, Tan, Zhong, Algorithm 1
            z = streams.normal(streams.shared_uniform(keys.policy, t))[0, 0]
            mean, wide = sums / pulls, np.log(t + 1) / (pulls + 1.0)
            u = mean + z * np.maximum(np.sqrt(mean * (1.0 - mean) * wide), wide)
        else:  # Kveton et al., Algorithm 1
            f = np.log(t) + 3.0 * np.log(max(1.0, np.log(t)))
            u = [kl_upper(s / n, f / n) for n, s in zip(pulls, sums, strict=True)]
        for j in sorted(range(6), key=lambda j: (-u[j], pulls[j], j))[:3]:
            x = attraction(t)[j]
            pulls[j], sums[j] = pulls[j] + 1, sums[j] + x
            if x == 1.0:
                break
    return pulls, sums


@pytest.mark.parametrize("name", CASCADES)
def test_a_policy_for_lists_decides_as_printed(name):
    keys = streams.run_keys([np.random.SeedSequence(4)])
    run = Run(LIST, FreeSamples(Cascade(P)), CASCADES[name], keys)
    run.advance(ROUNDS)
    pulls, sums = printed(name, keys)
    assert run.tally.pulls[0].tolist() == pulls.tolist()
    assert run.tally.total[0, 0].tolist() == sums.tolist()


def test_an_arm_that_was_listed_but_never_seen_is_still_to_be_tried():
    agent, tried = sa.Agent(LIST, CASCADES["kl"]), []
    for _ in range(6):
        decision = agent.ask()
        tried.append(int(decision.action[0]))
        agent.tell(decision, [[1], [0], [0]], seen=[[True], [False], [False]])
    assert sorted(tried) == list(range(6))
    assert agent.tally.pulls.ravel().tolist() == [1.0] * 6


def test_lists_go_by_the_index_and_ties_by_pulls():
    wide = LIST.changed(actions=sa.Subsets(5))
    view = wide.view()
    view.counts = np.array([[2.0, 1.0, 0.0, 0.0, 5.0, 5.0]])
    q = np.array([[[0.5, 0.5, -1.0, -1.0, 2.0, np.inf]]])
    assert sa.oracles.TopArms().maximize(wide, q, view).tolist() == [[5, 4, 1, 0, 2]]


def test_what_does_not_only_rank_refuses_scores_above_one():
    with pytest.raises(sa.InvalidArgument, match="TopArms"):
        sa.policies.cascade_ucb1(oracle=sa.oracles.Greedy()).validate(LIST)
    with pytest.raises(sa.InvalidArgument, match="one item"):
        sa.policies.cascade_kl_ucb().validate(LIST.changed(n_items=2, weights=None, support=None))
    backwards = sa.policies.cascade_ucb1(oracle=sa.oracles.Reversed())
    backwards.validate(LIST)
    assert backwards.guarantee(LIST) == (1.0, 1.0)


def test_one_number_for_all_entries_explores_and_learns():
    problem = sa.Problem(4, 3, sa.Coverage(), sa.Subsets(2))
    instance = sa.Instance(problem, Bernoulli(np.linspace(0.1, 0.9, 12).reshape(4, 3)))
    policies = {"shared": sa.policies.shared_cts(), "uniform": sa.uniform()}
    results = sa.simulate(instance, policies, 300, 2, 0, progress=False)
    assert results.regret["shared"][:, -1].mean() < 0.5 * results.regret["uniform"][:, -1].mean()


@pytest.mark.parametrize("sparse", [False, True])
def test_one_number_moves_all_entries_together_and_is_gaussian(sparse):
    support = csr_array([[1, 1], [1, 0], [0, 1]]) if sparse else None
    problem, n = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(1), support=support), 4_000
    view = problem.view(problem.prior(np.full(4 if sparse else (3, 2), 0.5), 8), t=7)
    view.keys, view.counts = np.arange(n, dtype=np.uint64), np.tile([8.0, 8.0, 35.0], (n, 1))
    q = sa.policies.shared_cts(0.1).scores(problem, view).reshape(n, -1)
    counts = np.broadcast_to(problem.support.by_arm(view.counts), (n, *view.tally.mean.shape[1:])).reshape(n, -1)
    z = (q - 0.5) * np.sqrt(counts + 1.0)
    np.testing.assert_allclose(z, np.tile(z[:, :1], z.shape[1]), atol=1e-12)
    assert stats.kstest(z[:, 0] / 0.1, "norm").pvalue > 1e-6


@pytest.mark.parametrize("forget", [sa.policies.sliding_window, sa.policies.discounted])
def test_a_wrapped_policy_records_outcomes_as_the_policy_itself_does(forget):
    explore = sa.policies.EpsilonGreedy
    for policy in (sa.cts(), explore(sa.cts(), 0.1), explore(explore(sa.cts()), 0.1)):
        assert forget(policy, 50).rounding == "coin"
    for policy in (sa.kl_ucb(), explore(sa.kl_ucb()), sa.uniform()):
        assert forget(policy, 50).rounding == "exact"


def test_a_window_as_long_as_the_run_decides_as_the_policy_itself():
    policies = {"plain": sa.kl_moss(), "windowed": sa.policies.sliding_window(sa.kl_moss(), 160)}
    results = sa.simulate(sa.instances.random_coverage(5, 2, 2, seed=1), policies, 80, 1, progress=False)
    assert results.regret["plain"].tolist() == results.regret["windowed"].tolist()


@pytest.mark.parametrize("mode", ["numpy", "numba"])
@pytest.mark.parametrize("index", [sa.indices.KL(), sa.indices.Bernstein(0.1), sa.indices.Hoeffding()], ids=repr)
def test_one_tally_serves_many_views(index, mode):
    problem, policy = sa.Problem(6, 2, sa.Coverage(), sa.Subsets(2)), sa.IndexPolicy(index)
    memory = policy.new_memory(problem, 1)
    memory.warm(problem.prior(np.random.default_rng(0).random((6, 2)), 9), 1)
    view = problem.view(memory.tally, t=40)
    counts = 9.0 + np.random.default_rng(1).integers(0, 30, (3, 6))
    with ops.engine(mode):
        alone = []
        for row in counts:
            view.counts = row[None]
            alone.append(policy.choose(problem, view, memory)[0])
        view.counts, view.eligible = counts, np.ones((3, 6), bool)
        view.pinned, view.keys = np.empty((3, 0), int), np.zeros(3, np.uint64)
        np.testing.assert_array_equal(policy.choose(problem, view, memory), alone)
