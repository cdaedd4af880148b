"""Any order, any repetition, any partition: the same state, by a small reference model."""

import gc
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from superarm import decisions
from superarm.core.errors import SuperarmError
from superarm.decisions import (
    ALL,
    DEFAULTED,
    PENDING,
    UNSEEN,
    Expired,
    Reader,
    Reported,
    activation,
    expiry,
    read_answer,
)
from superarm.service.domain.events import Asked, Created, decode, encode
from superarm.service.domain.ledger import Ledger, LogEntry
from superarm.service.domain.spec import PolicySpec, ProblemSpec, Settings
from superarm.service.runtime.condition import Deadlines
from superarm.service.schemas import UnitBody
from superarm.service.storage.snapshot import encode_counters

from .replaying import fold

N_ARMS, N_ITEMS = 4, 2
VALUES = st.sampled_from([0.0, 0.25, 0.5, 1.0, UNSEEN])
ITEMS = st.sampled_from([0, 1, ALL, ALL])


def feedback(state, record, units, amend, settings, at):
    """The event of feedback that is given in units, by numbers."""
    arms, items = state.arms.all, [*state.items.all, None]
    named = [UnitBody(arms[j], items[i], None if x == UNSEEN else x, x != UNSEEN) for j, i, x in units]
    told = read_answer(Reader(state.problem, state.arms, state.items), record, Reported(units=named))
    return decisions.feedback(record, told, amend=amend, learn_late=settings.late == "learn", whole=False, at=at)


def feedback_to(ledger, id, units):
    return feedback(ledger.problems["t", "p"], ledger.pending["t", id], units, False, Settings(), 0)


def fill_of(settings):
    return None if settings.at_window_end == "ignore" else settings.at_window_end


def created(policy: str = "bc_ucb", **settings_) -> Created:
    spec = ProblemSpec(
        arms=[f"a{j}" for j in range(N_ARMS)],
        items=["x", "y"],
        k=2,
        settings=Settings(policy=PolicySpec(policy), **settings_),
    )
    return Created(0, spec, "key")


def test_a_collection_does_not_walk_through_pending_decisions():
    """With a million of them, requests waited for a second, it was thought for the garbage collector."""
    ledger, deadlines = Ledger(), Deadlines()
    ledger.apply(LogEntry("t", "problem", "p", 0, created()))

    def n_tracked() -> int:
        gc.collect()
        return len(gc.get_objects())

    def decide(first: int, last: int) -> None:
        for n in range(first, last):
            asked = Asked(n, "p", f"d{n}", "", n, (0, 1), 2, 1, 60_000, propensities=(1.0, 0.5), seen={"": n})
            ledger.apply(LogEntry("t", "decision", f"p/d{n}", 0, decode(encode(asked))))
            deadlines.watch(("t", f"p/d{n}"), ledger.pending["t", f"p/d{n}"])

    decide(0, 10)
    before = n_tracked()
    decide(10, 3_000)
    assert len(ledger.pending) == 3_000
    assert n_tracked() < before + 300


class Model:
    """A decision as plain dicts: what is known of each entry, and why."""

    def __init__(self, action: tuple[int, ...], deferred: bool) -> None:
        self.entries = {(arm, item): None for arm in action for item in range(N_ITEMS)}
        self.filled: set[tuple[int, int]] = set()
        self.late: dict[tuple[int, int], float] = {}
        self.smaller: dict[tuple[int, int], set[float]] = {entry: set() for entry in self.entries}
        self.active, self.expired = not deferred, False

    def spread(self, units):
        return {(arm, i): value for arm, item, value in units for i in (range(N_ITEMS) if item == ALL else [item])}

    def tell(self, units, amend: bool, learn_late: bool) -> bool | None:
        """True if something is new, False if all was known, None for a conflict.

        A larger value is new, and one that was told before a larger one is known.
        """
        new, known = {}, set()
        for entry, value in self.spread(units).items():
            is_open = self.entries[entry] is None or entry in self.filled
            late = self.expired and is_open
            stands = (None if learn_late and self.late.get(entry) == value else self.late.get(entry)) if late else None
            stands = stands if late else self.entries[entry]
            if stands is not None and stands != value and not amend:
                if value in self.smaller[entry]:
                    known.add(entry)
                    continue
                if not 0.0 <= stands < value:
                    return None
            if stands is None or stands != value:
                new[entry] = late
        if not new:
            return False
        for entry, value in self.spread(units).items():
            is_open = self.entries[entry] is None or entry in self.filled
            before = None if is_open else self.entries[entry]
            if entry in known:
                continue
            if self.expired and is_open and not learn_late:
                before, self.late[entry] = self.late.get(entry), value
            else:
                self.entries[entry] = value
                self.filled.discard(entry)
            if before is not None and 0.0 <= before < value:
                self.smaller[entry].add(before)
        return True

    def expire(self, fill: float | None) -> None:
        if self.closed:
            return
        self.expired = True
        if fill is not None and self.active:
            for entry, value in self.entries.items():
                if value is None:
                    self.entries[entry] = fill
                    self.filled.add(entry)

    @property
    def closed(self) -> bool:
        return self.expired or (self.active and all(v is not None for v in self.entries.values()))

    def counted(self):
        """Entries of arms of which anything was seen."""
        if not self.active:
            return
        known = {arm for (arm, _), value in self.entries.items() if value is not None and value != UNSEEN}
        yield from ((arm, item, self.entries[arm, item]) for arm, item in self.entries if arm in known)


