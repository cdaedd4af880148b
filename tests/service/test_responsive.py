"""While the service works on its largest requests, it answers others: the same requests as in the benchmark, smaller.

``make responsive`` sends them in full size, and fails if health had to wait for more than 250 ms.
"""

import asyncio
import time

import httpx
import pytest

from superarm.service.application import application
from superarm.service.http.service import ServiceLimits
from superarm.service.storage.sqlite import Sqlite

from .inprocess import serving
from .large_requests import GROUPS

PERIOD = 0.01


class Pulse:
    """Asks for health every 10 ms, and counts the answers."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http, self.answers, self.longest = http, 0, 0.0

    async def run(self) -> None:
        last = time.perf_counter()
        while True:
            assert (await self._http.get("/health/live")).status_code == 200
            assert (await self._http.get("/health")).status_code == 200
            now = time.perf_counter()
            self.answers, self.longest, last = self.answers + 1, max(self.longest, now - last - PERIOD), now
            await asyncio.sleep(PERIOD)


@pytest.mark.parametrize("group", GROUPS)
def test_others_are_answered_during_large_requests(tmp_path, monkeypatch, group, record_property):
    """Everything counts as large, so that it goes through threads; each gets the status that it should."""
    monkeypatch.setattr("superarm.service.runtime.coordinator.THREAD_SIZE", 0)

    async def live() -> Pulse:
        limits = ServiceLimits(snapshot_every=20)
        async with serving(application(Sqlite(tmp_path / "log.db"), limits)) as http:
            pulse = Pulse(http)
            beating = asyncio.create_task(pulse.run())
            for request in GROUPS[group](lambda n: min(n, 12)):
                json = {"content-type": "application/json"}
                reply = await http.request(request.method, request.path, content=request.content, headers=json)
                assert reply.status_code == request.status, (request.what, reply.text[:300])
                if beating.done():
                    beating.result()
            beating.cancel()
            return pulse

    pulse = asyncio.run(live())
    assert pulse.answers > 0
    record_property("longest_gap_ms", round(1000 * pulse.longest, 1))
    print(f"{group}: {pulse.answers} answers of health, longest gap {1000 * pulse.longest:.1f} ms")
