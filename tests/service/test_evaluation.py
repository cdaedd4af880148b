"""The console's answers on control share, guardrail and convergence, and its page of evaluations."""

import asyncio
import html
import re

import numpy as np
import pytest
from scipy.sparse import csr_array

import superarm as sa
from superarm.offline.estimators.entries import entry_intervals, pooled_means
from superarm.offline.estimators.next_slates import next_slates
from superarm.service.application import application
from superarm.service.console import certificates, evaluation
from superarm.service.domain.intervals import known_means, time_uniform
from superarm.service.domain.spec import PolicySpec, to_policy
from superarm.service.storage import recent
from superarm.service.storage.recent import log_of, recent_decisions

from .inprocess import serving
from .memory_store import MemoryStore
from .test_control import create, play


def visit(*paths, settings, n, baseline=("d", "e"), store=None):
    """The pages after ``n`` decisions, and the learner."""
    store = store or MemoryStore()

    async def trial():
        app = application(store)
        async with serving(app) as http:
            await create(http, **settings)
            await play(http, n, np.random.default_rng(0), baseline=list(baseline))
            return [(await http.get(path)).text for path in paths], app

    return *asyncio.run(trial()), store


def test_the_page_answers_by_the_control_share_and_the_certificate(monkeypatch):
    monkeypatch.setattr(certificates, "WAIT_SECONDS", 600.0)
    settings = {"control": 0.3, "guardrail": 0.9}
    (page, certificate), _, _ = visit("/?problem=p", "/v1/problems/p/certificate?epsilon=50", settings=settings, n=120)
    for word in ("Better than the baseline?", "holds at all times", "Guardrail", "Converged?", "for one look"):
        assert word in page
    assert "of the control share" in page
    assert ">Holds<" in page
    assert ">Not yet<" in page
    assert '"certified":true' in certificate


def test_without_a_control_share_the_page_says_how_to_know():
    (page,), _, _ = visit("/?problem=p", settings={}, n=3)
    assert "Set control" in page
    assert "Guardrail" not in page


def test_the_evaluation_shows_policy_baseline_uniform_and_candidates():
    (page, empty), _, store = visit(
        "/evaluation?problem=p&policy=kl_moss&policy=nonsense&policy=cucb+rho=x&add=kl_ucb&with=rho%3D9",
        "/evaluation?problem=nobody",
        settings={"control": 0.3},
        n=60,
    )
    for word in (
        "shown so far",
        "this policy, next",
        "baseline, as shown",
        "uniform slates",
        "best by the means",
        "kl_moss",
    ):
        assert f'<th scope="row">{word}' in page
    assert "The slate to ship" in page
    assert "95 %, at all times" in page
    assert "There is no policy &#x27;nonsense&#x27;" in page
    assert "&#x27;rho=x&#x27; is not of the form name=number" in page
    assert '<th scope="row">kl_ucb rho=9' in page
    assert '<input type="hidden" name="policy" value="kl_ucb rho=9">' in page
    assert 'href="evaluation?problem=p&amp;policy=nonsense&amp;policy=cucb+rho%3Dx&amp;policy=kl_ucb+rho%3D9"' in page
    assert "nobody" in empty
    records = recent_decisions(store, {"": len(store.lines)}, "default", "p", 2)
    assert len(records) == 60


def test_a_problem_without_decisions_has_nothing_to_evaluate():
    (page,), _, _ = visit("/evaluation?problem=p", settings={}, n=0)
    assert "Nothing to evaluate yet" in page


def test_the_evaluated_log_is_what_the_learner_counted():
    store = MemoryStore()

    async def trial():
        app = application(store)
        async with serving(app) as http:
            await create(http, control=0.3)
            await play(http, 40, np.random.default_rng(1))
            coordinator = app.service.coordinator
            learner = await coordinator.learner("default", "p")
            records = recent_decisions(store, dict(coordinator.position), "default", "p", 2)
            return log_of(records, "default", "p", learner), learner.tally

    log, tally = asyncio.run(trial())
    assert log.tally.pulls.tolist() == tally.pulls.tolist()
    assert log.tally.total.tolist() == tally.total.tolist()


