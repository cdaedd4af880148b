"""The round-by-round generator plays what the compiled loop plays."""

import numpy as np
import pytest

import superarm as sa
from superarm.simulation import advance, begin, rounds, seeds


def instances():
    p = np.random.default_rng(0).uniform(0.1, 0.6, (6, 3))
    coverage = sa.Problem(6, 3, sa.Coverage(), sa.Subsets(2))
    lists = sa.Problem(6, 1, sa.Coverage(), sa.Subsets(3))
    yield "dense", sa.Instance(coverage, sa.environments.Bernoulli(p))
    yield (
        "partly seen, free samples",
        sa.Instance(lists, sa.environments.FreeSamples(sa.environments.Cascade(p[:, :1]), 2)),
    )


@pytest.mark.parametrize("instance", [i for _, i in instances()], ids=[name for name, _ in instances()])
def test_the_generator_plays_what_advance_plays(instance):
    policy = sa.cts().fit(instance.problem)
    arguments = instance.problem, instance.environment, policy
    run = begin(*arguments, seeds(5, 1)[0])
    batches = []
    for t in range(60):
        advance(*arguments, run, np.array([t, t + 1]), np.zeros(1))
        batches.append(run.last[run.last >= 0].tolist())
    played = list(rounds(*arguments, seeds(5, 1)[0], 60))
    assert [one.action.tolist() for one in played] == batches
    for ours, theirs in zip(played[-1].run.tally, run.tally, strict=True):
        np.testing.assert_array_equal(ours, theirs)