def totals(models):
    pulls = np.zeros(N_ARMS)
    seen = np.zeros((N_ARMS, N_ITEMS))
    sums = [[Fraction(0)] * N_ITEMS for _ in range(N_ARMS)]
    for model in models:
        for arm, item, value in model.counted():
            pulls[arm] += item == 0
            if value is not None and value != UNSEEN:
                seen[arm, item] += 1
                sums[arm][item] += Fraction(value)
    return pulls, seen, sums


class Feedback(RuleBasedStateMachine):
    """The ledger against the model, event by event; and the fold of the log against the ledger."""

    @initialize(late=st.sampled_from(["ignore", "learn"]), fill=st.sampled_from([0.0, 0.5, "ignore"]))
    def begin(self, late, fill):
        self.ledger, self.log, self.models = Ledger(), [], {}
        event = created(late=late, at_window_end=fill)
        self.settings = event.spec.settings
        self.write("problem", "p", 0, event)

    def write(self, kind, stream, step, event):
        entry = LogEntry("t", kind, stream, step, decode(encode(event)))
        self.log.append(entry)
        self.ledger.apply(entry)

    @rule(deferred=st.booleans(), first=st.integers(0, N_ARMS - 1), gap=st.integers(1, N_ARMS - 1))
    def ask(self, deferred, first, gap):
        if len(self.models) >= 2:
            return
        id, action = f"d{len(self.models)}", (first, (first + gap) % N_ARMS)
        self.models[id] = Model(action, deferred)
        t = len(self.models)
        self.write("decision", id, 0, Asked(0, "p", id, "", t, action, N_ITEMS, 1, deferred=deferred))

    def pick(self, which):
        id = f"d{which % len(self.models)}"
        return id, self.models[id], self.ledger.record(("t", id))

    @rule(
        which=st.integers(0, 5),
        units=st.lists(st.tuples(st.integers(0, 1), ITEMS, VALUES), min_size=1, max_size=3),
        amend=st.booleans(),
        times=st.integers(1, 2),
    )
    def tell(self, which, units, amend, times):
        if not self.models:
            return
        id, model, record = self.pick(which)
        given_ = [(record.action[place], item, value) for place, item, value in units]
        flat = [(a, i, v) for a, item, v in given_ for i in (range(N_ITEMS) if item == ALL else [item])]
        contradictory = len({(a, i) for a, i, _ in flat}) < len(set(flat))
        for _ in range(times):
            record = self.ledger.record(("t", id))
            try:
                event = feedback(self.ledger.problems["t", "p"], record, given_, amend, self.settings, 0)
            except SuperarmError:
                assert contradictory or model.tell(given_, amend, self.settings.late == "learn") is None
                return
            assert not contradictory
            expected = model.tell(given_, amend, self.settings.late == "learn")
            assert expected is (event is not None)
            if event is not None:
                self.write("decision", id, record.step + 1, event)

    @rule(which=st.integers(0, 5))
    def activate(self, which):
        if self.models:
            id, model, record = self.pick(which)
            if model.expired and not model.active:
                return
            event = activation(record, None, 0)
            assert (event is None) == model.active
            model.active = True
            if event is not None:
                self.write("decision", id, record.step + 1, event)

    @rule(which=st.integers(0, 5))
    def expire(self, which):
        if self.models:
            id, model, record = self.pick(which)
            event = expiry(record, fill_of(self.settings), 0)
            assert (event is None) == model.closed
            if event is not None:
                model.expire(event.fill)
                self.write("decision", id, record.step + 1, event)

    @invariant()
    def the_counters_are_the_models(self):
        if not getattr(self, "log", None):
            return
        learner = self.ledger.problems["t", "p"]
        pulls, seen, sums = totals(self.models.values())
        assert learner.tally.pulls[0].tolist() == pulls.tolist()
        counts = np.broadcast_to(learner.tally.counts(learner.tally.pulls), learner.tally.total.shape)
        assert counts[0].T.tolist() == seen.tolist()
        assert learner.tally.total[0].T.tolist() == [[float(total) for total in row] for row in sums]
        pending = sum(
            len({a for a, _ in m.entries} - {a for (a, _), v in m.entries.items() if v is not None})
            for m in self.models.values()
            if not m.closed
        )
        assert learner.learner.pending.sum() == pending
        assert len(self.ledger.pending) == sum(not m.closed for m in self.models.values())

    def teardown(self):
        if getattr(self, "log", None):
            assert state(fold(self.log)) == state(self.ledger)


def state(ledger: Ledger):
    learner = ledger.problems["t", "p"]
    return encode_counters("t", "p", learner), {key: record.step for key, record in ledger.pending.items()}


TestFeedback = Feedback.TestCase
TestFeedback.settings = settings(
    max_examples=100, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)


