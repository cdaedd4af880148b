"""The named instances are what their formulas say."""

import numpy as np
import pytest

import superarm as sa
from superarm.core.streams import run_keys
from superarm.simulation import optimum, seeds
from superarm.simulation.engine import Run


def test_disjoint_batches_keep_the_suboptimal_arms_and_nearly_the_gap():
    for k in (2, 8, 64):
        instance = sa.instances.disjoint_batches(k)
        assert instance.problem.n_arms - k == 128
        best, other = instance.value(range(128, 128 + k)), instance.value(range(k))
        assert best == pytest.approx(1 - (1 - 1.6 / k) ** k)
        assert other == pytest.approx(1 - (1 - 0.1 / k) ** k)
    with pytest.raises(sa.InvalidArgument):
        sa.instances.disjoint_batches(3)


def test_constant_gap_batches_are_equally_valuable_for_every_batch_size():
    for k in (1, 2, 8, 32):
        instance = sa.instances.constant_gap_batches(k, bad_arms=64, good_arms=32)
        values = [instance.value(batch) for batch in instance.problem.actions.batches(96)]
        assert values == pytest.approx([0.1] * (64 // k) + [0.5] * (32 // k))
        assert 0.5 - np.mean(values) == pytest.approx(0.4 * 2 / 3)  # the regret of uniform play in a round
    with pytest.raises(sa.InvalidArgument, match="does not divide 128 and 48"):
        sa.instances.constant_gap_batches(32, good_arms=48)


def test_lower_bound_instance_is_a_bernoulli_bandit():
    instance = sa.instances.lower_bound(n_arms=8, k=3, n_items=4, epsilon=0.125)
    values = [instance.value(batch) for batch in instance.problem.actions.batches(8)]
    assert values == pytest.approx([4 * 0.375] * 5 + [2.0])
    assert optimum(instance.problem, instance.p).low == pytest.approx(2.0)
    with pytest.raises(sa.InvalidArgument):
        sa.instances.lower_bound(3, 3)
    with pytest.raises(sa.InvalidArgument):
        sa.instances.lower_bound(4, 2, epsilon=0.6)


def test_cascades_are_the_literature_s():
    instance = sa.instances.cascade(n_arms=6, k=2, p=0.3, gap=0.1)
    assert instance.p[:, 0].tolist() == pytest.approx([0.3, 0.3, 0.2, 0.2, 0.2, 0.2])
    assert optimum(instance.problem, instance.p).high == pytest.approx(1 - 0.7**2)
    assert instance.environment.n == 1
    assert type(sa.instances.cascade(free_samples=0).environment) is sa.environments.Cascade
    with pytest.raises(sa.InvalidArgument, match="gap"):
        sa.instances.cascade(p=0.1, gap=0.2)
    with pytest.raises(sa.InvalidArgument, match="k"):
        sa.instances.cascade(n_arms=2, k=2)
    with pytest.raises(sa.InvalidArgument, match="n"):
        sa.environments.FreeSamples(instance.environment.environment, 0)


def test_free_samples_show_every_arm_before_the_first_round():
    instance = sa.instances.cascade(n_arms=5, k=2, free_samples=3)
    run = Run(instance.problem, instance.environment, sa.policies.ts_cascade(), run_keys(seeds(1, 2)))
    assert run.tally.pulls.tolist() == [[3.0] * 5] * 2
    assert np.array_equal(run.tally.mean, run.tally.total / 3.0)


def test_rare_hits_separate_good_arms_from_others():
    p = sa.instances.rare_hits(5).p
    assert p[:5].min() >= 2 / 15
    assert p[5:].max() <= 1 / 15


def test_instances_refuse_what_does_not_fit():
    problem = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(1))
    with pytest.raises(sa.InvalidArgument, match="shape"):
        sa.Instance(problem, sa.environments.Bernoulli(np.zeros((2, 3))))
    with pytest.raises(sa.InvalidArgument, match="not an environment"):
        sa.Instance(problem, 3)
    with pytest.raises(sa.InvalidArgument, match="not a problem"):
        sa.Instance(3, sa.environments.Bernoulli(np.zeros((2, 3))))
