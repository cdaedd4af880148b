"""Quantiles and locked runs by hand."""

import numpy as np
import pytest

import superarm as sa
from superarm.experiments.analysis.tails import count_locked, single_values
from superarm.experiments.store import CellResults

ONE = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(1), weights=[1.0, 2.0])
P = [[0.5, 0.5], [0.4, 0.5], [0.1, 0.1]]


def record(regret):
    """A cell with the regret at rounds 1, 50 and 100."""
    return CellResults(
        rounds=np.array([1, 50, 100]),
        regret=np.array(regret, float),
        pulls=np.zeros((len(regret), 3)),
        batch_rounds=np.array([1]),
        batches=np.zeros((len(regret), 1, 1), int),
        seconds=np.zeros(len(regret)),
        metadata={},
    )


def test_a_run_is_locked_if_it_loses_the_gap_in_nearly_every_late_round():
    instance = sa.Instance(ONE, sa.environments.Bernoulli(P))
    assert single_values(instance) == pytest.approx([1.5, 1.4, 0.3])
    # The gap is 0.1: at least 0.9 * 0.1 * 50 = 4.5 in the last 50 rounds.
    assert count_locked(record([[0, 5, 10], [0, 5, 9.4], [0, 0, 60], [0, 1, 1]]), instance) == 2


def test_batches_of_several_arms_and_equal_arms_have_no_locked_runs():
    pairs = sa.Instance(ONE._replace(actions=sa.Subsets(2)), sa.environments.Bernoulli(P))
    equal = sa.Instance(ONE, sa.environments.Bernoulli([P[0], P[0], P[2]]))
    assert count_locked(record([[0, 5, 10]]), pairs) is None
    assert count_locked(record([[0, 5, 10]]), equal) is None
