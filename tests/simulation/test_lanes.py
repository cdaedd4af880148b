"""Draws of a family side by side: every run has the numbers that it has alone, to the last bit."""

import threading

import numpy as np
import pytest

import superarm as sa
from superarm.environments import Answer, Environment
from superarm.simulation.contextual_instances import segment_coverage
from superarm.simulation.lanes import Lanes, are_alike, side_by_side
from superarm.simulation.runs import play

AT = np.array([5, 40])


class Mood(Environment):
    """An environment of a user: with probability p everything is 1, for all arms at once."""

    p: float

    def draw(self, problem, action, t, keys):
        hit = sa.core.streams.shared_uniform(keys, t) < self.p
        return Answer(np.broadcast_to(hit[:, :, None], (*action.shape, problem.n_items)).astype(float))

    def means(self, problem, t):
        return np.full((1, problem.n_items, problem.n_arms), self.p)


class Own(sa.environments.Bernoulli):
    """It draws by a parameter in place of ``means``, and does not say that it may be one with others."""

    def draw(self, problem, action, t, keys):
        u = sa.core.streams.uniform(keys, t, np.maximum(action, 0), problem.n_items)
        return Answer((u < self.p[action]).astype(float))


def _draw(environment):
    def generate(n):
        rng = np.random.default_rng(n)
        made = environment(rng.uniform(0.0, 0.5, (6, 3)), rng)
        return sa.Instance(sa.Problem(6, 3, sa.Coverage(), sa.Subsets(2)), made)

    return [generate(n) for n in range(4)]


def _real(rng):
    p = rng.normal(size=(6, 3))
    return sa.Instance(
        sa.Problem(6, 3, sa.Linear(), sa.Subsets(2), bounds=None), sa.environments.Gaussian(p, deviation=0.5)
    )


def _blocks(p, rng):
    blocks = rng.integers(-3, 4, (6, 3))
    return sa.environments.Blocks(p, blocks, rng.uniform(0, 0.3, 6), rng.uniform(0, 0.3, (6, 3)))


ENVIRONMENTS = {
    "Bernoulli": lambda p, rng: sa.environments.Bernoulli(p),
    "Beta": lambda p, rng: sa.environments.Beta(p, 4.0),
    "Comonotone": lambda p, rng: sa.environments.Comonotone(p),
    "CommonShock": lambda p, rng: sa.environments.CommonShock(p, 0.4),
    "Copula": lambda p, rng: sa.environments.Copula(p, 0.3, 0.2),
    "Switching": lambda p, rng: sa.environments.Switching([p, p[::-1]], [1, 20]),
    "Blocks": _blocks,
    "Cascade": lambda p, rng: sa.environments.DependentClick(p, [0.9, 0.4]),
    "free": lambda p, rng: sa.environments.FreeSamples(sa.environments.Bernoulli(p)),
    "scalar": lambda p, rng: sa.environments.Beta(p, float(p[0, 0]) + 1.0),
    "own": lambda p, rng: Mood(float(p[0, 0])),
    "own p": lambda p, rng: Own(p),
}


@pytest.mark.parametrize("name", [*ENVIRONMENTS, "Gaussian"])
def test_lanes_are_what_each_instance_plays_alone(name):
    policy = sa.policies.follow_the_leader() if name == "Gaussian" else sa.cts()
    draws = [_real(np.random.default_rng(n)) for n in range(4)] if name == "Gaussian" else _draw(ENVIRONMENTS[name])
    seeds, stop, sizes = sa.simulation.seeds(3, 7), threading.Event(), [2, 1, 3, 1]
    assert are_alike(draws)
    together = side_by_side(draws, sizes)
    found = play(together, policy, seeds, AT, stop, lambda _: None)
    assert isinstance(together.environment, Lanes) == (name in ("Cascade", "free", "scalar", "own", "own p"))
    first = 0
    for instance, size in zip(draws, sizes, strict=True):
        alone = play(instance, policy, seeds[first : first + size], AT, stop, lambda _: None)
        for part in ("earned", "pulls"):
            assert np.array_equal(getattr(found, part)[first : first + size], getattr(alone, part)), part
        first += size
    assert len(np.unique(found.earned[:, -1])) > 2


def test_a_kernel_of_many_rounds_plays_lanes(monkeypatch):
    """The kernel that plays many rounds in one call gives what rounds in Python give."""
    draws = _draw(ENVIRONMENTS["Bernoulli"])
    seeds, stop = sa.simulation.seeds(3, 4), threading.Event()
    runs = [
        play(side_by_side(draws, [1] * 4), sa.kl_ucb(), seeds, np.array([120]), stop, lambda _: None, fuse)
        for fuse in (True, False)
    ]
    assert np.array_equal(runs[0].earned, runs[1].earned)


def test_instances_of_other_shapes_or_weights_are_not_alike():
    one = sa.instances.random_coverage(6, 3, 2)
    for other in (
        sa.instances.random_coverage(7, 3, 2),
        sa.instances.random_coverage(6, 3, 3),
        sa.instances.dependent_coverage(6, 3, 2),
        sa.instances.dependent_coverage(6, 3, 2, weights="zipf"),
        segment_coverage(6, 3, 2),
    ):
        assert not are_alike([one, other])
    assert not are_alike([segment_coverage(6, 3, 2)] * 2)


def test_an_experiment_plays_draws_together_and_stores_each_alone(tmp_path, monkeypatch):
    """The same cells as when every draw is played by itself, in fewer tasks; an interrupted run goes on with them."""
    from superarm.experiments.execution import cells, executors, runner

    def experiment():
        family = sa.instances.family(sa.instances.random_coverage, n_arms=6, n_items=3, k=2, draws=4)
        return sa.Experiment(
            name="family", instances={"f": family}, policies={"CTS": sa.cts(), "KL": sa.kl_ucb()}, horizon=50
        )

    tasks = []
    real = executors.play_task
    monkeypatch.setattr(executors, "play_task", lambda task, *rest: tasks.append(task) or real(task, *rest))
    together = runner.run(experiment(), tmp_path / "a", executors.Threads(1), progress=False)
    assert [len(task.cells) for task in tasks] == [4, 4]
    monkeypatch.setattr(cells, "are_alike", lambda _: False)
    alone = runner.run(experiment(), tmp_path / "b", executors.Threads(1), progress=False)
    assert [len(task.cells) for task in tasks[2:]] == [1] * 8
    for key, record in together.records.items():
        assert record.digest == alone.records[key].digest
