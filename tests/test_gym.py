"""The checks of Gymnasium itself, and rewards and regret against the instance."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import superarm as sa
from superarm.core.errors import InvalidArgument
from superarm.gym import SetBandit

INSTANCES = {
    "coverage": sa.instances.random_coverage(6, 3, 2),
    "cascade": sa.instances.cascade(5, 3),
    "sums": sa.instances.top_arms([0.7, 0.6, 0.5], 2),
}


@pytest.mark.parametrize("name", INSTANCES)
def test_gymnasium_finds_nothing_wrong(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*spec.*")  # it is not made by gymnasium.make
        check_env(SetBandit(INSTANCES[name], 20), skip_render_check=True)


def test_a_vector_of_environments_is_each_of_them():
    instance = INSTANCES["coverage"]
    vector = gymnasium.vector.SyncVectorEnv([lambda: SetBandit(instance, 5)] * 3)
    single = [SetBandit(instance, 5) for _ in range(3)]
    vector.reset(seed=4)
    for n, one in enumerate(single):
        one.reset(seed=4 + n)
    for t in range(5):
        action = np.array([[t, 0], [1, 1], [5 - t, 2]])
        seen, reward, _, truncated, _ = vector.step(action)
        alone = [one.step(row) for one, row in zip(single, action, strict=True)]
        assert np.array_equal(seen, [one[0] for one in alone])
        assert reward.tolist() == [one[1] for one in alone]
        assert truncated.all() == (t == 4)


def test_reward_regret_and_what_is_seen_are_those_of_the_instance():
    """The mean of 4,000 realised rewards within five standard errors, which fails falsely below 1e-5."""
    instance = INSTANCES["coverage"]
    env, action = SetBandit(instance, 5000, realised=True), np.array([4, 1])
    env.reset(seed=2)
    steps = [env.step(action) for _ in range(4000)]
    rewards = np.array([step[1] for step in steps])
    value = instance.value([4, 1])
    assert abs(rewards.mean() - value) < 5 * rewards.std() / np.sqrt(4000)
    best = max(instance.value([a, b]) for a in range(6) for b in range(a))
    assert steps[0][4]["regret"] == pytest.approx(best - value)
    assert {tuple(np.flatnonzero((step[0] >= 0).all(1))) for step in steps} == {(1, 4)}
    assert SetBandit(instance).step(action)[1] == pytest.approx(value)


def test_below_the_click_nothing_is_seen():
    env = SetBandit(sa.instances.cascade(4, 3, p=0.9, gap=0.1), 100)
    env.reset(seed=1)
    for _ in range(50):
        seen = env.step(np.array([0, 1, 2]))[0].ravel()
        first = next((n for n in range(3) if seen[n] == 1.0), 2)
        assert (seen[first + 1 :] == -1.0).all()


def test_what_cannot_be_an_environment_is_refused():
    with pytest.raises(InvalidArgument, match="not all seen"):
        SetBandit(INSTANCES["cascade"], realised=True)
