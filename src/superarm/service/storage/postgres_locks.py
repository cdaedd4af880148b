"""Advisory locks of PostgreSQL. A session holds them until it ends, and PostgreSQL releases them when it has ended.

What a session commits is committed while it holds its locks: whoever gets a lock afterwards sees all of it, and the
former holder can commit nothing any more.
"""

import hashlib
import time
from typing import Any, Literal

from superarm.core.errors import SuperarmError

MAX_WORKERS = 256
CLASS = 0x5A5A
"""The class of superarm's locks: the slots 0 to ``MAX_WORKERS`` - 1, and those below 0 that follow."""

MIGRATION = -1
MODES = {"whole": -2, "sharded": -3}
Mode = Literal["whole", "sharded"]
N_TRIES = 10
"""A session that was closed a moment ago may not have ended yet: for a second, its lock is tried again."""


def take_slot(connection: Any, before: str) -> str | None:
    """Lock the slot of a worker's name, or else the first that is free: the name; None if all are in use."""
    own = [int(before[1:])] if before else []
    for number in [*own, *range(MAX_WORKERS)]:
        if connection.execute("SELECT pg_try_advisory_lock(%s, %s)", (CLASS, number)).fetchone()[0]:
            name = f"w{number}"
            connection.execute("INSERT INTO superarm_workers VALUES (%s) ON CONFLICT DO NOTHING", (name,))
            return name
    return None


def enter_mode(connection: Any, mode: Mode) -> None:
    """Let no worker of the other mode start as long as this session lives; refuse if there is one.

    Workers that serve everything would not be noticed by workers that read only what they own.
    """
    (other,) = (number for name, number in MODES.items() if name != mode)
    connection.execute("SELECT pg_advisory_lock_shared(%s, %s)", (CLASS, MODES[mode]))
    for _ in range(N_TRIES):
        if connection.execute("SELECT pg_try_advisory_lock(%s, %s)", (CLASS, other)).fetchone()[0]:
            connection.execute("SELECT pg_advisory_unlock(%s, %s)", (CLASS, other))
            return
        time.sleep(0.1)
    raise SuperarmError("--sharded: workers with and without it cannot use one database at the same time")


def lock_number(log: str) -> int:
    """The number of the lock of a problem's log: 64 bits of a hash of its name.

    Two logs with one number could not have two owners. Among a million problems there is such a pair with a
    probability of 3e-8.

    >>> lock_number("p/default/ads") == lock_number("p/default/ads") != lock_number("p/default/news")
    True
    """
    return int.from_bytes(hashlib.sha256(log.encode()).digest()[:8], "big", signed=True)
