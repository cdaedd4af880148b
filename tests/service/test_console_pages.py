"""The pages of the console: problems side by side, versions, an arm, decisions, exports, and what is public."""

import asyncio
import csv
import io
import itertools
import re
import time
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from superarm.service.application import application
from superarm.service.console import routes, svg
from superarm.service.console.feedback import find_faults
from superarm.service.console.times import DAY_MS, TimeRange
from superarm.service.domain.history import MAX_KEPT_VERSIONS, History, Stretch
from superarm.service.domain.moments import mean_interval
from superarm.service.domain.problem import ProblemState
from superarm.service.http.auth import make_key
from superarm.service.http.service import ServiceLimits
from superarm.service.runtime import coordinator
from superarm.service.storage.sqlite import Sqlite

from .inprocess import serving

HOSTILE = "=<b>1"
SPEC = {"arms": ["a", "b", HOSTILE], "items": ["x", "y"], "k": 1, "settings": {"policy": {"name": "bc_ucb"}}}
DAYS = 12


def day(ago: int) -> str:
    return f"{datetime.fromtimestamp(time.time() - 86_400 * ago, UTC):%Y-%m-%d}"


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A file with a decision on each of twelve days, under two versions of the settings: 0 before, 1 after."""
    path, real = tmp_path_factory.mktemp("pages") / "log.db", coordinator.time
    now = [0]

    async def fill() -> None:
        async with serving(application(Sqlite(path))) as http:
            now[0] = time.time_ns() - DAYS * DAY_MS * 1_000_000
            for name in ("p", "q"):
                (await http.put(f"/v1/problems/{name}", json=SPEC)).raise_for_status()
            for n in range(DAYS):
                now[0] = time.time_ns() - (DAYS - 1 - n) * DAY_MS * 1_000_000
                if n == DAYS // 2:
                    (await http.patch("/v1/problems/p/settings", json={"explore": 0.5})).raise_for_status()
                body = {"id": f"d{n}", "unit": f"person-{n % 2}", "eligible": ["a" if n < DAYS // 2 else HOSTILE]}
                (await http.post("/v1/problems/p/decisions", json=body)).raise_for_status()
                value = float(n >= DAYS // 2)
                told = {"outcome": [[value, value]]}
                (await http.post(f"/v1/decisions/d{n}/feedback", json=told)).raise_for_status()

    coordinator.time = SimpleNamespace(time_ns=lambda: now[0])
    try:
        asyncio.run(fill())
    finally:
        coordinator.time = real
    return path


def look(path, *addresses: str, status: int = 200, headers=None, **limits) -> list[str]:
    async def inside() -> list[str]:
        texts = []
        async with serving(application(Sqlite(path), ServiceLimits(**limits))) as http:
            for address in addresses:
                reply = await http.get(address, headers=headers)
                assert reply.status_code == status, (address, reply.status_code)
                texts.append(reply.text)
        return texts

    return asyncio.run(inside())


def section(text: str, id: str) -> str:
    return text.partition(f'id="{id}"')[2].partition("</section>")[0]


def cells(text: str, id: str) -> list[list[str]]:
    """The rows of the table in a section, without markup."""
    rows = re.findall(r"<tr>(.*?)</tr>", section(text, id), re.S)
    return [[re.sub("<.*?>", "", cell) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, re.S)] for row in rows]


def test_problems_stand_side_by_side(told):
    (page,) = look(told, "/problems")
    rows = {row[0]: row for row in cells(page, "problems")[1:]}
    assert rows["p"][2:6] == ["2 ± 0", "12", "0", "3"]
    assert rows["q"][2:6] == ["–", "0", "0", "3"]
    assert (rows["p"][7], rows["q"][7]) == ("too early", "too early")  # twelve decisions, and none


def test_versions_show_what_changed_and_what_they_earned(told):
    (page,) = look(told, "/versions?problem=p")
    current, first = cells(page, "versions")[1:]
    assert (current[0], current[1][:10], current[3]) == ("2 current", day(DAYS // 2 - 1), "explore: 0.0 → 0.5")
    assert (first[0], first[1][:10], first[3]) == ("1", day(DAYS), "created")
    assert (current[4:], first[4:]) == (["6", "2 ± 0", "–"], ["6", "0 ± 0", "+2 ± 0"])


def test_an_arm_has_a_history_with_dates(told):
    whole, late = look(told, "/arm?problem=p&arm=a", f"/arm?problem=p&arm=a&since={day(2)}")
    assert cells(whole, "arm")[1] == ["x", "0", "0", "6"]
    label = datetime.fromtimestamp(time.time(), UTC)
    assert f"{label.day} {label:%b %Y}" in section(whole, "history")
    assert "6 in total" in section(whole, "history")
    assert "0 in total" in section(late, "history")
    look(told, "/arm?problem=p&arm=nobody", "/versions?problem=nobody", "/export/odd.csv?problem=p", status=404)


def test_decisions_are_searched_and_exported(told):
    pages = look(
        told,
        "/decisions?problem=p",
        "/decisions?problem=p&arm=a&unit=person-1",
        f"/decisions?problem=p&since={day(2)}&until={day(1)}",
        "/decisions?problem=p&arm=nobody",
        "/decisions?problem=p&state=expired",
        "/export/decisions.csv?problem=p&arm=a",
    )
    found = [[row[0] for row in cells(page, "decisions")[1:]] for page in pages[:3]]
    assert found == [[f"d{n}" for n in range(11, -1, -1)], ["d5", "d3", "d1"], ["d10", "d9"]]
    assert "unknown &#x27;nobody&#x27;" in pages[3]
    assert "No decision fits" in pages[4]
    rows = list(csv.DictReader(io.StringIO(pages[5])))
    assert [row["decision"] for row in rows] == [f"d{n}" for n in range(5, -1, -1)]
    assert {row["values"] for row in rows} == {"0 0"}


def test_tables_are_exported_without_formulas(told):
    arms, rewards = look(told, "/export/arms.csv?problem=p", "/export/rewards.csv?problem=p")
    rows = list(csv.reader(io.StringIO(arms)))
    assert rows[0] == ["arm", "retired", "pulls", "pending", "mean of x", "mean of y"]
    assert rows[1:] == [
        ["a", "False", "6", "0", "0.0", "0.0"],
        ["b", "False", "0", "0", "", ""],
        [f"'{HOSTILE}", "False", "6", "0", "1.0", "1.0"],
    ]
    curve = list(csv.DictReader(io.StringIO(rewards)))
    assert sum(int(row["finished"]) for row in curve) == DAYS
    assert [row["mean reward"] for row in curve] == ["0.0"] * 6 + ["2.0"] * 6


def test_the_curve_has_dates_and_a_range(told):
    whole, part, none = look(
        told,
        "/?problem=p",
        f"/?problem=p&since={day(2)}&until={day(0)}",
        "/?problem=p&since=2001-01-01&until=2001-01-02",
    )
    first = datetime.fromtimestamp(time.time() - 86_400 * (DAYS - 1), UTC)
    assert f"{first.day} {first:%b %Y}" in section(whole, "rewards")
    assert "of 12 finished decisions" in section(whole, "rewards")
    assert "of 3 finished decisions" in section(part, "rewards")
    assert "No decision was made between these dates" in section(none, "rewards")


def test_a_public_console_shows_estimates_and_no_decision(tmp_path, told, monkeypatch):
    path = tmp_path / "log.db"
    path.write_bytes(told.read_bytes())
    store = Sqlite(path)
    key, row = make_key("other", ("read",))
    store.put_key(row)
    store.close()
    open_to_all = {"public_console": "default"}
    page, problems, login = look(path, "/?problem=p&decision=d1", "/problems", "/login", **open_to_all)
    assert "This page is public" in page
    assert "Estimated means" in page
    for hidden in ("d1", "Export", "Evaluate", "Versions", 'id="inspector"', 'id="warnings"', "Remedy"):
        assert hidden not in page, hidden
    assert "front" not in problems
    assert "Give one with the scope" in login
    closed = ["/versions?problem=p", "/decisions?problem=p", "/arm?problem=p&arm=a"]
    for refused in look(path, *closed, status=403, **open_to_all):
        assert "This page is not public" in refused
    look(path, "/export/arms.csv?problem=p", status=403, **open_to_all)
    look(path, "/v1/problems", "/v1/problems/p/arms", status=401, **open_to_all)
    look(path, "/?problem=p", "/problems", "/export/arms.csv?problem=p", status=401)
    mine = {"cookie": f"superarm_key={key}"}
    (own,) = look(path, "/", headers=mine, **open_to_all)  # with a key, the page of the key's own tenant
    assert "No problem yet" in own
    monkeypatch.setattr(routes, "PUBLIC_PER_SECOND", 0.0001)  # one at once, however long a view takes here
    assert len(look(path, "/problems", **open_to_all)) == 1
    with pytest.raises(AssertionError, match="429"):
        look(path, "/problems", "/problems", **open_to_all)


def test_a_page_that_cannot_be_shown_says_why_and_leads_back(told, tmp_path):
    (unknown,) = look(told, "/?problem=nowhere", status=404)
    assert "Problem &#x27;nowhere&#x27; does not exist." in unknown
    assert '<a href="problems">All problems</a>' in unknown
    first, all_problems = look(tmp_path / "empty.db", "/", "/problems")
    assert first == all_problems
    assert '<meta http-equiv="refresh" content="5">' in first
    for page in look(tmp_path / "empty.db", "/versions", "/decisions", status=404):
        assert "There is no problem yet." in page


def test_stretches_are_joined_until_most_of_them_have_seen_every_item():
    stretches = []
    for n in range(96):
        stretches.append(Stretch(at=n))
        stretches[-1].policy.add_items({n // 3 % 2: 1.0})
    apart, k = svg.merge_stretches(stretches)
    assert (len(apart), k) == (48, 2)
    joined, k = svg.merge_stretches(stretches, frozenset((0, 1)))
    assert (len(joined), k) == (24, 4)
    assert all(mean_interval(stretch.policy, frozenset((0, 1))) for stretch in joined)
    never, _ = svg.merge_stretches(stretches, frozenset((0, 1, 2)))
    assert len(never) == 6


@pytest.mark.parametrize("n", [1, 2, 5, 6, 7, 48])
def test_dates_on_an_axis_do_not_overlap(n):
    stretches = [Stretch(at=1_772_323_200_000 + 60_000 * m) for m in range(n)]
    for stretch in stretches:
        stretch.policy.add(1.0)
    labels = re.findall(r'x="([0-9.]+)" y="214" class="tick (start|middle|end)"', svg.rewards(stretches, 1))
    assert len(labels) >= min(n, 2)
    shift = {"start": 0.0, "middle": 0.5, "end": 1.0}
    left = [float(x) - svg.LABEL_WIDTH * shift[anchor] for x, anchor in labels]
    assert all(b - a >= svg.LABEL_WIDTH for a, b in itertools.pairwise(left))


def state(**counts) -> ProblemState:
    settings = SimpleNamespace(window_s=counts.pop("window_s", 60.0), max_pending=100)
    return SimpleNamespace(decisions=counts.pop("decisions", 100), settings=settings, history=History(**counts))


@pytest.mark.parametrize(
    ("counts", "pending", "words"),
    [
        ({"complete": 100}, 0, []),
        ({"complete": 5, "expired": 5}, 0, []),
        ({"complete": 40, "expired": 60, "late": 50}, 0, ["later than the window of 1 minute"]),
        ({"complete": 40, "expired": 60}, 0, ["Feedback is not sent"]),
        ({}, 50, ["None of 100 decisions has finished"]),
        ({"complete": 100, "conflicting": 1}, 0, ["amend: true"]),
        ({"complete": 100, "repeated": 30}, 0, ["equal feedback counts once"]),
        ({"complete": 100, "window_s": None}, 80, ["Set window_s"]),
        ({"complete": 100, "late": 1}, 80, ["It came after the window", "raise max_pending"]),
    ],
)
def test_what_is_wrong_with_feedback_has_a_reason_and_a_remedy(counts, pending, words):
    found = find_faults(state(**counts), pending)
    assert len(found) == len(words)
    for one, word in zip(found, words, strict=True):
        assert word in f"{one.seen} {one.reason} {one.remedy}"


def test_the_rewards_of_so_many_versions_are_kept():
    history = History()
    for version in range(1, MAX_KEPT_VERSIONS + 11):
        asked = SimpleNamespace(version=version, at=version, policy_action=None, t=version)
        history.moments_of(SimpleNamespace(asked=asked))[1].add(1.0)
    assert sorted(history.versions) == list(range(11, MAX_KEPT_VERSIONS + 11))


def test_a_range_of_days_has_both_ends():
    one = TimeRange("2026-03-01", "2026-03-01")
    assert one.end - one.start == DAY_MS
    assert one.holds(one.start)
    assert not one.holds(one.end)
