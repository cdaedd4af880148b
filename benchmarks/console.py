"""How long a view of the console keeps the event loop waiting.

    python -m benchmarks.console [--sizes 100x20 10000x100] [--views 5]

A problem whose arms were all pulled is served in this process, without sockets. Each page is asked for several times
while the event loop wakes up every 2 ms; the longest time between two wakings is printed beside that of an idle loop.
The first view of each page is left out: it compiles.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path

import httpx
import numpy as np

from benchmarks.certificate import longest_gap
from superarm.service.application import application
from superarm.service.domain.problem import ProblemState
from superarm.service.storage.sqlite import Sqlite

PAGES = ("/?problem=p", "/?problem=p&sort=pulls&page=3", "/?problem=p&find=99", "/arm?problem=p&arm=a7", "/problems")
PULLS = 60
IDLE_SECONDS = 1.0


def fill(state: ProblemState) -> None:
    """Let every arm have been pulled."""
    rng, tally = np.random.default_rng(0), state.tally
    tally.pulls[:] = PULLS
    tally.total[:] = tally.square[:] = rng.binomial(PULLS, rng.uniform(0.0, 0.2, len(tally.total)))


async def gap_during(work: Awaitable[object]) -> float:
    """The longest gap of the event loop, in milliseconds, while a coroutine runs."""
    stop = asyncio.Event()
    watch = asyncio.create_task(longest_gap(stop))
    await asyncio.sleep(0.01)
    await work
    stop.set()
    return await watch


async def measure(n_arms: int, n_items: int, n_views: int) -> None:
    """Print the figures of one size."""
    with tempfile.TemporaryDirectory() as directory:
        app = application(Sqlite(Path(directory) / "log.db"))
        await app.service.coordinator.start()
        await asyncio.to_thread(app.service.keyring.read)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=600.0) as http:
            spec = {"arms": [f"a{j}" for j in range(n_arms)], "items": [f"i{i}" for i in range(n_items)], "k": 10}
            (await http.put("/v1/problems/p", json=spec)).raise_for_status()
            (await http.post("/v1/problems/p/decisions", json={})).raise_for_status()
            fill(app.service.coordinator.ledger.problems["default", "p"])
            for page in PAGES:
                (await http.get(page)).raise_for_status()
                began = time.perf_counter()
                gaps = [await gap_during(http.get(page)) for _ in range(n_views)]
                took = (time.perf_counter() - began) / n_views
                size = len((await http.get(page)).content)
                print(
                    f"{n_arms} x {n_items} {page}: longest gap {max(gaps):.1f} ms, median {np.median(gaps):.1f} ms, "
                    f"{1000.0 * took:.0f} ms and {size / 1024:.0f} kB per view"
                )
        print(f"{n_arms} x {n_items} idle: longest gap {await gap_during(asyncio.sleep(IDLE_SECONDS)):.1f} ms")
        await app.service.coordinator.stop()


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["100x20", "10000x100"])
    parser.add_argument("--views", type=int, default=5)
    given = parser.parse_args()
    for size in given.sizes:
        n_arms, n_items = map(int, size.split("x"))
        asyncio.run(measure(n_arms, n_items, given.views))


if __name__ == "__main__":
    main()
