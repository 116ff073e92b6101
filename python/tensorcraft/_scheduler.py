# SPDX-License-Identifier: Apache-2.0
"""Tasks that share a device: who may use it, when, and why."""

from __future__ import annotations

import atexit
import concurrent.futures
import itertools
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, NamedTuple

from . import _tensorcraft as native
from ._arguments import to_list
from .errors import Cancelled, Error, TensorCraftTypeError, TensorCraftValueError

__all__ = ["Decision", "Scheduler", "Task"]


def _number(value: Any) -> Any:
    """Whole numbers and NumPy's count as float; what is none is refused by the native part."""
    return float(value) if hasattr(value, "__float__") else value


class Decision(NamedTuple):
    """One answer of a scheduler; a task that was queued gets a second one when it starts."""

    at: float  # seconds of a clock that never goes back
    task: int  # Task.id
    verdict: str  # "admit", "queue" or "reject"
    reason: str  # "none", "memory", "bandwidth", "queue_full", "dependencies", "slots", "order", "duplicate_id"


class Task(concurrent.futures.Future[Any]):
    """A function that was given to a Scheduler, and what it returns once the device has done its work.

    A `concurrent.futures.Future` (`result()`, `exception()`, `done()`, `add_done_callback()`), and `await task` waits
    for it in a coroutine. What the function raises is raised by `result()`.
    """

    def __init__(self, scheduler: Scheduler, number: int, name: str) -> None:
        if not isinstance(scheduler, Scheduler):
            raise TensorCraftTypeError("a tc.Task is not made by its class; use Scheduler.submit")
        super().__init__()
        self._scheduler = weakref.ref(scheduler)  # which holds the task until it has ended
        self._answer: tuple[Any, BaseException | None] = (None, None)
        self._known = False
        self.id = number  #: of no other task of the scheduler
        self.name = name  #: for messages

    @property
    def state(self) -> str:
        """ "pending", "running", "completed", "failed" or "cancelled"."""
        scheduler = self._scheduler()
        if not self.done():
            return scheduler._native.state(self.id) if scheduler else "pending"  # and cancelled soon
        return "cancelled" if self.cancelled() else "failed" if self.exception() else "completed"

    def running(self) -> bool:
        """Has it started, and not ended?"""
        return self.state == "running"

    def cancel(self) -> bool:
        """A pending task ends now; a running one once the device lets go of it. False if it has ended.

        Once this has returned, operators that a running task's function calls raise Cancelled, on every device.
        """
        scheduler = self._scheduler()
        if self.done() or scheduler is None:
            return self.cancelled()
        try:
            scheduler._native.cancel(self.id)
        except Error:  # it ended meanwhile
            return self.cancelled()
        return True

    def __await__(self) -> Generator[Any, None, Any]:
        from asyncio import wrap_future  # a program that awaits has imported it; others need not pay for it

        return wrap_future(self).__await__()

    def __del__(self) -> None:
        try:
            if self._known and (scheduler := self._scheduler()):
                scheduler._native.forget(self.id)
        except Exception:  # noqa: BLE001  it has not ended, or the interpreter is gone
            return

    def _run(self, work: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            self._answer = (work(*args, **kwargs), None)
        except StopIteration as error:  # which no coroutine that awaits the task would get
            stopped = RuntimeError("the task's function raised StopIteration")
            stopped.__cause__ = error
            self._answer = (None, stopped)
            raise
        except BaseException as error:
            self._answer = (None, error)
            raise

    def _end(self, state: str, said: str) -> None:
        value, error = self._answer
        self._answer = (None, None)
        if state == "cancelled":
            super().cancel()
            self.set_running_or_notify_cancel()
        elif not self.done():  # else the program gave it a result of its own
            if state == "failed":
                self.set_exception(error or Cancelled(said))
            else:
                self.set_result(value)


class Scheduler:
    """Runs functions on a device, in an order that classes, memory, bandwidth and dependencies decide.

        with tc.Scheduler("cpu", max_running=2) as s:
            first = s.submit(tc.exp, [0.0], qos="guaranteed")
            second = s.submit(tc.log, [1.0], after=[first])
            print(second.result())

    On a GPU a function is called by the scheduler's own thread, with one of its streams current, so the operators that it
    calls are enqueued there: it should enqueue and not wait. The task has ended when the GPU has done that. On "cpu" and
    "simt" the functions run in threads of their own, `streams` of them.

    device: by default the default device.
    memory: bytes that all running tasks together may reserve; by default what the device's pool may hold.
    max_running: tasks at a time. max_pending: tasks of each class that may wait.
    bandwidth: bytes a second; shares: by stream, the share of it that its tasks' traffic may be; window: seconds of
        traffic in a burst. A stream without a share is not paced.
    patience: seconds after which a task that waits goes before every class.
    streams: tasks with the same `stream`, counted modulo this, keep their order.

    Raises ValueError, TypeError: a bound under which no task could run.
    """

    def __init__(
        self,
        device: str | None = None,
        *,
        memory: int | None = None,
        max_running: int = 1,
        max_pending: int = 1024,
        bandwidth: float = 0.0,
        shares: Mapping[int, float] | None = None,
        window: float = 0.01,
        patience: float = 1.0,
        streams: int = 1,
    ) -> None:
        if shares is not None and not isinstance(shares, Mapping):
            raise TensorCraftTypeError(f"Scheduler: shares must be a dict by stream, got {type(shares).__name__}")
        self._native = native.Scheduler(
            device, memory, max_running, max_pending, _number(bandwidth), dict(shares or {}), _number(window),
            _number(patience), streams,
        )
        self._ids = itertools.count(1)
        _open.add(self)

    def submit(
        self,
        work: Callable[..., Any],
        /,
        *args: Any,
        name: str | None = None,
        policy: Literal["fifo", "sjf", "priority"] = "fifo",
        qos: Literal["best_effort", "burstable", "guaranteed"] = "burstable",
        priority: int = 0,
        run_estimate: float = 0.0,
        memory: int = 0,
        stream: int = 0,
        traffic: int = 0,
        after: Iterable[Task] = (),
        **kwargs: Any,
    ) -> Task:
        """Has `work(*args, **kwargs)` called when its turn comes, and returns at once.

        name: for messages. policy: how it is ranked within its class: by submission, by run_estimate (seconds, the
        shortest first), or by priority (the highest first). qos: its class. memory: bytes that it reserves from its
        start to its end. stream, traffic: whose share of the bandwidth it uses, and how many bytes it moves.
        after: tasks of this scheduler that must have completed; if one fails or is cancelled, this one
        is never called, and its result() raises Cancelled.

        Raises OutOfMemory: more memory than there is in all, or max_pending tasks of the class wait.
        ValueError: more traffic than one window of the share; a task of `after` failed; the scheduler is closed.
        """
        if not callable(work):
            raise TensorCraftTypeError(f"Scheduler: work must be a function, got {type(work).__name__}")
        for earlier in (after := to_list(after, "Scheduler: after", "tasks of this scheduler")):
            if not isinstance(earlier, Task):
                raise TensorCraftTypeError(f"Scheduler: after: expected tasks of this scheduler, got {earlier!r}")
            if earlier._scheduler() is not self:
                raise TensorCraftValueError(f"Scheduler: after: task {earlier.id} belongs to another scheduler")
        task = Task(self, next(self._ids), name or str(getattr(work, "__name__", "task")))
        before = [t.id for t in after]
        self._native.submit(
            task.id, task.name, policy, qos, priority, _number(run_estimate), memory, stream, traffic, before,
            lambda: task._run(work, args, kwargs), task._end,
        )  # fmt: skip
        task._known = True
        return task

    def statistics(self) -> dict[str, int | float]:
        """Numbers of tasks by state, bytes reserved and available, and average wait and run in seconds."""
        return self._native.statistics()

    def decisions(self) -> list[Decision]:
        """The latest decisions, the oldest first."""
        return [Decision(*row) for row in self._native.decisions()]

    @property
    def device(self) -> str:
        """The device, as text."""
        return self._native.device

    def close(self, timeout: float | None = None) -> bool:
        """Cancels what is pending and waits until what runs has ended, `timeout` seconds at most; None: as long as it takes.

        Whether all has ended. If not, or if Ctrl-C ends the wait, the scheduler takes no further task and may be closed
        again; `Task.cancel()` keeps a task that still runs from launching more. A task and its callbacks cannot close it.
        A scheduler that is dropped unclosed cancels what is pending too, and nobody waits until the program ends.

        Raises ValueError, TypeError: a timeout that is no number of seconds from 0 to 1e9. KeyboardInterrupt: Ctrl-C.
        """
        return self._native.close(timeout)

    def __enter__(self) -> Scheduler:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_open: weakref.WeakSet[Scheduler] = weakref.WeakSet()


def _close_all() -> None:
    """Before the interpreter ends: a thread that calls Python after that would never return."""
    for scheduler in list(_open):
        scheduler.close()
    native.wait_for_background()


atexit.register(_close_all)
