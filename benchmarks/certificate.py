"""What a certificate of convergence takes, and whether it keeps the event loop waiting.

    python -m benchmarks.certificate [--sizes 100x20 2000x100 10000x100]

The counters are as 60 pulls of every arm leave them. The certificate is computed as the service does it, in a thread,
while the event loop wakes up every 2 ms; the longest time between two wakings is printed beside that of an idle loop
that lasts as long. The first certificate of each size compiles, and is left out.
"""

import argparse
import asyncio
import time

import numpy as np

from superarm.service.domain.events import Created
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.spec import ProblemSpec
from superarm.service.runtime.certifying import Certifier
from superarm.service.runtime.gates import Gates

K, PULLS, TICK = 10, 60, 0.002


def make_problem(n_arms: int, n_items: int) -> ProblemState:
    """A problem in which every arm was pulled ``PULLS`` times."""
    arms, items = [f"a{j}" for j in range(n_arms)], [f"i{i}" for i in range(n_items)]
    state = ProblemState(Created(0, ProblemSpec(arms=arms, items=items, k=K), "key"))
    rng, tally = np.random.default_rng(0), state.tally
    tally.pulls[:] = PULLS
    tally.total[:] = tally.square[:] = rng.binomial(PULLS, rng.uniform(0.0, 0.2, n_arms * n_items))
    return state


async def longest_gap(stop: asyncio.Event) -> float:
    """The longest time between two wakings of the event loop until ``stop``, in milliseconds."""
    last, most = time.perf_counter(), 0.0
    while not stop.is_set():
        await asyncio.sleep(TICK)
        now = time.perf_counter()
        most, last = max(most, now - last), now
    return 1000.0 * most


async def measure(n_arms: int, n_items: int) -> None:
    """Print the figures of one size."""
    state, certifier = make_problem(n_arms, n_items), Certifier(Gates())
    first = await certifier.certify(("t", "p"), state, None, 0.05)
    if isinstance(first, str):
        print(f"{n_arms} x {n_items}: no certificate: {first}")
        return
    stop = asyncio.Event()
    watch = asyncio.create_task(longest_gap(stop))
    await asyncio.sleep(TICK)
    began, used = time.perf_counter(), time.process_time()
    await certifier.certify(("t", "p"), state, None, 0.05)
    took, used = time.perf_counter() - began, time.process_time() - used
    stop.set()
    gap = await watch
    idle = asyncio.Event()
    watch = asyncio.create_task(longest_gap(idle))
    await asyncio.sleep(min(took, 5.0))
    idle.set()
    said = f"{n_arms} x {n_items}, slates of {K}: {took:.2f} s ({used:.2f} s of processor time)"
    print(f"{said}, longest gap {gap:.1f} ms, idle {await watch:.1f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=["100x20", "2000x100", "10000x100"])
    for size in parser.parse_args().sizes:
        n_arms, n_items = map(int, size.split("x"))
        asyncio.run(measure(n_arms, n_items))


if __name__ == "__main__":
    main()
