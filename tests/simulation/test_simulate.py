"""Simulation: the same bits as an agent, whatever the threads; regret against the right target."""

import itertools
import re
import threading

import numpy as np
import pytest

import superarm as sa
from superarm.core.streams import run_keys
from superarm.oracles import Greedy
from superarm.simulation import regret, replicate, seeds
from superarm.simulation.runs import play

T = 80
INSTANCE = sa.instances.random_coverage(n_arms=9, n_items=4, k=3, high=0.5)
POLICIES = {"BC-UCB": sa.bc_ucb(), "KL-UCB": sa.kl_ucb(), "CTS": sa.cts()}


def run(policies=POLICIES, instance=INSTANCE, **options):
    options = {"horizon": T, "replications": 3, "seed": 7, "progress": False, **options}
    return sa.simulate(instance, policies, **options)


@pytest.fixture(scope="module")
def results():
    """The usual run, on one thread."""
    return run(threads=1)


@pytest.mark.parametrize("environment", ["Bernoulli", "Beta"])
@pytest.mark.parametrize("name", POLICIES)
def test_an_agent_with_a_replications_seed_plays_as_it_did(name, environment):
    instance = sa.Instance(INSTANCE.problem, getattr(sa.environments, environment)(INSTANCE.p))
    results = run({name: POLICIES[name]}, instance, rounds=range(1, T + 1))
    seed = seeds(7, 3)[1]
    agent, keys = sa.Agent(instance.problem, POLICIES[name], seed=seed), run_keys([seed]).environment
    earned, regret = 0.0, []
    for t in range(1, T + 1):
        decision = agent.ask()
        agent.tell(decision, instance.environment.draw(instance.problem, decision.action[None], t, keys).outcome[0])
        earned += instance.value(decision.action)
        regret.append(t * results.targets[name].value - earned)
    assert np.array_equal(results.regret[name][1], regret)
    assert np.array_equal(results.pulls[name][1], agent.tally.pulls[0])


def test_batches_are_recorded_in_the_rounds_that_were_asked_for():
    """In increasing order, padded with -1; whatever replications advance together, and wherever strides end."""
    problem = sa.Problem(6, 2, sa.Coverage(), sa.Knapsack([1.0, 2.0, 1.5, 1.0, 2.5, 0.5], 3.0))
    instance = sa.Instance(problem, sa.environments.Bernoulli(np.random.default_rng(1).uniform(0.0, 0.4, (6, 2))))
    rounds, kept = np.array([10, 40]), np.array([1, 7, 40])

    def played(own):
        return play(instance, sa.cts(), own, rounds, threading.Event(), lambda _: None, batch_rounds=kept)

    together, alone = played(seeds(3, 3)), [played([seed]) for seed in seeds(3, 3)]
    assert together.batches.shape == (3, 3, problem.k)
    assert np.array_equal(together.batches, np.concatenate([one.batches for one in alone]))
    assert np.array_equal(together.earned, np.concatenate([one.earned for one in alone]))
    for batch in together.batches.reshape(-1, problem.k):
        size = int((batch >= 0).sum())
        assert (batch[size:] == -1).all()
        assert (np.diff(batch[:size]) > 0).all()
        assert problem.actions.includes(batch[:size], 6)


def test_results_do_not_depend_on_threads_or_company(results):
    four, alone = run(threads=4), run({"CTS": sa.cts()})
    for name in POLICIES:
        assert np.array_equal(results.regret[name], four.regret[name])
    assert np.array_equal(results.regret["CTS"], alone.regret["CTS"])
    assert not np.array_equal(results.regret["CTS"], run({"CTS": sa.cts()}, seed=8).regret["CTS"])


def test_seeds_and_sizes_of_every_kind():
    def final(**options):
        return run({"CTS": sa.cts()}, **options).regret["CTS"][:, -1].tolist()

    root = np.random.SeedSequence(7)
    assert final(seed=root) == final(seed=root) == final(seed=7, horizon=float(T))
    assert final(seed=np.random.default_rng(1)) == final(seed=np.random.default_rng(1)) != final(seed=None)


def test_a_single_replication_has_no_error():
    once = run(replications=1)
    assert "nan" not in str(once)
    assert "1 replication," in str(once)
    assert "1 replication of" in repr(once)


