"""What the pages of the console show: tiles, curves, versions, exports; and what is public."""

import asyncio
import csv
import html
import io
import itertools
import re
import shlex
import time
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from superarm.service.application import application
from superarm.service.console import charts, verdicts
from superarm.service.console.address import DAY_MS
from superarm.service.domain.history import History, Stretch
from superarm.service.domain.problem import ProblemState
from superarm.service.http.service import ServiceLimits, make_key
from superarm.service.runtime import coordinator
from superarm.service.storage.sqlite import Sqlite

from .inprocess import serving
from .memory_store import MemoryStore

HOSTILE = "=<b>1"
WORDS = {"arm": "product", "item": "segment", "outcome": "click", "decision": "view", "slate": "page", "unit": "€"}
SETTINGS = {"policy": {"name": "bc_ucb"}, "words": WORDS}
SPEC = {"arms": ["a", "b", HOSTILE], "items": ["x", "y"], "k": 1, "settings": SETTINGS}
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
                (await http.post(f"/v1/problems/p/decisions/d{n}/feedback", json=told)).raise_for_status()

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


def plain(markup: str) -> str:
    return re.sub(r"\s+", " ", re.sub("<.*?>", "", markup)).strip()


def cells(text: str, id: str) -> list[list[str]]:
    """The rows of the table in a section, without markup."""
    rows = re.findall(r"<tr.*?>(.*?)</tr>", section(text, id), re.S)
    return [[plain(cell) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, re.S)] for row in rows]


def test_the_busiest_problem_opens_and_speaks_the_words_of_its_owner(told):
    """None of the library's words stands on the first screen of a shop."""
    (page,) = look(told, "/")
    assert "<h1>p</h1>" in page
    first = plain(section(page, "tiles") + section(page, "rewards") + section(page, "slate"))
    for ours in ("arm", "item", "pull", "certificate", "decision", "one look", "round", "policy", "regret"):
        assert not re.search(rf"\b{ours}s?\b", first), ours
    assert "2.00 €" in first
    assert "per view" in first
    assert [plain(h) for h in re.findall("<h2>(.*?)</h2>", page)][-6:-3] == [
        "Products (3)", "The last page that superarm chose", "Which product for which segment"
    ]  # fmt: skip


