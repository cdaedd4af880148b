"""Large requests: work in threads and in slices gives the same as work at once, and is linear."""

import asyncio
import inspect
import threading

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from superarm.service import schemas
from superarm.service.application import application
from superarm.service.domain import event_lines, piecewise
from superarm.service.domain.counting import join_rows
from superarm.service.domain.event_lines import decode, encode
from superarm.service.domain.events import AnyEvent, Created, Expired, Told, Warmed
from superarm.service.domain.ledger import fold
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.spec import ProblemSpec
from superarm.service.http import decoding, views
from superarm.service.http.decoding import BodyDecoder
from superarm.service.runtime import applying, batcher, coordinator, feedback, heavy
from superarm.service.runtime.admin import _digest_past
from superarm.service.runtime.ask import digest_request
from superarm.service.runtime.batcher import QueuedAsk
from superarm.service.runtime.gates import Gates
from superarm.service.storage.snapshot import encode_counters
from superarm.core.tally import estimates

from .inprocess import serving
from .memory_store import MemoryStore


def make_everything_heavy(monkeypatch) -> None:
    monkeypatch.setattr(heavy, "HEAVY_ENTRIES", 0)
    for name in ("HEAVY_VALUES", "HEAVY_PRODUCTS", "HEAVY_CHOICE", "MAX_LOOP_NAMES"):
        monkeypatch.setattr(heavy, name, 0)
    monkeypatch.setattr(event_lines, "LARGE_BYTES", 0)
    monkeypatch.setattr(coordinator, "HEAVY_SUMS", 0)
    monkeypatch.setattr(feedback, "HEAVY_VALUES", 0)
    monkeypatch.setattr(applying, "HEAVY_ENTRIES", 0)
    monkeypatch.setattr(feedback, "HEAVY_UNITS", 0)
    monkeypatch.setattr(decoding, "LARGE_BYTES", 0)
    monkeypatch.setattr(piecewise, "PIECE_BYTES", 0)
    for module in (heavy, applying, batcher):
        monkeypatch.setattr(module, "SLICE_SECONDS", 0.0)


