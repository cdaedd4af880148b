"""Decisions chosen again, each from the state that it saw, with its own random numbers."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from superarm.service.domain.events import Asked
from superarm.service.domain.ledger import Key, Ledger, LogEntry, Recall
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import Slate, choose_slate, to_request
from superarm.service.storage.base import ReadEntry, Store
from superarm.service.storage.snapshot import begin_ledger


class Replayed(NamedTuple):
    """A decision that was chosen again, and whether that gave the logged slate."""

    key: Key
    same: bool
    slate: Slate


def replay(store: Store, draws: int = 0) -> Iterator[Replayed]:
    """All decisions of a log that is not compacted, in the order in which they were made.

    A decision saw the events up to its ``seen`` number, and those before it that were on their way to the log.
    """
    ledger, _ = begin_ledger(store)
    reads = sorted(store.tail({}), key=lambda read: read.seq)
    waiting, on_the_way = iter(reads), list[ReadEntry]()
    following = next(waiting, None)
    for read in reads:
        asked = read.entry.event
        if not isinstance(asked, Asked):
            continue
        (last,) = asked.seen.values()
        while following is not None and following.seq <= last:
            ledger.apply(following.entry)
            following = next(waiting, None)
        on_the_way = [one for one in on_the_way if one.seq > last]
        state = ledger.problems[read.entry.tenant, asked.problem]
        yield _choose_again(
            state, (read.entry.tenant, read.entry.stream), [one.entry.event for one in on_the_way], asked, draws
        )
        on_the_way.append(read)


def _choose_again(state: ProblemState, key: Key, before: list[Asked], asked: Asked, draws: int) -> Replayed:
    state.settle()
    for one in before:
        state.plan(one)
    state.claimed = asked.t - 1
    request = to_request(asked.allowed, state.problem.n_arms)._replace(unit=asked.unit)
    if state.contexts is not None:
        state.learner.contexts.clock[asked.context.segment] = asked.context.t - 1
        request = request._replace(context=state.contexts.restore(asked).encoded)
    slate = choose_slate(state, asked.id, request, draws)
    shown = asked.action if asked.policy_action is None else asked.policy_action
    return Replayed(key, slate.action == shown and len(state.versions) == asked.version, slate)


def fold(entries: Iterable[LogEntry], recall: Recall | None = None) -> Ledger:
    """The ledger of a whole log."""
    ledger = Ledger(recall)
    for entry in entries:
        ledger.apply(entry)
    return ledger
