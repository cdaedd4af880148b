"""Comparisons speak in time and rarely wrongly; warnings where something is wrong, and silence elsewhere."""

import asyncio
import re
from datetime import UTC, datetime

import numpy as np
import pytest
from msgspec.structs import replace

from dev.benchmarks import verdicts, warned
from superarm.offline.mean_sequences import BoundedSums, Stratum, effective_number
from superarm.service.application import application
from superarm.service.domain.behaviour import Behaviour
from superarm.service.domain.events import Asked, Changed
from superarm.service.domain.lift import GroupSums, LiftSums, measure_lift
from superarm.service.domain.spec import Settings
from superarm.service.storage.snapshot import decode_snapshot, restore_ledger, take_snapshot

from .inprocess import serving
from .memory_store import MemoryStore
from .running import DECISIONS


@pytest.mark.parametrize("kind", ["clicks, 0.6 a view", "the same, half control", "moving"])
def test_equal_groups_are_rarely_judged_however_often_one_looks(kind):
    """At 5 %, more than 4 of 20 runs have a chance of 0.003; each kind was played 200 times by the benchmark."""
    runs = [verdicts.run(verdicts.KINDS[kind], 0.0, 6_000, n) for n in range(20)]
    assert sum(one.verdict != "open" for one in runs) <= 4
    better = [verdicts.run(verdicts.KINDS[kind], 1.0, 6_000, n) for n in range(5)]
    assert [one.verdict for one in better] == ["better"] * 5


def test_a_larger_limit_makes_no_interval_of_amounts_wider():
    """Twenty times as large a limit: the interval for large numbers does not depend on it."""
    found = []
    for limit in (1_000.0, 20_000.0):
        rng, groups = np.random.default_rng(3), (GroupSums(), GroupSums())
        for view in range(8_000):
            groups[view % 2].add(float(rng.lognormal(3.0, 0.5)) * (rng.random() < 0.1 + 0.04 * (view % 2 == 0)))
        found.append(measure_lift(LiftSums(*groups, scale=limit, scales=[limit])))
    assert found[0].difference == found[1].difference
    assert (found[0].method, found[0].verdict) == ("large", "better")


def test_few_rewards_have_the_intervals_of_bounded_ones():
    policy, control = GroupSums(9_000, 90.0, 89.0), GroupSums(1_000, 2.0, 2.0)
    found = measure_lift(LiftSums(policy, control, scale=1.0, scales=[1.0]))
    assert found.method == "bounded"
    assert found.verdict == "open"
    assert found.needed > 10_000 * (60 - 2) / 2 * 0.9  # at least as many as give the control sixty rewards


def test_effective_numbers_are_those_of_the_formula():
    values = np.random.default_rng(0).pareto(2.5, 500)
    sums = BoundedSums(500, float(values.sum()), float(((values - values.mean()) ** 2).sum()))
    assert effective_number(Stratum(sums, 1e9)) == pytest.approx(values.sum() ** 2 / (values**2).sum())
    assert effective_number(Stratum(BoundedSums(500, 495.0, 4.95), 1.0)) == pytest.approx(5.0)
    assert effective_number(Stratum(BoundedSums(500, 0.0, 0.0), 1.0)) == 0.0


def test_what_is_still_needed_is_what_it_then_takes():
    """With the same means and spreads, so many more decisions decide, and a tenth fewer do not."""

    def sums(n):
        parts = [
            GroupSums(int(n * share), n * share * mean, n * share * 0.5) for share, mean in ((0.9, 0.65), (0.1, 0.6))
        ]
        return measure_lift(LiftSums(*parts, scale=6.0, scales=[6.0]))

    now = sums(2_000)
    assert now.verdict == "open"
    assert sums(int(1.02 * (2_000 + now.needed))).verdict == "better"
    assert sums(int(0.9 * (2_000 + now.needed))).verdict == "open"
    assert now.needed_at_half < 0.5 * now.needed


def asked(t, group="policy", at=0):
    return Asked(at, "p", f"d{t}", "", t, (0,), 1, 1, group=group)


