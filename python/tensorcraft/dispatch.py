# SPDX-License-Identifier: Apache-2.0
"""What is launched: how much of it may be in flight, how it ended, and the last launches before a fault.

Launches are watched while a stream has a limit, while a task of a `tc.Scheduler` runs, and while they are recorded. If a
device fails, the error ends with the last launches that were watched, and names a file with the last thousand.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from . import _tensorcraft as native

if TYPE_CHECKING:
    from ._typing import StreamLike

__all__ = ["Launch", "Stats", "limit", "recent", "record", "set_limit", "stats"]


class Stats(NamedTuple):
    """Launches since the process began, of those that were watched."""

    launched: int  # the device took them
    completed: int  # of them, those that ended
    failed: int  # refused, or on a device that failed under them
    cancelled: int  # not made, as their task was cancelled
    in_flight: int  # not known to have ended


class Launch(NamedTuple):
    """One launch, as it was made."""

    name: str  # the operator, or the user's kernel, cut off; "graph"
    kernel: str  # what was compiled, on a GPU
    device: str
    stream: int  # its handle
    task: int  # Task.id; 0 without
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    outcome: str  # "launched", "failed" or "cancelled"
    at: float  # seconds, as time.monotonic() counts


class _Recording:
    """Ends with the `with` block, if it is one."""

    def __enter__(self) -> _Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        native.dispatch_record(False)


def stats() -> Stats:
    """How the launches that were watched ended. Those of another package's stream may be told late."""
    return Stats(*native.dispatch_stats())


def set_limit(launches: int, stream: StreamLike | None = None) -> None:
    """Lets at most so many launches of a stream be in flight: the next one waits. 0 for any number.

    stream: as operators take it, by default the current one of the default device.

    Raises ValueError: below 0. NotImplementedError: there is no GPU.
    """
    native.dispatch_set_limit(launches, stream)


def limit(stream: StreamLike | None = None) -> int:
    """The limit of a stream, 0 if it has none."""
    return native.dispatch_limit(stream)


def recent(count: int = 1000) -> tuple[Launch, ...]:
    """The last launches that were watched, at most a thousand, the newest first."""
    return tuple(Launch(*row) for row in native.dispatch_recent(count))


def record(enabled: bool = True) -> _Recording:
    """Watches every launch from now on, until `record(False)`; `with tc.dispatch.record():` until the block ends."""
    native.dispatch_record(enabled)
    return _Recording()
