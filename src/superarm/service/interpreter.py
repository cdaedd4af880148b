"""How the process of a service collects garbage, and how its threads take turns."""

import asyncio
import gc
import sys
import time

MAX_NEW_OBJECTS = 10_000
"""So many objects without a pass of the garbage collector come from numba, which keeps what it makes.

Twice as many as Python waits for. A pass over 50,000 objects of a compiler was seen to take 25 ms and more.
"""

PASS_SECONDS = 0.02
"""How often new objects are looked at where there are many."""

MAX_PASS_SECONDS = 0.1
"""How often they are looked at where there are few: a pass looks also at what belongs to requests under way."""

LONG_PASS_SECONDS = 0.004
"""A pass that takes longer had many objects to look at."""

PASSES_PER_SECOND_PASS = 5
"""Every so many passes look also at what earlier ones have left."""


TURN_SECONDS = 5e-5
"""Long enough for a thread that waits for the interpreter to wake up and take it."""


def tune_interpreter() -> None:
    """Collect garbage in short passes, and not among what is old; let the event loop wait little for threads.

    Requests create hardly any reference cycles. A pass looks at 5,000 objects, or at 100,000; all of those that came
    since the last such pass are looked at only after 10,000 of these, and are then left alone for good. So is what came
    while a kernel was compiled, without any pass. A thread that works on a large request gives the interpreter to the
    event loop after a millisecond, not five.
    """
    gc.freeze()
    gc.set_threshold(5_000, 20, 10_000)
    gc.callbacks.append(_leave_old_objects_alone)
    sys.setswitchinterval(0.001)


class _Passes:
    """What is known of passes of the garbage collector: whether one was left out since the last."""

    left_out = False


def _leave_old_objects_alone(phase: str, info: dict[str, int]) -> None:
    """Before a pass over very many new objects, or after one over all, do not look at any of them again."""
    many = phase == "start" and (_Passes.left_out or gc.get_count()[0] > MAX_NEW_OBJECTS)
    if many or (phase == "stop" and info["generation"] == 2):
        gc.freeze()
        _Passes.left_out = False


def collect_regularly(n: int = 0, period: float = PASS_SECONDS) -> None:
    """Look at new objects, now and every 20 to 100 ms, as long as the event loop runs.

    Python begins a pass when 5,000 more objects were made than freed. A service that forgets an old decision for every
    new one frees as many as it makes: new objects would pile up, and a pass over some hundred thousand of them would
    stop everything for a tenth of a second. They do pile up while a kernel is compiled; it is noted that there were no
    passes, since Python's count of new objects, less those freed, does not tell.
    """
    if gc.isenabled():
        began = time.perf_counter()
        gc.collect(0 if n % PASSES_PER_SECOND_PASS else 1)
        period = adapt_period(period, time.perf_counter() - began)
    else:
        _Passes.left_out = True
    asyncio.get_running_loop().call_later(period, collect_regularly, n + 1, period)


def adapt_period(period: float, seconds: float) -> float:
    """The time until the next pass, after one that took so long: shorter if it was long, and longer if it was not.

    >>> adapt_period(0.1, 0.02)
    0.05
    >>> adapt_period(0.08, 0.001)
    0.1
    """
    if seconds > LONG_PASS_SECONDS:
        return max(PASS_SECONDS, period / 2)
    return min(MAX_PASS_SECONDS, period * 1.25)


def give_turn() -> None:
    """Let a thread that waits for the interpreter have it.

    Compiled kernels release the interpreter and take it again within microseconds, before another thread has woken up.
    A loop over short kernels in a thread could therefore keep the event loop waiting; how long was not measured.
    """
    time.sleep(TURN_SECONDS)
