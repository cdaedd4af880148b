"""An event loop whose clock is a number, and threads that run in it at times drawn from a seed.

Callbacks run in the order of their times, those of one time in the order in which they came. What a thread does is done
at one instant; it begins some time after it was asked for, and what it reports comes some time after that. Every
callback belongs to the worker in whose context it was asked for: those of a stopped worker wait until it goes on.
"""

import asyncio
import contextvars
import heapq
import random
from collections import deque
from collections.abc import Callable
from typing import Any

WORKER: contextvars.ContextVar[Any] = contextvars.ContextVar("worker", default=None)
"""The worker that runs; None for clients and faults."""


class Callback:
    """A function that will be called, unless it is cancelled."""

    def __init__(self, when: float, function: Callable[..., Any], args: Any, context: Any) -> None:
        self._when, self.function, self.args = when, function, args
        self.context = contextvars.copy_context() if context is None else context

    def when(self) -> float:
        """The time at which it is due."""
        return self._when

    def cancel(self) -> None:
        """Do not call it."""
        self.function, self.args = None, ()

    def cancelled(self) -> bool:
        """Whether it will not be called."""
        return self.function is None


class Loop(asyncio.AbstractEventLoop):
    """The event loop; ``failures`` are the errors that nobody awaited."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.now, self.failures = rng, 0.0, list[dict[str, Any]]()
        self._due: list[tuple[float, int, Callback]] = []
        self._count, self._running, self.in_thread = 0, False, False
        self.tasks: dict[Any, list[asyncio.Task[Any]]] = {}

    # --- what asyncio asks of a loop ---

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
        handle = Callback(max(when, self.now), callback, args, context)
        self._push(handle.when(), handle)
        return handle

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Any:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
        return self.call_at(self.now, callback, *args, context=context)

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> Any:
        return self.call_soon(callback, *args, context=context)

    def create_future(self) -> Any:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None) -> Any:
        task = asyncio.Task(coro, loop=self, name=name or "task", context=context)
        worker = WORKER.get() if context is None else context.get(WORKER)
        self.tasks.setdefault(worker, []).append(task)
        return task

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        done = self.create_future()

        def run() -> None:
            report, result = self.in_a_thread(func, *args)
            self.call_later(self.pause(), report, done, result)

        self.call_later(self.pause(), run)
        return done

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.failures.append(context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return False

    # --- how it runs ---

    def pause(self) -> float:
        """How long something takes that others do: mostly milliseconds, sometimes seconds."""
        return self.rng.expovariate(1.0 / self.rng.choice((0.001, 0.001, 0.001, 0.02, 0.3)))

    def in_a_thread(self, func: Any, *args: Any) -> tuple[Callable[[Any, Any], None], Any]:
        """Call a function as a thread would, which has no running loop; how to report what it gave, and that."""
        asyncio._set_running_loop(None)
        self.in_thread = True
        try:
            return _give, func(*args)
        except Exception as error:
            return _fail, error
        finally:
            self.in_thread = False
            asyncio._set_running_loop(self)

    def _push(self, when: float, handle: Callback) -> None:
        self._count += 1
        heapq.heappush(self._due, (when, self._count, handle))

    def push_again(self, handles: list[Callback]) -> None:
        """Call what waited for a worker to go on."""
        for handle in handles:
            self._push(self.now, handle)

    def run(self, main: Any) -> Any:
        """The result of a coroutine, when it has one."""
        asyncio._set_running_loop(self)
        self._running = True
        try:
            task = self.create_task(main)
            while not task.done():
                self._step()
            return task.result()
        finally:
            self._running = False
            asyncio._set_running_loop(None)

    def _step(self) -> None:
        when, _, handle = heapq.heappop(self._due)
        self.now = max(self.now, when)
        worker = handle.context.get(WORKER)
        if worker is not None and worker.stopped:
            worker.waiting.append(handle)
        elif handle.function is not None:
            handle.context.run(handle.function, *handle.args)


def _give(done: Any, result: Any) -> None:
    if not done.done():
        done.set_result(result)


def _fail(done: Any, error: Any) -> None:
    if not done.done():
        done.set_exception(error)


class Idle(BaseException):
    """A thread waits for its queue."""


class Queue:
    """``queue.SimpleQueue`` between the loop and one thread, which runs some time after something was put."""

    def __init__(self, loop: Loop) -> None:
        self._loop, self._parts, self._woken = loop, deque[Any](), False
        self.reader: Thread

    def put(self, part: Any) -> None:
        """Add a part, and wake the thread up."""
        self._parts.append(part)
        if not self._woken:
            self._woken = True
            self._loop.call_at(max(self._loop.now, self.reader.busy_until) + self._loop.pause(), self._wake)

    def _wake(self) -> None:
        self._woken = False
        self.reader.turn()

    def empty(self) -> bool:
        """Whether there is no part."""
        return not self._parts

    def get(self) -> Any:
        """The next part."""
        if not self._parts:
            raise Idle
        return self._parts.popleft()


class Thread:
    """``threading.Thread`` of a function that reads a queue for ever: it does what is in the queue at one instant.

    What it reports in one turn comes at one later time.
    """

    def __init__(self, loop: Loop, queue: Queue, target: Callable[[], None]) -> None:
        self._loop, self._target, self.busy_until = loop, target, 0.0
        queue.reader = self

    def start(self) -> None:
        """Wait for the queue."""

    def turn(self) -> None:
        """Do what is queued, and report it later."""
        reports = list[Any]()
        self.busy_until = self._loop.now + self._loop.pause()
        before, self._loop.call_soon_threadsafe = self._loop.call_soon_threadsafe, lambda *call: reports.append(call)
        try:
            self._loop.in_a_thread(self._until_idle)
        finally:
            self._loop.call_soon_threadsafe = before
        for call in reports:
            self._loop.call_at(self.busy_until, *call)

    def _until_idle(self) -> None:
        try:
            self._target()
        except Idle:
            return

    def join(self) -> None:
        """Do what is queued, to the end."""
        self._until_idle()
