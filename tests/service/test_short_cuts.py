"""The quick paths of the most common requests against the general ones."""

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from superarm.service.domain import decision as decisions
from superarm.service.domain.action_sets import SlotsParameters, SlotsSpec
from superarm.service.domain.counting import flatten_rows
from superarm.service.domain.decision import advance_record, open_record
from superarm.service.domain.events import ALL, UNSEEN, Activated, Asked, Created, Told
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import plain_slate
from superarm.service.domain.spec import ProblemSpec, Settings
from superarm.service.http.begun import Begun
from superarm.service.runtime.planning import plan_alike, plan_decision
from superarm.service.schemas import PLAIN_ASK
from superarm.service.storage.snapshot import encode_counters

ARMS, ITEMS = list("abcd"), list("xyz")
SLOTS = SlotsSpec(parameters=SlotsParameters({"top": ["b", "c", "d"], "side": ["a", "b"]}))
SPECS = {
    "plain": ProblemSpec(arms=ARMS, items=ITEMS, k=2),
    "window": ProblemSpec(arms=ARMS, items=ITEMS, k=2, settings=Settings(window_s=1.5)),
    "slots": ProblemSpec(arms=ARMS, items=ITEMS, actions=SLOTS),
    "sparse": ProblemSpec(arms=ARMS, items=ITEMS, k=2, support={"a": ["x"], "b": ["y", "z"], "c": [], "d": ITEMS}),
}


@pytest.mark.parametrize("name", SPECS)
def test_events_planned_together_are_those_planned_one_by_one(name):
    one, together = (ProblemState(Created(0, SPECS[name], "key"), born=7) for _ in range(2))
    ids, eligible = ["d0", "d1", "d2"], ~one.retired
    slates = [tuple(arms) for arms in one.choose(ids, eligible)]
    for learner in (one, together):
        learner.seen = {"": 5}
    singly = []
    for id, arms in zip(ids, slates, strict=True):
        singly.append(plan_decision(one, "p", id, PLAIN_ASK, "digest", 9, plain_slate(one, id, arms)))
        one.reserve(singly[-1])
    assert plan_alike(together, "p", "digest", 9, list(zip(ids, slates, strict=True))) == singly
    assert [event.t for event in singly] == [1, 2, 3]


VALUES = st.sampled_from([0.0, 0.25, 1.0, UNSEEN])
UNITS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([ALL, ALL, ALL, 0, 2]), VALUES), min_size=1, max_size=4)


@given(
    st.lists(st.tuples(UNITS, st.booleans()), min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from([None, (3, 3, 3)]),
    st.sampled_from([None, (0, 2)]),
)
def test_feedback_that_completes_a_decision_at_once_gives_what_the_general_rules_give(events, deferred, widths, items):
    asked = Asked(0, "p", "d", "", 1, (2, 0, 1), 3, 1, deferred=deferred, widths=widths, items=items)
    record = open_record(asked)
    for units, activates in events:
        told = Told(1, [unit for unit in units if unit[0] in record.action])
        quick = advance_record(record, told)
        general = decisions._complete_if_known(
            decisions._whole_rows(record, told) or decisions._add_feedback(record, told)
        )
        assert quick == replace(general, step=record.step + 1)
        record = quick if quick.closed or not activates else advance_record(quick, Activated(2))


@given(st.lists(st.tuples(st.integers(0, 3), UNITS), min_size=1, max_size=8), st.sampled_from(["plain", "sparse"]))
def test_counters_of_decisions_told_at_once_are_those_of_the_general_step(told, name):
    """Each decision is told once or more; the general step is taken if ``tells_everything`` never holds."""
    states = []
    for quick in (True, False):
        learner = ProblemState(Created(0, SPECS[name], "key"))
        records = []
        for t in range(1, 5):
            action = (t % 4, (t + 1) % 4)
            asked = Asked(0, "p", f"d{t}", "", t, action, 3, 1, widths=learner.widths(action), learns=t < 4)
            records.append(open_record(asked))
            learner.move(None, records[-1])
        with pytest.MonkeyPatch.context() as patch:
            if not quick:
                patch.setattr("superarm.service.domain.problem.tells_everything", lambda before, after: False)
            for n, units in told:
                before, arms = records[n], records[n].action
                widths = dict(zip(arms, learner.widths(arms) or (3, 3), strict=True))
                fit = [unit for unit in units if unit[0] in widths and unit[1] < widths[unit[0]]]
                records[n] = advance_record(before, Told(1, fit))
                learner.move(before, records[n])
        learner.history.flush(learner.problem)
        states.append((encode_counters("t", "p", learner), msgspec.json.encode(learner.history), records))
    assert states[0] == states[1]


@given(st.lists(st.sampled_from([(0.0, 1.0), (0.25, 0.5), (UNSEEN, 1.0), (0.5,), ()]), max_size=30), st.booleans())
def test_rows_that_occur_many_times_are_flattened_as_others(rows, equal):
    rows = [row for row in rows if len(row) == 2] if equal else rows
    assert flatten_rows(rows).tolist() == [value for row in rows for value in row]


def test_all_arms_told_at_once_complete_a_decision():
    record = open_record(Asked(0, "p", "d", "", 1, (2, 0), 3, 1))
    told = Told(1, [(0, ALL, 0.5), (2, ALL, UNSEEN)])
    assert decisions._complete_at_once(record, told) is not None
    after = advance_record(record, told)
    assert (after.closed, after.rows, after.step) == ("complete", ((UNSEEN,) * 3, (0.5,) * 3), 1)
    assert decisions.counted_rows(after) == {2: (UNSEEN,) * 3, 0: (0.5,) * 3}


def test_an_awaitable_that_waits_goes_on_where_it_stopped():
    steps = []

    async def wait(event: asyncio.Event) -> str:
        steps.append("began")
        try:
            await event.wait()
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            steps.append("cancelled")
            raise
        return "done"

    async def live() -> None:
        event = asyncio.Event()
        begun = Begun(wait(event))
        assert (steps, begun.waits) == (["began"], True)
        asyncio.get_running_loop().call_soon(event.set)
        assert await begun == "done"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await Begun(wait(asyncio.Event()))
        assert steps == ["began", "began", "cancelled"]

    asyncio.run(live())


def test_an_awaitable_that_fails_at_once_fails():
    async def fail() -> None:
        raise ValueError("at once")

    with pytest.raises(ValueError, match="at once"):
        Begun(fail())