@pytest.mark.parametrize("sparse", [False, True])
def test_intervals_of_the_console_are_those_of_logs(sparse):
    support = csr_array(np.array([[0, 1], [0, 0], [1, 1]])) if sparse else None
    problem = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(1), support=support)
    tally = sa.tally.empty(problem.support)
    tally.pulls[:] = [4.0, 0.0, 9.0]
    tally.total[:] = [3.0, 9.0, 2.0] if sparse else [1.0, 3.0, 0.0, 0.0, 9.0, 2.0]
    arms = np.array([2, 0, 1])
    band, known = time_uniform(tally, problem.support, arms), known_means(tally, problem.support, arms)
    whole = entry_intervals(pooled_means(problem, tally), 0.05)
    assert band.mean == pytest.approx(known.mean)
    assert band.low[0, 1] == pytest.approx(whole.low[0][-1])
    assert band.high[0, 0] == pytest.approx(whole.high[0][-2])
    assert (band.low[2, 0], band.high[2, 0]) == ((0.0, 0.0) if sparse else (0.0, 1.0))


def rows_of(page):
    """The rows of the table: name to the text of its cells."""
    body = page.split("<tbody>")[1].split("</tbody>")[0]
    found = {}
    for row in body.split("<tr>")[1:]:
        name, *cells = [html.unescape(re.sub("<[^>]*>", "\n", cell)).strip() for cell in re.split("</t[hd]>", row)]
        found[name.split("\n")[0]] = [name.split("\n")[-1], *cells]
    return found


RATES = {"a": 0.1, "b": 0.6, "c": 0.9, "d": 0.3, "e": 0.2}


async def show_slates(http, n, **asked):
    """Decisions of which each arm earns its rate, so that all means are known."""
    for _ in range(n):
        made = (await http.post("/v1/problems/p/decisions", json=asked)).json()
        rows = [[RATES[arm]] * len(asked.get("items", ["x", "y"])) for arm in made["arms"]]
        told = await http.post(f"/v1/decisions/{made['id']}/feedback", json={"outcome": rows})
        assert told.status_code == 200, told.text


def evaluated(*histories, **settings):
    """The rows after histories of decisions, and the slate that the service really shows next."""

    async def trial():
        async with serving(application(MemoryStore())) as http:
            spec = {"arms": list("abcde"), "items": ["x", "y"], "k": 2, "reward": {"name": "linear"}}
            await http.put("/v1/problems/p", json={**spec, "settings": {"window_s": None, **settings}})
            for n, asked in histories:
                await show_slates(http, n, **asked)
            page = (await http.get("/evaluation?problem=p")).text
            return (
                rows_of(page),
                (await http.post("/v1/problems/p/decisions", json={"baseline": ["a", "b"]})).json()["arms"],
                page,
            )

    return asyncio.run(trial())


def test_the_best_by_the_means_is_made_of_arms_that_were_seen(monkeypatch):
    """Review, A9: arms that were never shown, or not of late, came first, and were worth 0."""
    monkeypatch.setattr(recent, "MAX_EVALUATED_VALUES", 4 * 5)
    rows, slate, page = evaluated(
        (9, {"eligible": ["a", "c"]}), (3, {"eligible": ["a", "b"]}), (2, {"eligible": ["d", "b"]})
    )
    assert rows["best by the means"][:2] == ["b, d", "1.8"]
    assert float(rows["uniform slates"][1]) == pytest.approx(4 / 3, abs=0.05)  # of a, b and d; 256 draws
    assert "are made of the 3 of 5 arms" in page
    assert "e" in slate
    unknown = ", ".join(sorted({"c", "e"}.intersection(slate)))
    assert rows["this policy, next"][1] == f"Its slates hold arms that these decisions do not tell of: {unknown}."


def test_the_next_slate_is_that_of_the_service():
    """Review, A9: it was that of a policy that had seen the newest decisions only."""
    rows, slate, _ = evaluated((2, {"eligible": ["c", "e"]}), (30, {}), (4, {"eligible": ["a", "b", "d"]}))
    assert rows["this policy, next"][:2] == [", ".join(slate), f"{2 * sum(RATES[arm] for arm in slate):.4g}"]
    rows, _, _ = evaluated((30, {}), (20, {"items": ["y"]}))
    assert "the next slate depends on them" in rows["this policy, next"][1]
    assert rows["best by the means"][:2] == ["c, b", "3"]


def test_the_baseline_is_the_mean_over_its_slates():
    """Review, A9: it was the most frequent of its slates, and did not say so."""
    histories = [(10, {"baseline": ["a", "b"]}), (30, {"baseline": ["c", "d"]}), (12, {"baseline": ["d", "e"]})]
    rows, _, _ = evaluated(*histories, mode="apprentice")
    assert rows["baseline, as shown"][1] == f"{(10 * 1.4 + 30 * 2.4 + 12 * 1.0) / 52:.4g}"
    rows, _, _ = evaluated((5, {}), control=0.1, control_slate=["a", "c"])
    assert "control slate" in rows
    assert not any("baseline" in name for name in rows)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("kl_ucb nu=1", "unknown 'nu'"),
        ("kl_ucb window=0.5", "0.5"),
        ("kl_ucb window=5 half_life=5", "given beside window"),
        ("", "no name"),
    ],
)
def test_candidates_that_cannot_be_read_say_why(text, wrong):
    assert wrong in evaluation._read(text)


