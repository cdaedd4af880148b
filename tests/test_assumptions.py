"""Shops whose assumptions fail: what their visitors do, what helps, what the service says, and what is printed."""

import csv
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dev.benchmarks import floors
from dev.earnings import assumptions, commands, report, service
from dev.earnings.assumptions import CASES, corrected, without_robots
from dev.earnings.contest import ServedShop, Way
from dev.earnings.rivals import BinnedThompson, KnownRates
from dev.earnings.shops import HELD_OUT, Shop, best_choice, draw_shop, make_problem
from dev.earnings.visitors import Choosers, Readers
from superarm.policies import pooled_thompson


def test_visitors_take_one_product_of_a_kind_as_the_logit_model_says():
    """Against the formula for three products, two of one kind; frequencies within 4.5 deviations of 80,000 visits."""
    visitors, p, slate = Choosers((0, 0, 1), (0.5, 0.3)), np.array([0.2, 0.1, 0.15]), np.arange(3)
    a = [0.2 / 0.3, 0.1 / 0.4]
    expected = [0.5 * a[0] / (1 + sum(a)), 0.5 * a[1] / (1 + sum(a)), 0.15]
    np.testing.assert_allclose(visitors.chances(p, slate), expected)
    n = 80_000
    u = np.random.default_rng(1).random((n, 3))
    taken = visitors.take(np.tile(p, (n, 1)), np.tile(slate, (n, 1)), u)
    assert not taken[:, :2].all(1).any()
    assert (abs(taken.mean(0) - expected) < 4.5 * np.sqrt(np.array(expected) / n)).all()
    alone = visitors.chances(p[:, None], slate[:, None])
    np.testing.assert_allclose(alone[:, 0], p)


def test_the_best_choice_is_the_best_slate():
    """By trying all; greedy choice is exact enough here for a difference of 1 %."""
    rng = np.random.default_rng(2)
    for _ in range(5):
        visitors, p = Choosers(tuple(rng.integers(0, 3, 8).tolist()), (0.4, 0.3, 0.2)), rng.uniform(0.02, 0.15, 8)
        kind = replace(CASES["substitutes"].kind, n_arms=8, k=3, visitors=visitors)
        slates = np.array([*itertools.combinations(range(8), 3), best_choice(p, kind).tolist()])
        worth = visitors.chances(p[slates], slates).sum(1)
        assert 0.99 * worth[:-1].max() <= worth[-1] <= worth[:-1].max() + 1e-12


@pytest.mark.parametrize("name", ["substitutes", "places", "hidden tastes", "crowd", "moving tastes"])
def test_what_visitors_do_has_the_mean_that_is_counted(name):
    """Fixed slates; 4,000 visits of five draws within 4.5 deviations of what the contest counts as earned."""
    case = CASES[name]
    shop = draw_shop(name, 5, kind=replace(case.kind, bots=0.0, lost=0.0))
    served, visits = ServedShop(shop, None, 4_000, seed=2), 4_000
    served._enter_phase(0)
    got = np.zeros((visits, 5))
    for t in range(1, visits + 1):
        x = served.outcome(t, int(served.segments[t - 1]), served._list)[0][:, :, 0]
        got[t - 1] = x.any(1) if shop.kind.reaches else x.sum(1)
    error = got.std(0, ddof=1) / np.sqrt(visits)
    assert (abs(got.mean(0) - served._list_value[:, 0]) < 4.5 * error).all()


