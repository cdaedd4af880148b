"""The console's answers on control share, guardrail and convergence, and its page of evaluations."""

import asyncio

import numpy as np
import pytest
from scipy.sparse import csr_array

import superarm as sa
from superarm.offline.estimators.entries import entry_intervals, pooled_means
from superarm.service.application import application
from superarm.service.console import certificates, evaluation
from superarm.service.domain.intervals import known_means, time_uniform
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
        "/evaluation?problem=p&policy=kl_moss&policy=nonsense",
        "/evaluation?problem=nobody",
        settings={"control": 0.3},
        n=60,
    )
    for word in ("shown so far", "this policy, next", "baseline", "uniform slates", "best by the means", "kl_moss"):
        assert f'<th scope="row">{word}' in page
    assert "The slate to ship" in page
    assert "95 %, at all times" in page
    assert '<th scope="row">nonsense' not in page
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


def test_most_frequent_baseline_is_none_without_one():
    assert evaluation._frequent(None, {}) is None
