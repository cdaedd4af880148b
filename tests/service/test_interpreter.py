"""Garbage is collected in short passes, also where as much is freed as is made."""

import asyncio
import gc
from collections import deque

from superarm.service import interpreter
from superarm.service.interpreter import collect_regularly


def test_new_objects_are_looked_at_where_an_old_one_is_freed_for_each(monkeypatch):
    monkeypatch.setattr(interpreter, "PASS_SECONDS", 0.0)
    kept = deque([[n] for n in range(60_000)], 60_000)
    gc.collect()
    for n in range(50_000):
        kept.append([n])
    assert len(gc.get_objects(generation=0)) > 40_000  # Python itself has not begun a pass

    async def live() -> list[int]:
        collect_regularly(1)
        young = [len(gc.get_objects(generation=0))]
        while len(gc.get_objects(generation=1)) > 40_000:
            await asyncio.sleep(0)
        return [*young, len(gc.get_objects(generation=2))]

    young, old = asyncio.run(live())
    assert young < 1_000
    assert old > 50_000


def test_nothing_is_looked_at_while_a_kernel_is_compiled():
    kept = [[n] for n in range(100)]
    gc.disable()
    try:
        n_young = len(gc.get_objects(generation=0))
        asyncio.run(collect_once())
        assert len(gc.get_objects(generation=0)) >= min(n_young, len(kept))
    finally:
        gc.enable()


async def collect_once() -> None:
    collect_regularly()