def test_what_is_told_is_corrected_by_place_and_without_robots():
    outcome = np.zeros((2, 6, 1))
    outcome[0], outcome[1, 2] = 1.0, 1.0
    assert without_robots(outcome)[:, :, 0].tolist() == [[0.0] * 6, [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]
    means = Readers(assumptions.LOOKS).chances(np.full((1, 6), 0.3), np.arange(6)[None])
    np.testing.assert_allclose(corrected(means[:, :, None])[0, :, 0], 0.3 * 0.33)


def test_robots_click_everything_and_earn_nothing():
    shop = draw_shop("bots", 40, kind=CASES["bots"].kind)
    served = ServedShop(shop, None, 300)
    served._enter_phase(0)
    all_clicked = np.mean([served.outcome(t, 0, served._list)[0].all((1, 2)).mean() for t in range(1, 301)])
    assert abs(all_clicked - 0.1) < 4.5 * np.sqrt(0.1 * 0.9 / 12_000)
    p = np.take_along_axis(shop.means[:, 0, 0], served._list, 1)
    np.testing.assert_allclose(served._list_value[:, 0], p.sum(1))


def test_a_list_of_the_day_is_what_the_shop_shows_and_what_the_policy_follows():
    shop = draw_shop("list of the day", 2, kind=CASES["list of the day"].kind)
    served = ServedShop(shop, pooled_thompson(baseline=shop.known_ranking), 40, way=Way(follows=True))
    for phase in range(40):
        served._enter_phase(phase)
        there = [j for j in shop.lists[phase].tolist() if shop.for_sale[0, phase, j]]
        assert served._list[1].tolist() == there[:6]
        assert list(served.policy.baseline) == there
    assert shop.ranking_of(39)[:6] != shop.known_ranking[:6]
    np.testing.assert_array_equal(shop.for_sale[0], shop.for_sale[1])


def test_what_knows_the_rates_has_the_posterior_of_bayes_rule():
    """Against the posterior from the log, of which product of the table each one is."""
    p = np.array([[[0.1, 0.3, 0.6]], [[0.2, 0.5, 0.4]]])
    few = replace(HELD_OUT["stars"], n_arms=3, k=2, delay=7)
    made = Shop("", few, make_problem(few), p[:, None], np.ones((2, 1, 3), bool), np.ones((2, 3)), np.arange(3))
    policy = KnownRates(made)
    served = ServedShop(made, policy, 30, way=Way(logs=True))
    served.run()
    for t in list(served.told):
        served._hear(t)
    for r in range(2):
        for arm in range(3):
            likely = np.ones(3)
            for _, slates, outcome in served.log:
                for x in outcome[r][slates[r] == arm]:
                    likely *= p[r, 0] if x else 1.0 - p[r, 0]
            expected = np.cumsum(likely / likely.sum())
            np.testing.assert_allclose(served.memory.steps[r, arm], expected, atol=1e-9)


def test_thompson_sampling_by_bins_starts_from_ranks():
    problem = draw_shop("rates of 0.1 %", 2, kind=CASES["rates of 0.1 %"].kind).problem
    bins = BinnedThompson(tuple(range(100))).bins(problem)
    assert bins[:6].tolist() == [0] * 6
    assert bins[6:12].tolist() == [1] * 6
    assert (np.diff(bins[:100]) >= 0).all()
    assert bins[200] == bins.max()
    shop = draw_shop("stars", 6)
    earned = [
        ServedShop(shop, BinnedThompson(ranking), 400).run().policy.sum() for ranking in ((), tuple(shop.known_ranking))
    ]
    assert earned[1] > 1.05 * earned[0]  # a ranking that tells something, and is used


def test_the_service_counts_the_log_of_a_shop_as_it_is():
    shop = draw_shop("list of the day", 1, kind=CASES["list of the day"].kind)
    served = ServedShop(shop, pooled_thompson(baseline=shop.known_ranking), 600, way=Way(logs=True))
    served.run()
    replayed = service.Replayed(shop, 0)
    said = replayed.replay(served.log)
    assert any("today's list" in line for line in said)
    told = served.log[: 600 - service.LATE]
    pulls, total = np.zeros(260), np.zeros(260)
    for _, slates, outcome in told:
        pulls[slates[0]] += 1.0
        total[slates[0]] += outcome[0]
    for arm, place in replayed.places.items():
        assert replayed.state.tally.total[0, 0, place] == total[arm]
    assert total.sum() > 50
    assert service.say(served, 1).startswith("1 of 1: ")


def test_floors_are_read_from_the_draws_and_misses_are_said(tmp_path):
    names = ("policy", "shop", "first_1000", "total", "share_of_best", "last_half_of_best")
    rows = [
        dict(zip(names, (policy, "stars", 1.0, *values), strict=True))
        for policy, *values in [
            *(("pooled_thompson", 1.2, 0.90, 0.99), ("pooled_thompson", 1.2, 0.80, 0.85)),
            *(("known rates", 1.2, 0.90, 0.99), ("known rates", 1.2, 0.90, 0.95)),
            *(("kl_moss", 1.1, 0.8, 0.8), ("kl_moss", 1.25, 0.8, 0.8)),
            *((report.LIST, 1.1, 0.9, 0.9), (report.LIST, 0.97, 0.9, 0.9)),
        ]
    ]
    report._write_rows(tmp_path / "draws.csv", rows)
    found = {one.words: one.met for one in floors.of_contest(floors.Draws(tmp_path))}
    assert found == {
        "from nothing, of known rates in all: median ≥ .97": False,
        "from nothing, of known rates in all: worst ≥ .93": False,
        "from nothing, of known rates in the last half: worst ≥ .92": False,
        "from nothing: ahead of kl_moss in every shop": True,
        "from the list: above it in 99 % of runs": False,
        "from the list: worst ≥ .98": False,
        "from the list, first 1,000: median ≥ 1.01": False,
        "from the list, first 1,000: worst ≥ .95": True,
    }
    cases = [{"shop": "a", "total": 0.9, "worst_total": 0.8, "remedy_total": 1.1, "remedy_worst_total": 0.96}]
    cases += [{"shop": "b", "total": 1.0, "worst_total": 0.94, "remedy_total": "", "remedy_worst_total": ""}]
    report._write_rows(tmp_path / "assumptions.csv", cases)
    assert [one.met for one in floors.of_cases(tmp_path)] == [True, False]


def test_every_shop_has_its_policies_and_the_remedy_is_played():
    todo = commands.tasks([*commands.HELD_OUT, "MovieLens-100k", *CASES], 20, 20_000)
    by_shop = {name: {one.policy for one in todo if one.shop == name} for name in ("stars", "prices", "MovieLens-100k")}
    rivals = {report.LIST, "pooled_thompson", "EB Thompson, list", "cts", "kl_ucb", "kl_moss"}
    assert by_shop["stars"] == rivals | {"known rates"}
    assert by_shop["prices"] == rivals
    assert by_shop["MovieLens-100k"] == rivals | {"learnt items"}
    for name, case in CASES.items():
        ways = [one.policy for one in todo if one.shop == name]
        assert sorted(ways) == sorted([report.FROM_LIST, report.REMEDIED][: 1 + (case.remedy is not None)])


def test_a_row_of_the_table_has_what_the_service_says_and_what_the_remedy_earns(monkeypatch, tmp_path):
    monkeypatch.setattr(commands, "REPLAYED", 1)
    entries = [commands.play("bots", how, 2, 330) for how in (report.FROM_LIST, report.REMEDIED)]
    paths = report.write_report(entries, tmp_path)
    with (tmp_path / "assumptions.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert float(row["total"]) == pytest.approx(entries[0].relative(330).mean())
    assert float(row["remedy_total"]) == pytest.approx(entries[1].relative(330).mean())
    assert row["says"] == entries[0].says
    assert "| bots | 10 % of visits click everything |" in paths[0].read_text()


def test_numbers_are_written_between_the_marks_of_the_page_and_of_readme(tmp_path):
    results, docs = Path(__file__).parents[1] / "docs" / "background", tmp_path / "docs"
    (docs / "background").mkdir(parents=True)
    page, readme = docs / "background" / "earnings.md", tmp_path / "README.md"
    page.write_text("a\n<!-- begin summary -->\nold\n<!-- end summary -->\nz")
    readme.write_text("a <!-- begin headline -->old<!-- end headline --> z")
    report.publish(results, docs)
    with (results / "earnings.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert page.read_text() == f"a\n<!-- begin summary -->\n{report.format_summary(rows)}\n<!-- end summary -->\nz"
    assert readme.read_text() == f"a <!-- begin headline -->{report.headline(rows)}<!-- end headline --> z"
    assert (docs / "background" / "assumptions.csv").read_bytes() == (results / "assumptions.csv").read_bytes()
