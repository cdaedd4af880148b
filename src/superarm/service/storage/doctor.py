"""What is right or wrong with a log and the state that it gives, in ten lines; nothing is changed."""

import time

from superarm.service.domain.ledger import Ledger
from superarm.service.storage.base import Finding, Store
from superarm.service.storage.snapshot import restore_ledger

LONG_TAIL = 200_000
"""So many events after the newest snapshot take a start some ten seconds: several snapshots were not written."""

OVERDUE_SECONDS, FULL = 60.0, 0.8
"""A service ends a window within seconds; a problem with this share of its ``max_pending`` may soon be full."""


def examine(store: Store) -> list[Finding]:
    """The findings of a log, which may be served meanwhile: its newest snapshots are read, and what follows them."""
    whole, lag, findings = Ledger(), 0, store.findings()
    for part in store.logs():
        ledger, _, n_read = restore_ledger(part)
        whole.include(ledger)
        lag = max(lag, n_read)
    return findings + judge(whole, lag)


def judge(ledger: Ledger, lag: int, waiting: int = 0) -> list[Finding]:
    """The findings of a state: ``lag`` events follow the newest snapshot, and ``waiting`` ones wait for a commit."""
    n_closed = len(ledger.broken)
    said = f"{len(ledger.problems)}, {n_closed} closed" + (", as superarm verify explains" if n_closed else "")
    return [
        Finding("lag", f"{lag:,} events follow the newest snapshot, {waiting:,} wait for a commit", lag > LONG_TAIL),
        Finding("problems", said, wrong=n_closed > 0),
        _judge_pending(ledger),
    ]


def _judge_pending(ledger: Ledger) -> Finding:
    now, asked = 1000 * time.time(), [record.asked for record in list(ledger.pending.values())]
    hours = (now - min((one.at for one in asked), default=now)) / 3_600_000
    overdue = sum(now > one.at + one.window_ms + 1000 * OVERDUE_SECONDS for one in asked if one.window_ms)
    limits = {key: FULL * state.settings.max_pending for key, state in list(ledger.problems.items())}
    full = sum(ledger.n_pending.get(key, 0) > limit for key, limit in limits.items())
    said = f"{len(asked):,} decisions, the oldest {hours:.1f} hours old; {overdue:,} windows are over and not ended"
    return Finding("pending", f"{said}; {full} problems are near max_pending", overdue + full > 0)