async def history(http) -> list:
    """A history with growth, feedback of all forms and settings; everything that was answered."""
    answers = []

    async def call(method: str, path: str, body=None) -> dict:
        reply = await http.request(method, path, json=body)
        answers.append((reply.status_code, reply.json()))
        return reply.json()

    spec = {"arms": list("abcdef"), "items": ["x", "y"], "k": 3, "seed": 1}
    await call("PUT", "/v1/problems/p", {**spec, "settings": {"policy": {"name": "kl_ucb"}, "window_s": None}})
    for n in range(12):
        await call("POST", "/v1/problems/p/decisions", {"id": f"d{n}", "excluded": ["a"] if n % 3 == 0 else []})
    many = {"decisions": [{"id": f"m{n}", "excluded": ["b"] if n % 2 else []} for n in range(70)]}
    await call("POST", "/v1/problems/p/decisions/bulk", many)
    for n in range(0, 12, 2):
        outcome = [[n / 12, None], [1.0, 0.25], [0.0, 0.5]]
        await call("POST", f"/v1/decisions/d{n}/feedback", {"outcome": outcome})
        await call("POST", f"/v1/decisions/d{n}/feedback", {"outcome": outcome})  # the same again
        await call("POST", f"/v1/decisions/d{n}/feedback", {"outcome": [[None, 0.75], [None, None], [None, None]]})
        await call("POST", f"/v1/decisions/d{n}/feedback", {"outcome": [[0.5, 0.5]] * 3})  # a conflict
        await call("POST", f"/v1/decisions/d{n}/feedback", {"outcome": [[0.5]] * 3})  # a wrong shape
    amended = {"outcome": [[0.5, None], [0.75, 0.25], [None, None]], "amend": True}
    await call("POST", "/v1/decisions/d2/feedback", amended)  # a decision that is complete
    await call("POST", "/v1/decisions/d3/feedback", {"outcome": [[0.5, None], [1.0, 0.25], [None, None]]})
    await call("POST", "/v1/decisions/d3/feedback", amended)  # one that is open
    seen = [[True, False], [True, True], [False, False]]
    await call("POST", "/v1/decisions/d1/feedback", {"outcome": [[0.5, 0.5]] * 3, "seen": seen})
    await call("POST", "/v1/problems/p/arms", {"add": ["g", "h"], "retire": ["c"]})
    await call("POST", "/v1/problems/p/items", {"add": ["z"], "weights": [2.0]})
    await call("PATCH", "/v1/problems/p/settings", {"policy": {"name": "bc_ucb"}})
    past = {"id": "old", "arms": ["a", "g"], "outcomes": [[0.5, None, 1.0], [0.0, 1.0, 0.25]]}
    await call("POST", "/v1/problems/p/outcomes", past)
    await call("POST", "/v1/problems/p/outcomes", past)
    for n in range(3, 12, 4):
        arms = (await call("GET", f"/v1/decisions/d{n}"))["arms"]
        await call("POST", f"/v1/decisions/d{n}/feedback", {"feedback": [{"arm": arms[0], "value": 0.5}]})
    for n in range(5):
        await call("POST", "/v1/problems/p/decisions", {"id": f"e{n}", "deferred": n == 1})
    await call("POST", "/v1/decisions/e1/activate", {"shown": ["a", "b"]})
    slots = [{"id": "top", "excluded": ["a", "b"]}, {"id": "side", "excluded": ["d"]}]
    await call("POST", "/v1/problems/p/decisions", {"id": "slots", "slots": slots, "eligible": list("abdef")})
    await call("PUT", "/v1/problems/gone", spec)
    await call("POST", "/v1/problems/gone/decisions", {"id": "gone", "unit": "visitor"})
    await call("POST", "/v1/problems/gone/erasures", {"unit": "visitor"})
    await call("DELETE", "/v1/problems/gone")
    await call("DELETE", "/v1/decisions/d0")
    await call("GET", "/v1/problems/p/arms?offset=1&limit=5")
    return answers


def lived(store: MemoryStore, every: int = 10) -> list:
    async def live() -> list:
        app = application(store)
        app.service.coordinator.applier._snapshot_every = every
        async with serving(app) as http:
            answers = await history(http)
            await app.service.coordinator.applier.finish()
            return answers

    return asyncio.run(live())


def test_what_is_done_in_threads_and_in_pieces_is_what_is_done_at_once(monkeypatch):
    """Audit, D2: outcomes of 1,000 x 1,000 kept the event loop for seconds."""
    once, pieces = MemoryStore(), MemoryStore()
    answers = lived(once)
    make_everything_heavy(monkeypatch)
    assert lived(pieces) == answers
    assert any(decode(line.body).rows for line in pieces.lines if b'"told"' in line.body)
    states = []
    for store in (once, pieces):
        ledger = fold(read.entry for read in store.tail({}))
        states.append([encode_counters(*key, learner) for key, learner in ledger.problems.items()])
    assert states[0] == states[1]
    assert len(pieces.saved) > 1  # snapshots were taken meanwhile


def test_events_with_rows_are_encoded_and_decoded_in_pieces_to_the_same(monkeypatch):
    rows = ((3, (0.5, -1.0, -2.0)), (0, (1.0,)))
    told = Told(7, [(1, 0, 0.5)], rows=rows)
    assert encode(told) == msgspec.json.encode(told)
    assert decode(encode(told)) == told
    warmed = Warmed(7, "id", "digest", [0, 1], [[0.5, -1.0], [1.0, 0.0]], 3)
    assert encode(warmed) == msgspec.json.encode(warmed)
    monkeypatch.setattr(event_lines, "LARGE_BYTES", 0)
    monkeypatch.setattr(piecewise, "PIECE_BYTES", 0)
    for event in (told, warmed, Told(7, [(1, 0, 0.5)]), Expired(3, 0.0)):
        assert decode(encode(event)) == event
        assert type(decode(encode(event))) is type(event)
    past = schemas.PastBody("id", ["a"], [[0.5, None], [1.0, 0.25]])
    assert _digest_past(past) == digest_request(past)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(0, 1) | st.text("ab/", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)