def test_policies_share_the_world():
    twice = run({"a": sa.uniform(), "b": sa.uniform()})
    assert np.array_equal(twice.regret["a"], twice.regret["b"])


def test_more_replications_keep_the_first_ones():
    few, many = run({"x": sa.bc_ucb()}, replications=2), run({"x": sa.bc_ucb()}, replications=4)
    assert np.array_equal(few.regret["x"], many.regret["x"][:2])


def test_checkpoints_do_not_change_the_run():
    every, few = run({"x": sa.bc_ucb()}, rounds=range(1, T + 1)), run({"x": sa.bc_ucb()}, rounds=[10, 70])
    assert few.rounds.tolist() == [10, 70, T]
    assert np.array_equal(few.regret["x"], every.regret["x"][:, [9, 69, T - 1]])


class HalfTheTime(Greedy):
    """An oracle that promises its batch with probability 1/2 only."""

    def guarantee(self, problem):
        return super().guarantee(problem)._replace(beta=0.5)


def test_regret_targets_by_hand():
    p = np.array([[0.5, 0.0], [0.5, 0.5], [0.0, 0.5]])
    problem = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(1))
    instance = sa.Instance(problem, sa.environments.Bernoulli(p))
    optimal = run({"x": sa.uniform()}, instance, target="optimal").targets["x"]
    assert (optimal.value, optimal.r_max.exact) == (1.0, True)
    half = {"x": sa.bc_ucb(oracle=HalfTheTime())}
    promised = run(half, instance, target="approximation", horizon=5)
    assert promised.targets["x"].value == pytest.approx(0.5)
    assert promised.target == "approximation"


TRAP = sa.Instance(  # greedy takes arm 2 first, and then misses the best batch: 3.1 in the place of 4
    sa.Problem(3, 4, sa.Coverage(), sa.Subsets(2)),
    sa.environments.Bernoulli([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.1]]),
)


def test_the_default_target_is_the_optimum_where_it_is_exact():
    found = run({"x": sa.cts()}, TRAP)
    assert (found.target, found.targets["x"].value) == ("optimal", 4.0)
    assert found.regret["x"].min() >= 0.0
    assert "optimal (4 per round)" in str(found)
    assert found.plot().axes[0].get_ylabel() == "regret (optimal target)"
    assert "warning" not in str(found)
    big = run({"x": sa.uniform()}, sa.instances.random_coverage(n_arms=100, n_items=2, k=3), horizon=3)
    assert (big.target, big.targets["x"].r_max) == ("oracle", None)
    linear = sa.Problem(300, 1, sa.Linear(), sa.Subsets(9))
    exact = run({"x": sa.uniform()}, sa.Instance(linear, sa.environments.Bernoulli(np.full((300, 1), 0.5))), horizon=3)
    assert exact.target == "optimal"


class OneOfEach(sa.Actions):
    """A set of a user's own: at most one of the arms that have the same number modulo k."""

    k: int

    def capacity(self, n_arms):
        return self.k

    def start(self, eligible):
        return eligible.copy()

    def joinable(self, free, eligible):
        return free

    def join(self, free, arm):
        return free & (np.arange(free.shape[1]) % self.k != arm[:, None] % self.k)


@pytest.mark.parametrize(("n_arms", "target"), [(20, "optimal"), (80, "optimal"), (120, "oracle")])
def test_own_action_sets_of_few_batches_have_the_optimum_as_target(n_arms, target):
    """They have (n_arms / 3)³ or so batches: 294, 18,954 and 64,000."""
    p = np.random.default_rng(0).random((n_arms, 2)) * 0.5
    problem = sa.Problem(n_arms, 2, sa.Coverage(), OneOfEach(3))
    found = run({"x": sa.uniform()}, sa.Instance(problem, sa.environments.Bernoulli(p)), horizon=3)
    assert found.target == target
    if n_arms == 20:
        batches = itertools.product(*(range(first, 20, 3) for first in range(3)))
        assert found.targets["x"].value == pytest.approx(max(problem.value(p, list(batch)) for batch in batches))
        assert problem.actions.n_batches(20) == 7 * 7 * 6


