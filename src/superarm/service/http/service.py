"""What all endpoints of one process share."""

import re
from typing import NamedTuple

from superarm.core.errors import SuperarmError
from superarm.service.errors import overloaded
from superarm.service.http.auth import FAILED_KEYS_PER_SECOND, Keyring, RateLimits
from superarm.service.http.metrics import Metrics
from superarm.service.http.query import Bodies
from superarm.service.runtime.coordinator import SNAPSHOT_EVERY, Coordinator
from superarm.service.storage.base import Store


class ServiceLimits(NamedTuple):
    """The settings of a process of the service.

    Parameters
    ----------
    max_body
        The size of the largest request body.
    rate
        The average number of requests per second that a key may send; None for no limit.
    max_problems
        The number of problems that a tenant may have.
    queue
        The number of events that may wait for a commit.
    snapshot_every
        The number of events between two snapshots.
    root_path
        The path under which a proxy publishes the service; empty for none.
    compiled
        Whether the kernels of problems are compiled before their first decision.
    """

    max_body: int = 8 * 1024 * 1024
    rate: float | None = None
    max_problems: int = 1_000
    queue: int = 10_000
    snapshot_every: int = SNAPSHOT_EVERY
    root_path: str = ""
    compiled: bool = False


def check_root_path(path: str) -> str:
    """The path without a slash at its end.

    >>> check_root_path("/bandits/")
    '/bandits'
    """
    if path and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)*/?", path):
        raise SuperarmError(f"--root-path {path!r}: give a path such as /bandits, of letters, digits and . _ ~ -")
    return path.rstrip("/")


class Service:
    """The coordinator, the keys, the rate limits and the metrics of one process.

    ``failure`` says why the service could not start.
    """

    def __init__(self, store: Store, limits: ServiceLimits) -> None:
        self.store, self.limits = store, limits
        self.coordinator = Coordinator(store, limits.queue, limits.snapshot_every, limits.compiled)
        self.keyring = Keyring(store)
        self.rates = RateLimits(limits.rate)
        self.failed_keys = RateLimits(FAILED_KEYS_PER_SECOND)
        self.bodies = Bodies(limits.max_body)
        self.metrics = Metrics(self.coordinator)
        self.failure = ""

    def require_started(self) -> None:
        """Refuse with 503 what comes before the state has been read, or after it was lost."""
        condition = self.coordinator.condition
        if condition.phase in ("starting", "failed"):
            raise overloaded(f"{condition.phase}: {condition.public_reason}", 2)
