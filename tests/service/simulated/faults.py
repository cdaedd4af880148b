"""What befalls the workers and the database, drawn from a seed; at most one worker is dead at a time."""

import asyncio
import random
from typing import Any

from .world import World


class Faults:
    """Faults of some kinds, until they are cancelled."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world, self._rng = world, rng
        every = (self._kill, self._stop, self._end_session, self._outage, self._step_clock, self._tear, self._lose)
        self._kinds = rng.sample(every, rng.randint(1, len(every)))

    async def run(self) -> None:
        """One fault after the other."""
        while True:
            await asyncio.sleep(self._rng.expovariate(0.3))
            kind: Any = self._rng.choice(self._kinds)
            self._world.trace("fault", kind.__name__)
            await kind()

    def heal(self) -> None:
        """End all faults."""
        self._world.data.up, self._world.data.risk = True, 0.0
        for n, worker in enumerate(self._world.workers):
            worker.resume()
            if worker.dead:
                self._world.workers[n] = self._world.start_worker()

    async def _kill(self) -> None:
        n = self._rng.randrange(len(self._world.workers))
        self._world.workers[n].kill()
        await asyncio.sleep(self._rng.expovariate(1.0))
        self._world.workers[n] = self._world.start_worker()

    async def _stop(self) -> None:
        worker = self._rng.choice(self._world.workers)
        worker.stopped = True
        await asyncio.sleep(self._rng.choice((0.5, 4.0, 12.0)))
        self._world.data.expire()
        worker.resume()

    async def _end_session(self) -> None:
        sessions = getattr(self._world.data, "sessions", [])
        if sessions:
            self._rng.choice(sessions).end()

    async def _outage(self) -> None:
        self._world.data.up = False
        await asyncio.sleep(self._rng.expovariate(0.3))
        self._world.data.up = True

    async def _step_clock(self) -> None:
        self._world.step += self._rng.choice((-86_400.0, -10.0, 10.0, 86_400.0))

    async def _tear(self) -> None:
        self._world.data.tear()

    async def _lose(self) -> None:
        self._world.data.risk = self._rng.choice((0.02, 0.1, 0.3))
        await asyncio.sleep(self._rng.expovariate(0.3))
        self._world.data.risk = 0.0