class NoNumbers(sa.Index):
    """An index that is NaN for arm 2, from the third round on."""

    def level(self, pulls, t, share):
        return t + 0.0 * pulls

    def score(self, mean, deviation, level, chance):
        with np.errstate(invalid="ignore"):
            root = np.sqrt(2.5 - level)
        return np.where(np.arange(mean.shape[-1]) == 2, root, mean)


def no_numbers(problem, view, memory):
    return problem.actions.heaviest(np.where(np.arange(problem.n_arms) == 2, np.nan, view.tally.mean.sum(1)), view)


ACTIONS = (sa.Subsets(2), OneOfEach(2), sa.actions.Explicit([[0, 1], [2, 3]]), sa.actions.Knapsack(np.ones(4), 2.0))


@pytest.mark.parametrize("actions", ACTIONS, ids=lambda actions: type(actions).__name__)
@pytest.mark.parametrize("policy", [sa.IndexPolicy(NoNumbers(), start=False), sa.policy(no_numbers)], ids=repr)
def test_a_score_that_is_no_number_is_refused_by_arm_and_policy(policy, actions):
    """In simulations, agents and checks; before, the empty batch was played, with regret."""
    problem = sa.Problem(4, 2, sa.Coverage(), actions)
    instance = sa.Instance(problem, sa.environments.Bernoulli(np.full((4, 2), 0.3)))
    says = rf"{re.escape(repr(policy))} the score of arm 2 is NaN"
    with pytest.raises(sa.InvalidArgument, match=says):
        run({"x": policy}, instance, horizon=20)
    agent = sa.Agent(problem, policy, seed=0, tally=problem.past(np.tile(np.arange(4), 5), np.zeros((20, 2))))
    with pytest.raises(sa.InvalidArgument, match=says):
        agent.ask()
    with pytest.raises(sa.InvalidArgument, match=says):
        sa.testing.check_policy(policy, problem)


class NoAnswer(sa.environments.Bernoulli):
    def draw(self, problem, action, t, keys):
        return super().draw(problem, action, t, keys).outcome


def test_what_choose_and_draw_forget_to_return_is_named():
    problem = sa.Problem(4, 2, sa.Coverage(), sa.Subsets(2))
    environment = sa.environments.Bernoulli(np.full((4, 2), 0.3))
    nothing = sa.policy(lambda problem, view, memory: None)
    with pytest.raises(sa.InvalidArgument, match="returned NoneType; return an array of batches"):
        run({"x": nothing}, sa.Instance(problem, environment))
    with pytest.raises(sa.InvalidArgument, match=r"draw of NoAnswer returned ndarray; return Answer\(outcome\)"):
        run({"x": sa.uniform()}, sa.Instance(problem, NoAnswer(environment.p)))


def test_negative_regret_is_not_ranked_without_a_warning():
    found = run({"CTS": sa.cts()}, TRAP, target="oracle")
    assert found.summary()["regret"][0].value < 0.0
    assert "warning: negative mean regret of CTS: they earned more than the oracle target" in str(found)


def test_unknown_optimum_is_bracketed_and_said(monkeypatch):
    monkeypatch.setattr(regret, "MAX_OPTIMUM_NODES", 100)
    big = sa.instances.random_coverage(n_arms=60, n_items=8, k=8)
    target = run({"x": sa.uniform()}, big, target="optimal", horizon=3).targets["x"]
    assert target.value == target.r_max.low < target.r_max.high
    more = target.r_max.high / target.r_max.low - 1.0
    assert str(target).endswith(f"the optimum at most {target.r_max.high:.6g}, {more:.0%} more")


@pytest.mark.parametrize("listed", [10**6, 10])
def test_the_optimum_is_exact_beyond_the_limit_of_listed_batches(listed, monkeypatch):
    monkeypatch.setattr(regret, "MAX_LISTED_BATCHES", listed)
    instance = sa.instances.random_coverage(n_arms=12, n_items=4, k=3)
    best = max(instance.value(batch) for batch in instance.problem.actions.batches(12))
    found = regret.optimum(instance.problem, instance.p)
    assert found.exact
    assert found.low == pytest.approx(best, rel=1e-12)
    assert regret.optimum(TRAP.problem, TRAP.p) == (4.0, 4.0)  # greedy finds 3.1