def test_a_candidate_is_the_policy_that_a_problem_with_these_settings_would_have():
    target = evaluation._read("bc_ucb rho=0.5 window=160 explore=0.25")
    assert target.explore == 0.25
    assert repr(target.policy) == repr(to_policy(PolicySpec("bc_ucb", {"rho": 0.5}, window=160)))


CONTEXT = {"features": {"categorical": {"country": ["NO", "SE", "DK"]}}, "model": {"name": "segments"}}


async def play_segments(http, n, rng, settings=None):
    """Readers of two of three countries, who like different arms."""
    spec = {"arms": list("abcd"), "items": ["x"], "k": 2, "context": CONTEXT}
    await http.put("/v1/problems/p", json={**spec, "settings": {"window_s": None, **(settings or {})}})
    likes = {"NO": (0.9, 0.7, 0.2, 0.1), "SE": (0.1, 0.2, 0.7, 0.9)}
    for t in range(n):
        country = ("NO", "SE")[t % 2]
        reply = await http.post("/v1/problems/p/decisions", json={"id": f"v{t}", "context": {"country": country}})
        rows = [[int(rng.random() < likes[country]["abcd".index(arm)])] for arm in reply.json()["arms"]]
        await http.post(f"/v1/decisions/v{t}/feedback", json={"outcome": rows})


@pytest.mark.parametrize("policy", ["kl_ucb", "kl_ucb window=160"])
def test_policies_on_segments_are_evaluated_segment_by_segment(policy):
    """The next slates are those that the service itself would show in each segment."""
    store = MemoryStore()

    async def trial():
        app = application(store)
        async with serving(app) as http:
            name, _, window = policy.partition(" window=")
            chosen = {"name": name, **({"window": int(window)} if window else {})}
            await play_segments(http, 60, np.random.default_rng(0), {"policy": chosen})
            page = (await http.get("/evaluation?problem=p&policy=kl_moss")).text
            learner = await app.service.coordinator.learner("default", "p")
            records = recent_decisions(store, dict(app.service.coordinator.position), "default", "p", 2)
            log = log_of(records, "default", "p", learner)
            shown = []
            for country in ("NO", "SE"):
                reply = await http.post("/v1/problems/p/decisions", json={"context": {"country": country}})
                shown.append(sorted(reply.json()["arms"]))
            return page, log, shown

    page, log, shown = asyncio.run(trial())
    assert log.group_names == ("country=NO", "country=SE")
    found = [np.asarray(part)[0].tolist() for part in next_slates(log, evaluation._read(policy))]
    assert [sorted(log.arms[j] for j in slate) for slate in found] == shown
    assert '<th scope="row">kl_moss' in page
    assert "country=NO: a, b" in page
    assert "country=SE: d, c" in page


def test_a_problem_with_a_linear_model_says_why_it_is_not_evaluated():
    async def trial():
        async with serving(application(MemoryStore())) as http:
            spec = {"arms": ["a", "b"], "context": {"features": {"d": 2}, "model": {"name": "linear"}}}
            made = await http.put("/v1/problems/p", json={**spec, "settings": {"policy": {"name": "c2_ucb"}}})
            assert made.status_code == 201, made.text
            return (await http.get("/evaluation?problem=p")).text

    page = asyncio.run(trial())
    assert "learns a LinearModel of features" in page
    assert "set a control share" in page


def test_retired_arms_are_in_no_candidate():
    async def trial():
        async with serving(application(MemoryStore())) as http:
            await create(http)
            await play(http, 60, np.random.default_rng(0))
            await http.post("/v1/problems/p/arms", json={"retire": ["a", "b"]})
            return (await http.get("/evaluation?problem=p&policy=kl_ucb")).text

    page = asyncio.run(trial())
    rows = page.split("<tbody>")[1].split("</tbody>")[0].split("<tr>")
    slates = [row.split('class="note">')[1].split("<")[0] for row in rows if row.startswith('<th scope="row">kl_ucb')]
    assert slates
    assert not set("ab") & set(slates[0].split(", "))