@st.composite
def streams(draw):
    """Feedback of some decisions, entry by entry; no two contradict each other."""
    values = {}
    for d in range(3):
        for place in range(2):
            for item in range(N_ITEMS):
                if draw(st.booleans()):
                    values[d, place, item] = draw(VALUES)
    pieces = [[entry] for entry in values for _ in range(draw(st.integers(1, 2)))]
    order = draw(st.permutations(pieces))
    glued = []
    for piece in order:
        if glued and draw(st.booleans()) and glued[-1][0][0] == piece[0][0]:
            glued[-1] = glued[-1] + piece
        else:
            glued.append(list(piece))
    return values, glued


@settings(max_examples=100, deadline=None)
@given(streams(), st.sampled_from(["bc_ucb", "cts"]), st.integers(0, 2))
def test_permutation_duplication_and_partition_give_the_same_state(stream, policy, expired):
    values, pieces = stream
    straight, shuffled = _asked(policy), _asked(policy)
    for entry in values:
        _tell(straight, [entry], values)
    for piece in pieces:
        _tell(shuffled, piece, values)
    for ledger in (straight, shuffled):
        key = ("t", f"d{expired}")
        if key in ledger.pending:
            step = ledger.pending[key].step + 1
            ledger.apply(LogEntry("t", "decision", key[1], step, Expired(0, 0.5)))
    assert encode_counters("t", "p", straight.problems["t", "p"]) == encode_counters(
        "t", "p", shuffled.problems["t", "p"]
    )
    assert {k: r.rows for k, r in straight.pending.items()} == {k: r.rows for k, r in shuffled.pending.items()}


def _asked(policy: str) -> Ledger:
    ledger = Ledger()
    ledger.apply(LogEntry("t", "problem", "p", 0, created(policy)))
    for d in range(3):
        action = (d, (d + 1) % N_ARMS)
        ledger.apply(LogEntry("t", "decision", f"d{d}", 0, Asked(0, "p", f"d{d}", "", d + 1, action, N_ITEMS, 1)))
    return ledger


def _tell(ledger: Ledger, piece, values) -> None:
    d = piece[0][0]
    record = ledger.record(("t", f"d{d}"))
    units = [(record.action[place], item, values[d, place, item]) for _, place, item in piece]
    event = feedback(ledger.problems["t", "p"], record, units, False, Settings(), 0)
    if event is not None:
        ledger.apply(LogEntry("t", "decision", f"d{d}", record.step + 1, event))


def test_the_end_of_a_window_marks_what_it_filled():
    ledger = _asked("bc_ucb")
    ledger.apply(
        LogEntry(
            "t",
            "decision",
            "d0",
            1,
            feedback_to(ledger, "d0", [(0, 0, 1.0)]),
        )
    )
    assert ledger.pending["t", "d0"].rows == ((1.0, PENDING), None)
    ledger.apply(LogEntry("t", "decision", "d0", 2, Expired(0, 0.0)))
    assert ledger.closed["t", "d0"].rows == ((1.0, DEFAULTED), (DEFAULTED, DEFAULTED))


def test_events_that_come_out_of_order_from_workers_are_recalled():
    """A later step of a decision may be applied first: the counters come out the same."""
    straight = _asked("bc_ucb")
    first = feedback_to(straight, "d0", [(0, ALL, 1.0)])
    steps = [LogEntry("t", "decision", "d0", 1, first)]
    straight.apply(steps[0])
    second = feedback_to(straight, "d0", [(1, ALL, 0.5)])
    steps.append(LogEntry("t", "decision", "d0", 2, second))
    middle = straight.pending["t", "d0"]
    straight.apply(steps[1])
    crossed = _asked("bc_ucb")
    initial = crossed.pending["t", "d0"]
    crossed._recall = lambda key, step: {1: initial, 2: middle}[step]
    crossed.apply(steps[1])
    crossed.apply(steps[0])
    assert encode_counters("t", "p", crossed.problems["t", "p"]) == encode_counters(
        "t", "p", straight.problems["t", "p"]
    )
    assert crossed.closed["t", "d0"].step == 2
    assert ("t", "d0") not in crossed.pending


def test_a_deferred_decision_stays_open_however_much_is_told():
    ledger = _asked("bc_ucb")
    deferred = Asked(0, "p", "late", "", 4, (0, 1), N_ITEMS, 1, deferred=True)
    ledger.apply(LogEntry("t", "decision", "late", 0, deferred))
    told = feedback(
        ledger.problems["t", "p"], ledger.pending["t", "late"], [(0, ALL, 1.0), (1, ALL, 1.0)], False, Settings(), 0
    )
    ledger.apply(LogEntry("t", "decision", "late", 1, told))
    assert ledger.pending["t", "late"].closed == ""
    assert ledger.problems["t", "p"].tally.pulls.sum() == 0.0
    ledger.apply(LogEntry("t", "decision", "late", 2, activation(ledger.pending["t", "late"], None, 0)))
    assert ledger.closed["t", "late"].closed == "complete"
    assert ledger.problems["t", "p"].tally.pulls.sum() == 2.0