def test_versions_show_what_changed(told):
    (page,) = look(told, "/versions?problem=p")
    current, first = cells(page, "versions")[1:]
    assert (current[0], current[1][:10], current[3]) == ("2 current", day(DAYS // 2 - 1), "explore: 0.0 → 0.5")
    assert (first[0], first[1][:10], first[3]) == ("1", day(DAYS), "created")


def test_tables_are_exported_without_formulas(told):
    arms, rewards = look(told, "/export/arms.csv?problem=p", "/export/rewards.csv?problem=p")
    rows = list(csv.reader(io.StringIO(arms)))
    assert rows[0] == ["product", "retired", "observed", "awaiting feedback", "mean of x", "mean of y"]
    assert rows[1:] == [
        ["a", "False", "6", "0", "0.0", "0.0"],
        ["b", "False", "0", "0", "", ""],
        [f"'{HOSTILE}", "False", "6", "0", "1.0", "1.0"],
    ]
    look(told, "/export/odd.csv?problem=p", "/versions?problem=nobody", status=404)
    curve = list(csv.DictReader(io.StringIO(rewards)))
    total = [row for row in curve if not row["segment"]]
    assert sum(int(row["views"]) for row in total) == DAYS
    assert [row["mean reward (€)"] for row in total] == ["0.0"] * 6 + ["2.0"] * 6
    assert [row["mean reward (€)"] for row in curve if row["segment"] == "y"] == ["0.0"] * 6 + ["1.0"] * 6


def test_the_curve_has_dates_and_segments(told):
    whole, segment = look(told, "/?problem=p", "/?problem=p&item=y")
    first = datetime.fromtimestamp(time.time() - 86_400 * (DAYS - 2), UTC)  # few decisions: two days are one point
    assert f">{first.day} {first:%b %Y}</text>" in section(whole, "rewards")
    assert section(whole, "rewards").count('class="tick start"') == 2  # one picture for each kind of screen
    assert "Reward per view from y" in plain(section(segment, "rewards"))
    assert "1.00 €" in plain(section(segment, "tiles"))
    assert cells(segment, "arms")[1][:2] == [HOSTILE.replace("<", "&lt;").replace(">", "&gt;"), "1.00"]


def test_a_page_that_cannot_be_shown_says_why_and_leads_back(told, tmp_path):
    (unknown,) = look(told, "/?problem=nowhere", status=404)
    assert "Problem &#39;nowhere&#39; does not exist." in unknown
    assert '<a href="./">Back to the console</a>' in unknown
    (first,) = look(tmp_path / "empty.db", "/")
    assert '<meta http-equiv="refresh" content="5">' in first
    for page in look(tmp_path / "empty.db", "/versions", "/export/arms.csv", status=404):
        assert "There is no problem yet." in page


OWN = {"sec-fetch-site": "same-origin"}


def test_changes_from_the_page_are_those_of_the_interface_with_an_audit_entry(tmp_path):
    """By whoever has the key for it, and from the console's own pages only."""
    store = Sqlite(tmp_path / "log.db")
    (admin, row), (reader, other) = make_key("shop", ("admin",)), make_key("shop", ("read",))
    store.put_key(row)
    store.put_key(other)
    spec = {**SPEC, "settings": {**SETTINGS, "control_slate": ["b"]}}

    async def post(http, key=admin, headers=OWN, problem="p", **form):
        cookie = {"cookie": f"superarm_key={key}"}
        return await http.post("/change", data={"problem": problem, **form}, headers={**cookie, **headers})

    async def scenario() -> None:
        async with serving(application(store)) as http:
            http.headers["authorization"] = f"Bearer {admin}"
            (await http.put("/v1/problems/p", json=spec)).raise_for_status()

            async def settings():
                return (await http.get("/v1/problems/p")).json()["settings"]

            async def retired():
                return [row["arm"] for row in (await http.get("/v1/problems/p/arms")).json()["arms"] if row["retired"]]

            done = await post(http, change="retire", arm=HOSTILE, place="arms", query="problem=p&sort=number")
            assert (done.status_code, done.headers["location"]) == (303, "./?problem=p&sort=number#arms")
            assert await retired() == [HOSTILE]
            assert (await post(http, change="restore", arm=HOSTILE)).status_code == 303
            assert await retired() == []
            assert (await post(http, change="control", share="12.5")).status_code == 303
            assert (await settings())["control"] == 0.125
            assert (await post(http, change="pause")).status_code == 303
            assert (await settings())["control"] == 1.0
            page = (await http.get("/?problem=p", headers={"cookie": f"superarm_key={admin}"})).text
            assert "Resume" in section(page, "changes")
            assert (await post(http, change="resume")).status_code == 303
            assert (await settings())["control"] == 0.125
            back = await post(http, change="back", version="1", place="versions")
            assert (back.status_code, back.headers["location"]) == (303, "versions?problem=p")
            assert (await settings())["control"] == 0.0
            entries = (await http.get("/v1/audit?problem=p")).json()["entries"]
            assert [entry["what"] for entry in entries] == ["settings"] * 4 + ["arms", "arms", "created"]
            assert {entry["by"] for entry in entries} == {row.id}
            page = (await http.get("/versions?problem=p", headers={"cookie": f"superarm_key={admin}"})).text
            name = HOSTILE.replace("<", "&lt;").replace(">", "&gt;")
            assert [row[3] for row in cells(page, "audit")[-3:-1]] == [f"restored {name}", f"retired {name}"]

            refused = {
                403: [post(http, key=reader, change="pause"), post(http, headers={}, change="pause"),
                      post(http, headers={"sec-fetch-site": "cross-site"}, change="pause"),
                      post(http, headers={"origin": "http://evil.example"}, change="pause")],
                401: [post(http, key="", change="pause"), post(http, key="sa_0_x", change="pause")],
                404: [post(http, change="retire", arm="nobody"), post(http, problem="q", change="pause"),
                      post(http, change="back", version="99"), post(http, change="back", version="x")],
                422: [post(http, change="control", share="101"), post(http, change="control", share="nan"),
                      post(http, change="odd")],
            }  # fmt: skip
            for status, calls in refused.items():
                assert [(await call).status_code for call in calls] == [status] * len(calls)
            place = await post(http, change="resume", place="x\r\nset-cookie: a=b", query="a=\r\nb: c")
            assert "\n" not in place.headers["location"]
            assert "set-cookie" not in place.headers
            assert (await http.get("/v1/audit?problem=p")).json()["total"] == 7
            looked = (await http.get("/?problem=p", headers={"cookie": f"superarm_key={reader}"})).text
            assert 'action="change"' not in looked

    asyncio.run(scenario())


def test_points_are_joined_until_most_of_them_have_seen_every_item():
    history = History()
    for n in range(96):
        history.stretches.append(Stretch(at=n + 1))
        for _ in range(charts.DECISIONS_PER_POINT):
            history.stretches[-1].policy.add_items({n // 3 % 2: 1.0})

    def known(*needed: int) -> tuple[int, int]:
        points = charts.reward_points(history, frozenset(needed))["policy"]
        return len(points), sum(point.value is not None for point in points)

    assert known() == (48, 48)
    assert known(0, 1) == (24, 24)
    assert known(0, 1, 2) == (6, 0)
    assert len(charts.reward_points(history, frozenset(), 1)["policy"]) <= 48


def test_the_axis_is_time():
    hour = 3_600_000
    early, late = ([charts.Point(at * hour, 1.0), charts.Point(4 * hour, 2.0)] for at in (0.0, 3.0))
    for chart in charts.draw([("policy", [*early[:1], *late])]):
        (path,) = [path for kind, path, _ in chart["lines"] if kind.startswith("curve")]
        x = [float(one.split()[0]) for one in path[1:].split("L")]
        assert (x[1] - x[0]) / (x[2] - x[0]) == pytest.approx(0.75, abs=0.01)
        dates = [place for place, _, _ in chart["dates"]]
        assert min(b - a for a, b in itertools.pairwise(dates)) > 100  # no label touches the next
    assert charts.draw([("policy", [charts.Point(5, None)])]) == []


def state(**counts) -> ProblemState:
    settings = SimpleNamespace(window_s=counts.pop("window_s", 60.0), max_pending=100, explore=0.0)
    words = SimpleNamespace(many=lambda part: f"{part}s", one=lambda part: part)
    decisions = counts.pop("decisions", 100)
    return SimpleNamespace(decisions=decisions, settings=settings, history=History(**counts), words=words)


@pytest.mark.parametrize(
    ("counts", "pending", "word"),
    [
        ({"complete": 100}, 0, "Yes"),
        ({"complete": 5, "expired": 5}, 0, "Yes"),
        ({"complete": 5, "expired": 95, "filled": 95}, 0, "Yes"),  # silence is an answer
        ({"complete": 40, "expired": 60}, 0, "Starved"),
        ({"complete": 80, "expired": 20}, 0, "Yes"),
        ({}, 50, "Waiting"),
        ({"complete": 100, "late": 1}, 100, "Full"),
    ],
)
def test_health_is_whether_decisions_are_made_and_feedback_comes(counts, pending, word):
    health = verdicts.Health("ok", "", pending)
    assert verdicts.judge_health(state(**counts), health).word == word


def test_estimates_are_shown_by_segment_of_the_context():
    spec = {
        "arms": ["a", "b"],
        "items": ["click"],
        "k": 1,
        "context": {"features": {"categorical": {"who": ["x", "y"]}}},
    }

    async def trial() -> str:
        async with serving(application(MemoryStore())) as http:
            (await http.put("/v1/problems/p", json=spec)).raise_for_status()
            for arm, who, value in (("a", "x", 1.0), ("a", "y", 0.0), ("b", "y", 1.0)):
                body = {"eligible": [arm], "context": {"who": who}, "id": arm + who}
                (await http.post("/v1/problems/p/decisions", json=body)).raise_for_status()
                told = {"outcome": [[value]]}
                (await http.post(f"/v1/problems/p/decisions/{arm + who}/feedback", json=told)).raise_for_status()
            return (await http.get("/")).text

    page = asyncio.run(trial())
    assert "for which segment" in section(page, "heat")
    head, *rows = cells(page, "heat")
    assert head[1:] == ["x", "y"]
    assert sorted(rows) == [["a", "1.00", "0"], ["b", "unknown", "1.00"]]


def test_the_page_of_a_policy_that_keeps_moments_is_shown():
    spec = EXAMPLE | {"settings": {"policy": {"name": "directional_kl_moss"}}}

    async def trial() -> int:
        async with serving(application(MemoryStore())) as http:
            (await http.put("/v1/problems/p", json=spec)).raise_for_status()
            return (await http.get("/")).status_code

    assert asyncio.run(trial()) == 200


EXAMPLE = {"arms": ["ad-1", "ad-2", "ad-3", "ad-4"], "items": ["sport", "news"], "k": 2}
ASKED = {"id": "visit-1", "eligible": ["ad-1", "ad-2"]}


def test_every_command_of_the_reference_works():
    """Each on a service of its own that has the problem and the decision of the examples."""

    async def run(words: list[str]) -> int:
        options = dict(zip(words[1::2], words[2::2], strict=False))
        body = options.get("--json", options.get("--data-binary"))
        method = options.get("-X", "POST" if body else "GET")
        media = {"content-type": options.get("-H", "application/json").removeprefix("content-type: ")}
        async with serving(application(MemoryStore())) as http:
            if method != "PUT" or not words[-1].endswith("/ads"):
                learns = {"items": "learn"} if words[-1].endswith("/learn") else {}
                learns |= {"settings": {"serve": "table"}} if words[-1].endswith("/table") else {}
                (await http.put("/v1/problems/ads", json=EXAMPLE | learns)).raise_for_status()
                if "/decisions" not in words[-1] or "visit-1" in words[-1]:
                    (await http.post("/v1/problems/ads/decisions", json=ASKED)).raise_for_status()
            url = words[-1].replace("localhost:8000", "http://localhost")
            return (await http.request(method, url, content=body, headers=media)).status_code

    async def trial() -> None:
        async with serving(application(MemoryStore())) as http:
            text = (await http.get("/docs")).text
            described = (await http.get("/openapi.json")).json()
        found = [shlex.split(html.unescape(one)) for one in re.findall("<pre>(curl.*?)</pre>", text, re.S)]
        assert len(found) == sum(len(methods) for methods in described["paths"].values())
        statuses = {" ".join(words): await run(words) for words in found}
        assert {command: status for command, status in statuses.items() if status not in (200, 201)} == {}
        for name, schema in described["components"]["schemas"].items():
            for field, one in schema.get("properties", {}).items():
                assert one["description"], f"{name}.{field}"
                assert html.unescape(plain(text)).count(one["description"].replace("`", "")), f"{name}.{field}"
        for methods in described["paths"].values():
            for operation in methods.values():
                assert all(one["description"] for one in operation.get("parameters", ()))

    asyncio.run(trial())
