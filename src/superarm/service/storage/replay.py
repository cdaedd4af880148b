"""Decisions chosen again, each from the state that it saw, to learn afterwards how likely its arms were.

The state that a decision saw is that of the events up to its ``seen`` numbers, with the slates of its own worker's
decisions that were on their way to the log. The choice is repeated with the decision's own random numbers; if it gives
the logged slate, the state is the right one.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from superarm.service.domain.decision import open_record
from superarm.service.domain.events import Asked
from superarm.service.domain.ledger import Key
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import TargetPolicy, choose_slate, inclusion_by, to_request
from superarm.service.errors import RequestError
from superarm.service.storage.base import FormerPlaces, Position, ReadEntry, Store
from superarm.service.storage.snapshot import begin_ledger


class Inclusion(NamedTuple):
    """The chance of each arm of a slate to be in it; None without chance. ``draws`` is 0 if it is exact."""

    chances: tuple[float, ...] | None
    draws: int


class Replayed(NamedTuple):
    """A decision that was chosen again.

    ``same`` tells whether that gave the logged slate; None if it was not tried, because the log does not tell what the
    decision saw (by an earlier version, or moved by one), or features of pairs are not stored. ``own`` is the inclusion
    of its arms, ``target`` that by another policy, which is not known for decisions with a context.
    """

    key: Key
    same: bool | None
    own: Inclusion | None = None
    target: tuple[float, ...] | None = None


class _ReplayedState:
    """What one worker had seen of one problem: the log of the problem, applied step by step."""

    def __init__(self, store: Store, reads: list[ReadEntry]) -> None:
        self.ledger, _ = begin_ledger(store)
        self._waiting: dict[str, list[tuple[int, ReadEntry]]] = defaultdict(list)  # by worker, the next one last
        for rank, read in enumerate(reads):
            self._waiting[read.worker].append((rank, read))
        for waiting in self._waiting.values():
            waiting.sort(key=lambda pair: -pair[1].seq)

    def knows(self, seen: Position) -> bool:
        """Whether the log has events of some worker in ``seen``; not so if events were moved and that was not noted."""
        return any(worker in self._waiting for worker in seen)

    def advance(self, seen: Position) -> None:
        """Apply what is not applied yet up to the numbers in ``seen``, in the order in which the log is read.

        Whoever has the log of a problem has seen everything that was moved there.
        """
        due, moved = list[tuple[int, ReadEntry]](), any(worker.startswith("p/") for worker in seen)
        for worker, waiting in self._waiting.items():
            last = math.inf if moved and not worker.startswith("p/") else seen.get(worker, 0)
            while waiting and waiting[-1][1].seq <= last:
                due.append(waiting.pop())
        for _, read in sorted(due, key=lambda pair: pair[0]):
            self.ledger.apply(read.entry)


def replay(
    store: Store, tenant: str | None, problem: str | None, draws: int, target: TargetPolicy | None = None
) -> Iterator[Replayed]:
    """All decisions of the log, chosen again; how likely ``target`` shows their arms is counted, too.

    The events of the problems that are asked for are held in memory.
    """
    former, (_, begin) = store.former_places(), begin_ledger(store)
    for (owner, name), found in _by_problem(store).items():
        if (tenant, problem) == (tenant and owner, problem and name):
            later = [read for read in found if read.seq > begin.get(read.worker, 0)]
            for read in found:  # the base of a compacted log holds them: what they saw is not known
                if isinstance(read.entry.event, Asked) and read.seq <= begin.get(read.worker, 0):
                    yield Replayed((owner, read.entry.stream), None)
            reads = [read._replace(**_place(former, read)) for read in later]
            for worker in sorted({read.worker for read in reads if isinstance(read.entry.event, Asked)}):
                yield from _of_worker(store, reads, worker, draws, target)


def _place(former: FormerPlaces, read: ReadEntry) -> dict[str, Any]:
    """Where an event was when it was written: decisions name what they saw by that."""
    worker, seq = former.get((read.worker, read.seq), (read.worker, read.seq))
    return {"worker": worker, "seq": seq}


def _by_problem(store: Store) -> dict[Key, list[ReadEntry]]:
    logs: dict[Key, list[ReadEntry]] = defaultdict(list)
    problems: dict[Key, str] = {}
    for read in store.tail({}):
        entry = read.entry
        key = (entry.tenant, entry.stream)
        if isinstance(entry.event, Asked):
            problems[key] = entry.event.problem
        name = entry.stream if entry.kind == "problem" else problems[key]
        logs[entry.tenant, name].append(read)
    return logs


def _of_worker(
    store: Store, reads: list[ReadEntry], worker: str, draws: int, target: TargetPolicy | None
) -> Iterator[Replayed]:
    view = _ReplayedState(store, reads)
    own = [read for read in reads if read.worker == worker and isinstance(read.entry.event, Asked)]
    on_the_way = list[ReadEntry]()
    for read in sorted(own, key=lambda read: read.seq):
        asked: Asked = read.entry.event
        key = (read.entry.tenant, asked.id)
        if asked.seen is None or asked.allowed is None or not view.knows(asked.seen):
            yield Replayed(key, None)
            continue
        view.advance(asked.seen)
        applied = asked.seen.get(worker, 0)
        on_the_way = [one for one in on_the_way if one.seq > applied]
        if not view.ledger.serves(key[0], open_record(asked)):
            yield Replayed(key, None)  # its problem was deleted while it was on its way to the log
            continue
        state = view.ledger.problems[key[0], asked.problem]
        _replace_reserved(state, [one.entry.event for one in on_the_way], asked)
        yield _choose_again(state, key, asked, draws, target)
        on_the_way.append(read)


def _replace_reserved(state: ProblemState, reserved: list[Asked], asked: Asked) -> None:
    """Let these decisions be on their way to the log, as they were when ``asked`` was chosen."""
    state.settle()
    for one in reserved:
        state.plan(one)
    state.claimed = asked.t - 1
    if state.contexts is not None and asked.context is not None:
        state.contexts.claim(asked.context.segment, asked.context.t - 1)


def _choose_again(state: ProblemState, key: Key, asked: Asked, draws: int, target: TargetPolicy | None) -> Replayed:
    assert asked.allowed is not None
    request = to_request(asked.allowed, state.problem.n_arms)
    if state.contexts is not None:
        if asked.context is None or asked.context.pairs:
            return Replayed(key, None)  # the features of pairs are stored for the arms that were shown alone
        request = request._replace(context=state.contexts.restore(asked).encoded)
        target = None
    shown = asked.action if asked.policy_action is None else asked.policy_action
    try:
        slate = choose_slate(state, asked.id, request, draws)
    except RequestError:
        return Replayed(key, False)
    same = slate.action == shown and len(state.versions) == asked.version
    own = Inclusion(slate.inclusion, slate.draws) if same and asked.policy_action is None else None
    other = None if target is None else inclusion_by(state, target, asked.id, request, asked.action)
    return Replayed(key, same, own, other)
