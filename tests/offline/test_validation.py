"""The command that measures the estimators against simulated truth."""

import numpy as np
import pytest
from click.testing import CliRunner

import superarm as sa
from dev.validation import list_scenarios, main, measure_learning


def test_the_command_prints_both_tables():
    done = CliRunner().invoke(main, ["--rounds", "30", "--replications", "2"])
    assert done.exit_code == 0, done.output
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + len(sa.offline.METHODS) + 1 + 3
    assert {row.count("|") for row in rows} == {7, 4}


@pytest.mark.parametrize("number", range(5))
def test_the_truth_of_a_scenario_is_the_mean_reward_of_its_target(number):
    """In 60,000 rounds that show the target in its order, or almost always do: within four standard errors."""
    scenarios = list_scenarios()
    scenario = scenarios[1 if "KL-UCB" in scenarios[number].name else number]  # the same truth, drawn sooner
    log = scenario.draw(0, 60_000)
    own = (log.slates == scenario.target).all(axis=1)
    weight = 1.0 / log.rows.prefix.reshape(log.slates.shape)[own, -1]
    x = log.rows.outcome.reshape(60_000, 3, 4)[own]
    reward = (1.0 - np.prod(1.0 - x, axis=1)).sum(axis=1)
    mean = (weight * reward).sum() / weight.sum()
    error = np.sqrt((weight**2 * (reward - mean) ** 2).sum()) / weight.sum()
    assert abs(mean - scenario.truth) < 4 * error
    assert error < 0.15


def test_rules_of_learning_fall_short_by_no_less_than_nothing():
    found = measure_learning(60, 2)
    assert [one.rule for one in found] == ["means", "KL-CLCB", "CLCB"]
    assert all(0.0 <= one.mean <= one.high + 1e-9 for one in found)