def test_a_planned_comparison_speaks_once():
    """When all of its decisions have finished, with the interval of one look; what comes later changes nothing."""
    rng, sums = np.random.default_rng(0), LiftSums.begun(Settings(planned=4_000), 10)
    sums.scales, sums.scale = [1.0], 1.0
    said = []
    for t in range(11, 5_011):
        made = asked(t, "control" if t % 2 else "policy")
        sums.count(made)
        sums.add(made, float(rng.random() < (0.2 if t % 2 else 0.24)), None, {})
        said.append(measure_lift(sums))
    assert all(one.difference is None for one in said[:3_999])
    assert [said[n].needed for n in (0, 1_999, 3_998)] == [3_999, 2_000, 1]
    assert said[3_999].difference is not None
    assert said[3_999] == said[-1]
    assert said[-1].method == "planned"
    always = measure_lift(replace(sums, planned=0))
    width = [one.difference.high - one.difference.low for one in (said[-1], always)]
    assert width[0] < 0.7 * width[1]


def test_a_planned_date_leaves_out_what_was_asked_later():
    settings = Settings(planned=datetime(2026, 3, 1, tzinfo=UTC))
    sums = LiftSums.begun(settings)
    end = sums.planned_at
    sums.scales, sums.scale = [1.0], 1.0
    for t in range(1, 401):
        for group in ("policy", "control"):
            made = asked(2 * t, group, at=end - 1 - t)
            sums.count(made)
            sums.add(made, float(t % 3 == 0), None, {})
    assert measure_lift(sums).difference is None
    late = asked(900, at=end)
    sums.count(late)
    sums.add(late, 1.0, None, {})
    assert measure_lift(sums).difference.value == 0.0
    assert sums.policy.count() == 400


def test_a_plan_begins_another_comparison_and_is_told_over_http():
    store = MemoryStore()
    spec = {"arms": ["a", "b", "c"], "k": 1, "settings": {"control": 0.5, "control_slate": ["c"], "planned": 40}}

    async def scenario():
        async with serving(application(store)) as http:
            (await http.put("/v1/problems/p", json=spec)).raise_for_status()
            said = []
            for n in range(60):
                made = (await http.post(DECISIONS, json={"id": f"d{n}"})).json()
                outcome = {"outcome": [[float(n % 2)]]}
                (await http.post(f"{DECISIONS}/{made['id']}/feedback", json=outcome)).raise_for_status()
                if n in (20, 50):
                    said.append((await http.get("/v1/problems/p/lift")).json())
            bad = await http.patch("/v1/problems/p/settings", json={"planned": 0})
            (await http.patch("/v1/problems/p/settings", json={"planned": None})).raise_for_status()
            return (
                said,
                bad.status_code,
                (await http.get("/v1/problems/p/lift")).json(),
                (await http.get("/problems")).text,
            )

    (before, after), bad, changed, page = asyncio.run(scenario())
    assert before["missing"].endswith("the comparison speaks once, when 19 more decisions have finished")
    assert (before["needed"], before["difference"]) == (19, None)
    assert after["policy"]["decisions"] + after["control"]["decisions"] == 40
    assert after["difference"] is not None
    assert (bad, changed["since"], len(changed["earlier"])) == (422, 60, 1)
    assert changed["earlier"][0]["difference"] == after["difference"]
    assert "All problems" in page
    again = decode_snapshot(take_snapshot(restore_ledger(store)[0], {"": 1})).histories[0]
    assert [one.planned for one in again.earlier] == [40]


def test_an_interval_for_one_look_would_often_judge_equal_groups():
    """So the test above can fail: the same runs with 1.96 deviations."""
    wrong = 0
    for n in range(20):
        rng = np.random.default_rng(n)
        walk = np.cumsum(rng.binomial(6, 0.1, 6_000) - 0.6) / np.sqrt(0.54 * np.arange(1, 6_001))
        wrong += bool((np.abs(walk[200:]) > 1.96).any())
    assert wrong > 4


SLOW = pytest.mark.slow("some seconds each; the others run always")


@pytest.mark.parametrize(
    "name",
    [
        "substitutes",
        "programs",
        *(pytest.param(n, marks=SLOW) for n in list(warned.BROKEN) if n not in ("substitutes", "programs")),
    ],
)
def test_where_something_is_wrong_a_sentence_says_what_with_a_remedy(name):
    """Draws that the thresholds were not chosen on; the benchmark plays more of them."""
    make, word = warned.BROKEN[name]
    (said,) = (one for one in warned.Played(make, 90).play(3_000) if word in one)
    assert re.search(r"\d", said) or name == "hidden tastes"


@pytest.mark.parametrize("name", ["plain", *(pytest.param(n, marks=SLOW) for n in list(warned.SOUND) if n != "plain")])
def test_where_nothing_is_wrong_nothing_is_said(name):
    assert warned.Played(warned.SOUND[name], 91).play(2_000) == []


