import csv
import re

import numpy as np
import pytest

import superarm as sa
from superarm.simulation import Results, Target
from superarm.theory import headline as module
from superarm.theory.headline import Curve, Slope, describe, fitted, headline


def test_slopes_of_powers():
    k = np.array([2, 4, 8, 16])
    noisy = k**0.7 * np.exp(np.random.default_rng(0).normal(0, 0.01, (5, 4)))
    found = fitted(k, noisy)
    assert found.value == pytest.approx(0.7, abs=0.02)
    assert found.low < found.value < found.high < found.low + 0.05


def test_interval_covers_as_often_as_it_says():
    k, rng = np.array([2, 4, 8, 16, 32, 64]), np.random.default_rng(1)
    covered = sum(
        found.low <= 0.5 <= found.high
        for found in (fitted(k, k**0.5 * np.exp(rng.normal(0, 0.2, (3, 6)))) for _ in range(600))
    )
    assert 0.92 < covered / 600 < 0.98


def test_verdicts():
    assert module._verdict(Slope(0.7, 0.6, 0.8)) == "grows with K"
    assert module._verdict(Slope(0.05, -0.1, 0.2)) == "flat, within error"
    assert module._verdict(Slope(0.1, 0.05, 0.15)) == "grows slightly"
    assert module._verdict(Slope(-0.3, -0.4, -0.2)) == "falls with K"


def imagined(instance, policies, horizon, replications, target, rounds, progress):
    """Regret 100 K^s sqrt T for a slope s a policy, in place of a simulation."""
    assert target == "optimal"
    slope = {"BC-UCB": 0.0, "CUCB": 1.0, "KL-UCB": 0.0, "Thompson": -0.3}
    wobble = 1 + 0.01 * np.arange(replications)[:, None]
    regret = {name: 100 * instance.problem.k ** slope[name] * np.sqrt(rounds) * wobble for name in policies}
    targets = {name: Target("optimal", 1.0, None) for name in policies}
    return Results(np.array(rounds), regret, {}, targets, dict.fromkeys(policies, 0.0), True)


def test_the_experiment_is_wired(tmp_path, monkeypatch):
    monkeypatch.setattr("superarm.theory.headline.simulate", imagined)
    text = headline(tmp_path, horizon=1000, seeds=2, sizes=(2, 8, 32), progress=False)
    assert text.count("fully correlated") == 4
    assert re.search(r"BC-UCB +independent +1000  [+-]0\.00", text)
    assert "grows with K" in text
    assert "less regret than CUCB for K in [2, 8, 32]" in text
    rows = list(csv.DictReader((tmp_path / "headline.csv").read_text().splitlines()))
    assert {row["arms"] for row in rows} == {"independent", "fully correlated"}
    assert len(rows) == (3 * 2 + 1 + 4) * 3 * 2
    assert (tmp_path / "headline.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "headline.txt").read_text() == text + "\n"


def test_the_worlds_differ_only_in_dependence():
    one, two = (module._instance(8, world) for world in module.WORLDS)
    np.testing.assert_array_equal(one.p, two.p)
    assert type(two.environment).__name__ == "CommonShock"
    gap = (1 - 0.1 / 8) ** 8 - (1 - 1.6 / 8) ** 8
    assert module._gap(8) == pytest.approx(gap)


def test_gap_is_divided_out():
    k = np.array([2, 4, 8])
    curve = Curve("BC-UCB", "independent", 10, k, np.array([[2.0, 4.0, 8.0]]), np.array([2.0, 4.0, 8.0]))
    assert curve.slope.value == 1.0
    assert curve.slope_plays.value == 0.0
    other = Curve("CUCB", "independent", 10, k, np.array([[1.0, 1.0, 1.0]]), curve.gap)
    assert "for no K tried" in describe([curve, other])


def test_refusals():
    with pytest.raises(sa.InvalidArgument, match="horizon"):
        headline(horizon=10)