BODIES = [schemas.TellBody, schemas.BulkLine, schemas.PastBody, schemas.AskManyBody, schemas.ArmsBody, ProblemSpec]


@pytest.mark.parametrize("size", [0, 12])
@pytest.mark.parametrize("kind", BODIES)
@given(data=st.data())
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_body_in_pieces_is_decoded_as_at_once(monkeypatch, kind, size, data):
    monkeypatch.setattr(piecewise, "PIECE_BYTES", size)
    fields = [field.name for field in msgspec.structs.fields(kind)]
    body = msgspec.json.encode(data.draw(st.dictionaries(st.sampled_from([*fields, "unknown"]), json_values)))
    decoder = BodyDecoder(kind)
    try:
        expected = decoder.decode_at_once(body)
    except msgspec.ValidationError:
        with pytest.raises(msgspec.ValidationError):
            decoder.decode_in_pieces(body)
    else:
        assert decoder.decode_in_pieces(body) == expected


WRONG = [
    (schemas.TellBody, b'{"outcome": [[0.5], [0.5, 2.0]]}', "$.outcome[1][1]"),
    (schemas.TellBody, b'{"feedback": [{"arm": "a", "value": "much"}]}', "$.feedback[0].value"),
    (ProblemSpec, b'{"arms": ["a", 7]}', "$.arms[1]"),
    (ProblemSpec, b'{"arms": []}', "$.arms"),
    (ProblemSpec, b'{"arms": ["a"], "support": {"a": ["b", 7]}}', "$.support[...][1]"),
    (ProblemSpec, b'{"arms": ["a"], "support": {"": ["b"]}}', "`key` in `$.support`"),
    (ProblemSpec, b'{"arms": ["a"], "settings": {"policy": {"name": 1}}}', "$.settings.policy.name"),
    (ProblemSpec, b'{"arms": ["a"], "actions": {"name": "subsets", "parameters": {"k": 0}}}', "$.actions.parameters.k"),
    (ProblemSpec, b'{"arms": ["a"], "actions": {"name": "nothing"}}', "$.actions.name"),
    (ProblemSpec, b'{"arms": ["a"], "actions": {"parameters": {"k": 1}}}', "$.actions"),
    (ProblemSpec, b'{"items": ["a"]}', "arms"),
    (ProblemSpec, b'{"arms": ["a"], "arm": 1}', "arm"),
    (schemas.AskManyBody, b'{"decisions": [{"$x": 1}, {}]}', "field `$x` - at `$.decisions[0]`"),
]


@pytest.mark.parametrize(("kind", "body", "place"), WRONG)
@pytest.mark.parametrize("size", [0, 12])
def test_an_error_in_a_piece_says_where_it_is(monkeypatch, kind, body, place, size):
    monkeypatch.setattr(piecewise, "PIECE_BYTES", size)
    decoder, messages = BodyDecoder(kind), []
    for decode_body in (decoder.decode_at_once, decoder.decode_in_pieces):
        with pytest.raises(msgspec.ValidationError) as error:
            decode_body(body)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert place in messages[0]


