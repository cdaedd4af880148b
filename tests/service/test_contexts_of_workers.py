"""Two PostgreSQL workers on one problem with contexts: both have the state of a learner that is given the log.

Frames and refits come early, so that both workers meet those of the other while their own feedback is under way.
"""

import asyncio
from contextlib import closing

import numpy as np
import pytest

import superarm as sa
from superarm.context import EncodedContext, Frame, frames
from superarm.learner import Learner
from superarm.learner.contexts import DecisionContext
from superarm.policies.contextual import Refit
from superarm.service.application import application
from superarm.service.domain.events import Asked, Framed, Refitted, Told
from superarm.service.storage.postgres import Postgres
from superarm.service.storage.snapshot import encode_counters
from superarm.service.storage.verify import verify
from superarm.core.streams import new_stream
from superarm.core.tally import Feedback

from .database import fresh
from .inprocess import serving

ARMS, Z = list("abcdef"), [[0.5, -1.0], [0.0, 1.0], [1.0, 0.25], [-0.5, 0.5], [0.75, 0.0], [0.125, -0.25]]
LEVELS = {"country": ["NO", "SE", "other"]}
CASES = {
    "segments": ("segments", {"pooling": 3.0}, {"name": "kl_ucb"}, sa.kl_ucb(), sa.models.Segments(pooling=3.0)),
    "linear": (
        "linear",
        {"shared": True},
        {"name": "vac2_ucb"},
        sa.vac2_ucb(),
        sa.models.Linear(shared=True),
    ),
    "logistic": (
        "logistic",
        {"shared": "arms"},
        {"name": "logistic_ts", "parameters": {"ridge": 2**-6}},
        sa.logistic_ts(ridge=2**-6),
        sa.models.Logistic(shared="arms"),
    ),
}
N = 48


def outcome(n):
    return np.random.default_rng(n).integers(0, 2, (2, 2)).astype(float)


async def use(workers):
    """Decisions at both workers at the same time, each told at the other one, some amended."""
    rng = np.random.default_rng(0)
    users = [{"age": float(rng.normal(40, 9)), "country": str(rng.choice(["NO", "SE", "FI"]))} for _ in range(N)]

    async def one(n):
        ask, tell = workers[n % 2], workers[(n + 1) % 2]
        asked = await ask.post("/v1/problems/p/decisions", json={"id": f"d{n}", "context": users[n]})
        assert asked.status_code == 201, asked.text
        if n % 5 == 0:
            wrong = (1.0 - outcome(n)).tolist()
            told = await ask.post(f"/v1/problems/p/decisions/d{n}/feedback", json={"outcome": wrong})
            assert told.status_code == 200, told.text
        body = {"outcome": outcome(n).tolist(), "amend": n % 5 == 0}
        told = await tell.post(f"/v1/problems/p/decisions/d{n}/feedback", json=body)
        assert told.status_code == 200, told.text

    for first in range(0, N, 4):
        await asyncio.gather(*(one(first + n) for n in range(4)))


def learn_log(learner, store):
    """Give a learner of the library everything that is in the log, and count the events of each kind."""
    decided, told, kinds, stream = {}, set(), [], new_stream(np.random.SeedSequence(0))
    for event in (read.entry.event for read in store.tail({})):
        kinds.append(type(event))
        if isinstance(event, Framed):
            learner.contexts.begin_frame(learner, Frame(event.version, dict(event.places)))
        elif isinstance(event, Refitted):
            points = np.array(event.points).reshape(len(event.groups), -1)
            refit = Refit(event.t, np.array(event.groups), points, np.array(event.information))
            learner.contexts.take_refit(learner, refit)
        elif isinstance(event, Asked):
            kept, action = event.context, np.array(event.action)
            encoded = EncodedContext(kept.segment, np.array(kept.x, float), np.zeros(0))
            made = DecisionContext(encoded, np.array(kept.weights), kept.frame, kept.t, np.array(kept.shifts, float))
            learner.contexts.pend(learner, action, event.t, made)
            learner.contexts.frames.count(kept.given)
            decided[event.id] = event.t, action, made
    for read in store.tail({}):
        if isinstance(read.entry.event, Told) and read.entry.stream not in told:
            told.add(read.entry.stream)
            t, action, made = decided[read.entry.stream]
            learner.contexts.take_back(learner, (action, made), action)
            seen = Feedback(t, action, outcome(int(read.entry.stream[1:])).reshape(-1), np.ones(4, bool))
            learner.contexts.apply(learner, seen, (action, made), stream, 1.0, 0)
    assert len(told) == len(decided) == N
    return kinds


@pytest.mark.parametrize("case", CASES)
def test_both_workers_have_the_state_of_a_learner_with_the_log(postgres, case, monkeypatch):
    monkeypatch.setattr(frames, "FIRST_FRAME", 6)
    name, parameters, settings, policy, model = CASES[case]
    context = {"features": {"numeric": {"age": None}, "categorical": LEVELS}}
    context |= {"model": {"name": name, "parameters": parameters}, "arms": dict(zip(ARMS, Z, strict=True))}
    body = {"arms": ARMS, "items": ["x", "y"], "k": 2, "context": context}
    body["settings"] = {"policy": settings, "window_s": None}
    url, states = fresh(postgres, f"contexts_{name}"), []

    async def live():
        apps = [application(Postgres(url)) for _ in range(2)]
        async with serving(apps[0]) as one, serving(apps[1]) as two:
            assert (await one.put("/v1/problems/p", json=body)).status_code == 201
            await use([one, two])
            for app in apps:
                coordinator = app.service.coordinator
                await coordinator.catch_up()
                states.append(encode_counters("", "", coordinator.ledger.problems["default", "p"]))

    asyncio.run(live())
    declared = sa.Context(sa.Features(numeric=["age"], categorical=LEVELS), arms=Z, model=model)
    problem = sa.Problem(6, 2, sa.Coverage(), sa.Subsets(2), context=declared)
    learner = Learner(problem, policy)
    with closing(Postgres(url, slot=False)) as store:
        kinds = learn_log(learner, store)
        assert verify(store).faults == []
    assert Framed in kinds
    assert (Refitted in kinds) == (name == "logistic")
    assert states[0] == states[1]
    learner.step = states[0].step
    theirs = encode_counters("", "", Shown(learner))
    assert theirs == states[0]


class Shown:
    """A learner with the names that ``encode_counters`` reads."""

    def __init__(self, learner):
        self.learner, self.state, self.tally, self.pending = learner, learner.state, learner.tally, learner.pending
        self.asked, self.step = learner.asked, learner.step
