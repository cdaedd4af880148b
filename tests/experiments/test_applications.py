import numpy as np
import pytest

from dev.experiments import applications
from superarm.core.errors import InvalidArgument

MAKERS = [
    applications.recommendation,
    applications.ads,
    applications.channels,
    applications.sensors,
    applications.seeding,
]


@pytest.mark.parametrize("make", MAKERS)
def test_weights_are_percentages_and_the_seed_decides(make):
    instance = make(seed=1)
    assert instance.problem.weights.sum() == pytest.approx(100.0)
    assert np.array_equal(make(seed=1).p, instance.p)
    assert not np.array_equal(make(seed=2).p[:20], instance.p[:20])


def test_a_sender_hops_over_its_channels():
    instance = applications.channels(n_channels=10, n_senders=4, hops=2)
    assert ((instance.p.reshape(10, 4) > 0.0).sum(axis=0) == 2).all()
    with pytest.raises(InvalidArgument, match="hops"):
        applications.channels(n_channels=3, hops=4)


def test_a_sensor_detects_what_is_near():
    near, far = applications.sensors(reach=2.0).p, applications.sensors(reach=1.0).p
    assert (near >= far).all()


def test_whom_a_seed_does_not_know_is_outside_of_its_support():
    problem = applications.seeding(n_seeds=20, n_people=100, friends=5).problem
    assert problem.n_entries < 20 * 100 / 4