def list_long_values() -> list[tuple[object, object]]:
    """Types, and values of them that take half a megabyte or more."""
    names = [f"a{n}" for n in range(60_000)]
    features = {name: [0.5, 0.25] for name in names}
    partition = {"groups": dict.fromkeys(names, "g"), "limits": {"g": 2}}
    spec: dict = {"arms": names, "k": 3}
    actions = {"name": "explicit", "parameters": {"batches": [names]}}
    specs = [
        spec,
        spec | {"batches": [names, names[:1]]},
        spec | {"support": {name: ["value"] for name in names}},
        spec | {"actions": actions},
        spec | {"actions": {"name": "partition", "parameters": partition}},
        spec | {"context": {"features": {"d": 2}, "arms": features}},
    ]
    made = [(ProblemSpec, each) for each in specs]
    made += [(AnyEvent, {"type": "created", "at": 0, "key": "", "spec": each}) for each in specs]
    told = [[3, [0.5] * 1_000]] * 200
    return [
        *made,
        (AnyEvent, {"type": "armed", "at": 0, "add": names, "support": [[0]] * len(names)}),
        (AnyEvent, {"type": "told", "at": 0, "units": [[1, 2, 0.5]] * 60_000, "rows": told}),
        (schemas.AskManyBody, {"decisions": [{"id": name, "eligible": names[:9]} for name in names[:9_000]]}),
        (schemas.TellBody, {"feedback": [{"arm": name * 9, "value": 1} for name in names[-10_000:]]}),
    ]


@pytest.mark.parametrize("n", range(len(list_long_values())))
def test_no_long_value_is_decoded_by_one_call(monkeypatch, n):
    """A creation with 100,000 names took one call of 50 ms and more, also each time when it was read from the log."""
    kind, value = list_long_values()[n]
    body, longest, decode_piece = msgspec.json.encode(value), 0, piecewise._decode

    def watch(decode, piece, at):
        nonlocal longest
        result = decode_piece(decode, piece, at)
        undecoded = result.values() if isinstance(result, dict) else result if isinstance(result, list) else ()
        if not type(result).__name__.startswith("Raw") and not any(isinstance(part, msgspec.Raw) for part in undecoded):
            longest = max(longest, len(memoryview(piece) if result is not None else piece))
        return result

    monkeypatch.setattr(piecewise, "_decode", watch)
    decoder = piecewise.PiecewiseDecoder(kind)
    assert decoder.decode_in_pieces(body) == decoder.decode_at_once(body)
    assert len(body) > 400_000
    assert 0 < longest < 2 * piecewise.PIECE_BYTES


@pytest.mark.parametrize("size", [0, 12])
def test_examples_are_decoded_alike(monkeypatch, size):
    from superarm.service.http.operations import OPERATIONS

    monkeypatch.setattr(piecewise, "PIECE_BYTES", size)
    for operation in OPERATIONS:
        if inspect.isclass(operation.body) and operation.body is not bytes:
            decoder, body = BodyDecoder(operation.body), msgspec.json.encode(operation.example)
            assert decoder.decode_in_pieces(body) == decoder.decode_at_once(body)


def test_in_each_turn_of_the_event_loop_one_large_request_goes_on(monkeypatch):
    """With 200 requests for 1,000 arms each, a turn lasted 200 slices: health was not answered for 20 seconds."""
    clock, longest, done = [0.0], [0.0], []
    monkeypatch.setattr(heavy.time, "perf_counter", lambda: clock[0])

    async def work(n: int) -> None:
        slices = heavy.Slices()
        for _ in range(30):
            await slices.pause_if_due()
            clock[0] += 0.001
        done.append(n)

    async def watch() -> None:
        before = clock[0]
        while len(done) < 20:
            await asyncio.sleep(0)
            longest[0], before = max(longest[0], clock[0] - before), clock[0]

    async def live() -> None:
        watching = asyncio.ensure_future(watch())
        given_up = asyncio.ensure_future(work(-1))
        tasks = [asyncio.ensure_future(work(n)) for n in range(20)]
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(*tasks)
        await watching

    asyncio.run(live())
    assert sorted(done) == list(range(20))
    assert longest[0] < 0.045  # a slice, and a first step of each