def test_the_console_shows_what_came_in_what_left_and_what_was_gained():
    """The estimate that the policy decides by beside the mean so far, the dates of the curve, and all problems."""
    names, store = [f"product {n}" for n in range(8)], MemoryStore()
    words = {"arm": "product", "outcome": "purchase", "decision": "view", "slate": "page", "unit": "€"}
    settings = {"control": 0.3, "control_slate": names[:2], "policy": {"baseline": names}, "at_window_end": 0}
    spec = {"arms": names, "items": ["sold"], "k": 2, "seed": 1, "reward": {"name": "linear"}, "weights": [10]}

    async def scenario():
        async with serving(application(store)) as http:
            (await http.put("/v1/problems/p", json=spec | {"settings": settings | {"words": words}})).raise_for_status()
            for n in range(300):
                made = (await http.post(DECISIONS, json={"id": f"d{n}"})).json()
                told = [{"arm": arm, "value": float(arm in names[4:6])} for arm in made["arms"]]
                feedback = {"feedback": told}
                (await http.post(f"{DECISIONS}/{made['id']}/feedback", json=feedback)).raise_for_status()
            await http.get("/")
            lift, arms = (await http.get("/v1/problems/p/lift")).json(), (await http.get("/v1/problems/p/arms")).json()
            day = f"{datetime.now(UTC):%Y-%m-%d}"
            pages = [f"/?since={day}&until={day}", "/?since=2020-01-01&until=2020-01-02", "/?since=soon", "/problems"]
            return lift, arms["arms"], [(await http.get(page)).text for page in pages]

    lift, arms, (today, before, odd, every) = asyncio.run(scenario())
    slate = re.sub(r"<.*?>", " ", today.partition('id="slate"')[2].partition("</section>")[0])
    came, _, left = re.sub(r"\s+", " ", slate).partition("In your list, and not here")
    seen = {row["arm"]: row["pulls"] for row in arms}
    found = re.search(rf"product 4 \+?9\.\d+ came in ?; mean so far 10.0 in {seen['product 4']} views, brought", came)
    assert found, came
    assert re.search(rf"product 0 estimate 0\.\d+, mean so far 0 in {seen['product 0']} views, brought 0 €", left), left
    gained = lift["difference"]["value"] * lift["policy"]["decisions"]
    assert f"+{gained:,.0f} €" in lift["said"]
    assert lift["said"] in today
    assert lift["said"] in every
    assert f"superarm: {lift['policy']['mean']['value']:.3g}" in today
    assert "No view of these days has finished" in before
    assert 'class="curve policy"' in odd


def test_a_control_slate_that_stays_behind_the_ranking_is_told():
    played = warned.Played(warned.plain, 1)
    state, names = played.state, played.state.arms.all
    for ranking, slate, said in (
        (names[::-1], state.settings.control_slate, True),
        (names[::-1], names[::-1][: warned.K], False),
        (names, names[: warned.K], False),
        (names[3:], names[: warned.K], True),
    ):
        settings = replace(state.settings, policy=replace(state.settings.policy, baseline=list(ranking)))
        state.apply(Changed(0, 2, replace(settings, control_slate=list(slate))))
        assert any("renewed 1 times" in one for one in warned.list_warnings(state)) == said


def test_pairs_are_counted_as_one_by_one():
    """Against loops: what succeeded together, and what would by chance, of slates of several sizes."""
    rng, seen, pairs = np.random.default_rng(0), Behaviour(), {}
    sizes = rng.integers(1, 5, 40)
    arms = np.concatenate([rng.permutation(6)[:size] for size in sizes])
    outcome, estimate = (rng.random(len(arms)) < 0.4).astype(float), rng.random(len(arms))
    seen.follow(arms, sizes, outcome, estimate)
    for own in np.split(np.arange(len(arms)), np.cumsum(sizes)[:-1]):
        if len(own) >= 3 and outcome[own].all():
            continue
        for a in own:
            for b in own:
                if arms[a] < arms[b]:
                    known = pairs.setdefault(int(arms[a]) << 32 | int(arms[b]), [0.0, 0.0])
                    known[0] += outcome[a] * outcome[b]
                    known[1] += estimate[a] * estimate[b]
    assert seen.pairs.keys() == pairs.keys()
    for key, counts in pairs.items():
        assert seen.pairs[key] == pytest.approx(counts)
    assert seen.expected == pytest.approx(sum(one[1] for one in pairs.values()))
    assert (seen.amounts, seen.told, seen.typical) == (outcome.sum(), outcome.sum(), 1.0)
