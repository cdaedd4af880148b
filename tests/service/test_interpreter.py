"""Garbage is collected in short passes, also where as much is freed as is made."""

import asyncio
import gc
from collections import deque
from collections.abc import Iterator

import pytest

from superarm.service import interpreter
from superarm.service.interpreter import collect_regularly

SHORT_PASS = 10_000
"""A pass over so many objects takes a few milliseconds."""


def test_new_objects_are_looked_at_where_an_old_one_is_freed_for_each(monkeypatch):
    monkeypatch.setattr(interpreter, "MAX_PASS_SECONDS", 0.0)
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


def test_passes_are_rare_while_they_are_short_and_frequent_while_they_are_long():
    period, periods = interpreter.PASS_SECONDS, []
    for seconds in [0.001] * 20 + [0.02] * 20:
        period = interpreter.adapt_period(period, seconds)
        periods.append(period)
    assert periods[19] == interpreter.MAX_PASS_SECONDS
    assert periods[-1] == interpreter.PASS_SECONDS
    assert max(periods) <= interpreter.MAX_PASS_SECONDS


def test_nothing_is_looked_at_while_a_kernel_is_compiled():
    kept = [[n] for n in range(100)]
    gc.disable()
    try:
        n_young = len(gc.get_objects(generation=0))
        asyncio.run(collect_once())
        assert len(gc.get_objects(generation=0)) >= min(n_young, len(kept))
    finally:
        gc.enable()


@pytest.fixture
def passes() -> Iterator[list[int]]:
    """How many new objects each pass of the collector has looked at, as the service sets it up."""
    seen = list[int]()

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(sum(len(gc.get_objects(generation=n)) for n in range(info["generation"] + 1)))

    gc.collect()
    gc.callbacks += [interpreter._leave_old_objects_alone, note]
    yield seen
    gc.callbacks.remove(interpreter._leave_old_objects_alone)
    gc.callbacks.remove(note)
    interpreter._Passes.left_out = False
    gc.unfreeze()


@pytest.mark.parametrize("n_made", [12_000, 49_000, 60_000])
def test_what_a_compiler_has_made_is_not_looked_at(passes, n_made):
    gc.disable()
    kept = [[n] for n in range(n_made)]
    gc.enable()
    gc.collect(0)
    assert len(kept) == n_made
    assert max(passes) < SHORT_PASS


def test_what_requests_have_made_while_a_kernel_was_compiled_is_not_looked_at(passes):
    """As many objects were freed as made, so that Python counts hardly any new ones."""
    kept = deque([[n] for n in range(60_000)], 60_000)
    gc.collect()
    gc.disable()
    for n in range(50_000):
        kept.append([n])
    asyncio.run(collect_once())
    gc.enable()
    passes.clear()
    assert gc.get_count()[0] < SHORT_PASS
    assert len(gc.get_objects(generation=0)) > 40_000
    asyncio.run(collect_once())
    assert max(passes) < SHORT_PASS


async def collect_once() -> None:
    collect_regularly(1)
