"""Turns of the interpreter between threads."""

import time

TURN_SECONDS = 5e-5
"""Long enough for a thread that waits for the interpreter to wake up and take it."""


def give_turn() -> None:
    """Let a thread that waits for the interpreter have it.

    Compiled kernels release the interpreter and take it again within microseconds, before another thread has woken up.
    A loop over short kernels in a thread would therefore keep the event loop waiting until it ends.
    """
    time.sleep(TURN_SECONDS)