def test_all_policies_of_a_comparison_have_one_target():
    instance = sa.instances.random_coverage(n_arms=10, n_items=4, k=3)
    policies = {"uniform": sa.uniform(), "KL-UCB": sa.kl_ucb()}
    found, other = (run(policies, instance, target=kind, horizon=50) for kind in ("approximation", "optimal"))
    assert found.targets["uniform"] == found.targets["KL-UCB"]
    difference = found.compare("uniform", "KL-UCB").value
    assert difference == pytest.approx(other.compare("uniform", "KL-UCB").value)
    share = sa.oracles.Greedy().guarantee(instance.problem).alpha
    assert f"{share:.4g} of {other.targets['uniform'].value:.6g}" in str(found)
    mixed = {"greedy": sa.kl_ucb(), "exact": sa.kl_ucb(oracle=sa.oracles.Exhaustive())}
    with pytest.raises(sa.InvalidArgument, match="different shares of the optimum"):
        run(mixed, instance, target="approximation")


def test_regret_counts_expected_reward():
    p = np.array([[0.25], [1.0]])
    instance = sa.Instance(sa.Problem(2, 1, sa.Linear(), sa.Subsets(1)), sa.environments.Bernoulli(p))
    results = run({"x": sa.policies.follow_the_leader()}, instance, horizon=10, rounds=[1, 2, 10])
    assert results.regret["x"].tolist() == [[0.75, 0.75, 0.75]] * 3


def test_results_as_table_frame_and_figure(results, tmp_path):
    frame = results.to_frame()
    assert {len(column) for column in frame.values()} == {3 * 3 * len(results.rounds)}
    chosen = (frame["policy"] == "CTS") & (frame["replication"] == 2)
    assert np.array_equal(frame["regret"][chosen], results.regret["CTS"][2])
    assert all(name in str(results) for name in POLICIES)
    (row,) = [row for row in results.summary() if row["policy"] == "CTS"]
    mean, error, _ = row["regret"]
    final = results.regret["CTS"][:, -1]
    assert mean == pytest.approx(final.mean())
    assert error == pytest.approx(final.std(ddof=1) / np.sqrt(3))
    results.plot(tmp_path / "regret.png")
    assert (tmp_path / "regret.png").stat().st_size > 5_000


def interrupt(monkeypatch, after):
    """Ctrl-C when so many parts have been played."""
    played, lock = [], threading.Lock()

    def interrupted(*arguments):
        with lock:
            played.append(arguments)
            if len(played) > after:
                raise KeyboardInterrupt
        return play(*arguments)

    monkeypatch.setattr(replicate, "play", interrupted)


def test_ctrl_c_leaves_what_every_policy_finished(results, monkeypatch):
    monkeypatch.setattr(replicate, "FEW_REPLICATIONS", 1)
    monkeypatch.setattr(replicate, "KEPT_ROUNDS", 2 * T * len(POLICIES))  # two replications at a time
    interrupt(monkeypatch, after=5)
    ended = run(replications=5, threads=1)
    assert not ended.complete
    assert all(values.shape[0] == 2 for values in ended.regret.values())
    assert "interrupted" in str(ended)
    assert np.array_equal(ended.regret["CTS"], results.regret["CTS"][:2])


def test_ctrl_c_before_anything_was_finished_is_passed_on(monkeypatch):
    interrupt(monkeypatch, after=2)
    with pytest.raises(KeyboardInterrupt):
        run()


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"policies": {}}, "policies"),
        ({"policies": {"x": sa.bc_ucb}}, "policies"),
        ({"policies": [sa.bc_ucb()]}, "policies"),
        ({"policies": {"x": sa.indices.KL()}}, "policies"),
        ({"instance": INSTANCE.problem}, "instance"),
        ({"seed": "one"}, "seed"),
        ({"horizon": 0}, "horizon"),
        ({"horizon": 1.5}, "horizon"),
        ({"replications": 0}, "replications"),
        ({"threads": -1}, "threads"),
        ({"rounds": [3, 2]}, "rounds"),
        ({"rounds": [T + 1]}, "rounds"),
        ({"rounds": []}, "rounds"),
        ({"target": "best"}, "target"),
    ],
)
def test_bad_arguments_are_named(options, argument):
    with pytest.raises(sa.InvalidArgument) as caught:
        run(**options)
    assert caught.value.argument == argument