def test_long_planning_goes_on_in_the_next_turn_of_the_event_loop(monkeypatch):
    """Audit, D2: a bulk with `excluded` was planned in one turn of the event loop.

    With no time at all for a slice, every turn plans one ask, and others have their turns in between.
    """
    monkeypatch.setattr(batcher, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(applying, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(heavy, "SLICE_SECONDS", 0.0)
    turns = 0

    async def live() -> list:
        nonlocal turns
        async with serving(application(MemoryStore())) as http:
            spec = {"arms": ["a", "b", "c"], "k": 1, "settings": {"policy": {"name": "bc_ucb"}}}
            assert (await http.put("/v1/problems/p", json=spec)).status_code == 201
            body = {"decisions": [{"id": f"d{n}", "excluded": ["a"]} for n in range(200)]}
            asking = asyncio.ensure_future(http.post("/v1/problems/p/decisions/bulk", json=body))
            while not asking.done():
                await asyncio.sleep(0)
                turns += 1
            decisions = (await asking).json()["decisions"]
            lines = [{"decision": d["id"], "feedback": [{"arm": d["arms"][0], "value": 1}]} for d in decisions]
            told = await http.post(
                "/v1/feedback/bulk",
                content=b"\n".join(msgspec.json.encode(line) for line in lines),
                headers={"content-type": "application/x-ndjson"},
            )
            assert told.text.count('"applied":true') == 200
            return decisions

    decisions = asyncio.run(live())
    assert [d["id"] for d in decisions] == [f"d{n}" for n in range(200)]
    assert turns > 200


def test_what_an_arm_did_is_the_estimate_of_the_library():
    rng = np.random.default_rng(0)
    learner = ProblemState(Created(0, ProblemSpec(arms=["a", "b"], items=["x", "y", "z"]), "key"))
    for n in range(40):
        rows = [(int(rng.integers(2)), tuple(np.where(rng.random(3) < 0.3, -1.0, rng.random(3)).tolist()))]
        learner.learner.apply(join_rows(n, rows), learner.stream("coin", ""), 1.0)
    mean, variance = estimates(learner.tally, learner.problem.support)
    for j in range(2):
        row = views.arm(learner, learner.overall(), j)
        assert row.mean == mean.reshape(2, 3)[j].tolist()
        assert row.variance == variance.reshape(2, 3)[j].tolist()


def test_a_decision_never_counts_as_reserved_and_as_pending(monkeypatch):
    """Even if applying pauses after every event: the next slate would see it twice."""
    monkeypatch.setattr(applying, "SLICE_SECONDS", 0.0)
    counts = []

    async def live() -> None:
        app = application(MemoryStore())
        async with serving(app) as http:
            spec = {"arms": ["a", "b", "c"], "k": 1, "settings": {"policy": {"name": "bc_ucb"}}}
            assert (await http.put("/v1/problems/p", json=spec)).status_code == 201
            learner = await app.service.coordinator.learner("default", "p")
            body = {"decisions": [{} for _ in range(60)]}
            asking = asyncio.ensure_future(http.post("/v1/problems/p/decisions/bulk", json=body))
            while not asking.done():
                counts.append(learner.pending.sum() + len(learner.reserved))
                await asyncio.sleep(0)

    asyncio.run(live())
    assert counts == sorted(counts)
    assert counts[-1] == max(counts) <= 60


def test_whoever_waits_for_all_gates_is_not_kept_waiting():
    """Two problems whose threads overlap all the time."""

    async def live() -> int:
        gates, rounds, done = Gates(), 0, asyncio.Event()

        async def work(problem: str, first: int) -> None:
            nonlocal rounds
            for _ in range(first):
                await asyncio.sleep(0)
            while not done.is_set():
                async with gates.close(("t", problem)):
                    for _ in range(4):
                        await asyncio.sleep(0)
                rounds += 1

        async def take_all() -> None:
            async with gates.close_all():
                done.set()

        await asyncio.wait_for(asyncio.gather(work("p", 0), work("q", 2), take_all()), 10.0)
        return rounds

    assert asyncio.run(live()) < 10


def test_asks_that_wait_for_a_gate_are_looked_at_a_bounded_number_of_times(monkeypatch):
    """A thousand asks of one problem while a thread works on it: linear, not quadratic."""
    looks = 0

    async def live() -> None:
        nonlocal looks
        app = application(MemoryStore())
        async with serving(app) as http:
            spec = {"arms": ["a", "b"], "k": 1, "settings": {"policy": {"name": "bc_ucb"}}}
            assert (await http.put("/v1/problems/p", json=spec)).status_code == 201
            plain_of = QueuedAsk.plain.fget

            def look(ask: QueuedAsk) -> bool:
                nonlocal looks
                looks += 1
                return plain_of(ask)

            monkeypatch.setattr(QueuedAsk, "plain", property(look))
            coordinator = app.service.coordinator
            learner = await coordinator.learner("default", "p")
            loop = asyncio.get_running_loop()
            asks = [
                QueuedAsk("default", "p", str(n), schemas.AskBody(), "", learner, loop.create_future())
                for n in range(1000)
            ]
            async with coordinator.gates.close(("default", "p")):
                for ask in asks:
                    coordinator.batcher.add(ask)
                await asyncio.sleep(0)
                assert not any(ask.done.done() for ask in asks)
            assert all(await asyncio.gather(*(ask.done for ask in asks)))

    asyncio.run(live())
    assert looks <= 3 * 1000


def test_a_gate_lets_one_in_at_a_time():
    async def live() -> list[str]:
        gates, order = Gates(), []

        async def work(name: str, problem: str, everybody: bool = False) -> None:
            async with gates.close_all() if everybody else gates.close(("t", problem)):
                order.append(f"+{name}")
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                order.append(f"-{name}")

        await asyncio.gather(work("a", "p"), work("b", "p"), work("all", "", True), work("c", "q"))
        assert not gates.is_closed(("t", "p"))
        return order

    order = asyncio.run(live())
    inside = set()
    for mark in order:
        (inside.add if mark[0] == "+" else inside.remove)(mark[1:])
        assert not {"a", "b"} <= inside
        assert "all" not in inside or inside == {"all"}


@pytest.mark.parametrize("field", ["arms", "items"])
def test_names_are_added_in_linear_time(field):
    """Audit, D2: the set of all names was made again for each new one, so that 20,000 arms took 86 seconds."""
    reads = 0

    class Counted(list):
        def __iter__(self):
            nonlocal reads
            reads += 1
            return super().__iter__()

    async def live() -> None:
        app = application(MemoryStore())
        async with serving(app) as http:
            assert (await http.put("/v1/problems/p", json={"arms": ["a"], "items": ["x"], "k": 1})).status_code == 201
            learner = await app.service.coordinator.learner("default", "p")
            names = getattr(learner, field)
            names.all = Counted(names.all)
            added = await http.post(f"/v1/problems/p/{field}", json={"add": [f"n{j}" for j in range(300)]})
            assert added.status_code == 200

    asyncio.run(live())
    assert 0 < reads < 30


def test_a_cancellation_waits_for_the_thread():
    begun, may_end, ended = threading.Event(), threading.Event(), list[bool]()

    def work() -> None:
        begun.set()
        may_end.wait(60.0)
        ended.append(True)

    async def cancel() -> None:
        task = asyncio.create_task(heavy.run_to_end(work))
        await asyncio.to_thread(begun.wait, 60.0)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.0)
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == [True]

    asyncio.run(cancel())


def test_a_cancellation_waits_for_all_that_run():
    may_end, ended = threading.Event(), list[str]()

    async def at_once() -> None:
        await asyncio.sleep(60.0)

    async def later() -> None:
        await heavy.run_to_end(may_end.wait, 60.0)
        ended.append("later")

    async def run() -> None:
        try:
            await heavy.run_all([at_once(), later()])
        finally:
            ended.append("all")

    async def cancel() -> None:
        task = asyncio.create_task(run())
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.sleep(0.05)
        assert ended == []
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["all"]

    asyncio.run(cancel())


def test_the_first_error_ends_all_that_run():
    ended = list[str]()

    async def fail() -> None:
        raise ValueError("no")

    async def other() -> None:
        try:
            await asyncio.sleep(60.0)
        finally:
            ended.append("other")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(heavy.run_all([fail(), other()]))
    assert ended == ["other"]
