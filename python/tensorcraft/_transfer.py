# SPDX-License-Identifier: Apache-2.0
"""Copies between devices, beside the program."""

from __future__ import annotations

import atexit
import concurrent.futures
import weakref
from collections.abc import Generator, Mapping
from types import TracebackType
from typing import Any, NamedTuple

from . import _tensorcraft as native
from ._tensorcraft import Tensor
from ._typing import ArrayLike
from .errors import Error, TensorCraftTypeError

__all__ = ["Copy", "LaneStatistics", "TransferEngine"]

_DIRECTIONS = ("h2d", "d2h", "d2d", "peer")


class LaneStatistics(NamedTuple):
    """What one direction of an engine did, and has to do."""

    queued: int  # copies that wait now
    running: int  # that have started and not ended
    completed: int  # since the beginning
    failed: int  # likewise
    cancelled: int  # likewise
    bytes: int  # copied
    busy: float  # seconds in which at least one copy ran
    gb_per_s: float  # of that time


class Copy(concurrent.futures.Future[Tensor]):
    """A copy that a TransferEngine makes, and the tensor that it gives.

    A `concurrent.futures.Future` (`result()`, `exception()`, `done()`, `add_done_callback()`), and `await copy` waits for
    it in a coroutine. What it failed with is raised by `result()`.
    """

    def __init__(self, transfer: native.Transfer) -> None:
        if not isinstance(transfer, native.Transfer):
            raise TensorCraftTypeError("a tc.Copy is not made by its class; use TransferEngine.to or copy")
        super().__init__()
        self._native = transfer
        transfer.on_end(self._end)

    @property
    def tensor(self) -> Tensor:
        """What is written, at once: whatever uses it comes after the copy."""
        return self._native.result()

    @property
    def state(self) -> str:
        """ "queued", "running", "completed", "failed" or "cancelled"."""
        return self._native.state()

    @property
    def gb_per_s(self) -> float:
        """Its speed, from its start to its end or to now."""
        return self._native.gb_per_s()

    def running(self) -> bool:
        """Has it started, and not ended?"""
        return self.state == "running"

    def cancel(self) -> bool:
        """A queued copy ends now; a running one once what was begun is copied. False if it has ended."""
        return self._native.cancel() or self.state == "cancelled"

    def __await__(self) -> Generator[Any, None, Tensor]:
        from asyncio import wrap_future  # a program that awaits has imported it; others need not pay for it

        return wrap_future(self).__await__()

    def _end(self, state: str, said: str) -> None:
        if state == "cancelled":
            super().cancel()
            self.set_running_or_notify_cancel()
        elif state == "failed":
            self.set_exception(Error(said))
        else:
            self.set_result(self._native.result())


class TransferEngine:
    """Copies arrays from and to a device, on streams of its own beside the program's.

        with tc.TransferEngine("cpu") as engine:
            copy = engine.to([1.0, 2.0], "cpu")
            print(copy.result())

    A copy starts after what the current stream holds, by priority and then in order, within the limits of its direction:
    "h2d" from the host, "d2h" to the host, "d2d" within the device, "peer" to another GPU. Host memory that is not
    page-locked goes through a ring of page-locked slots, which threads fill and empty meanwhile. On "cpu" and "simt" host
    memory plays the device: "simt" is the device's side.

    device: by default the default device.
    max_in_flight: copies of a direction that run at a time, as a number for all or by direction.
    bandwidth: bytes a second of a direction, likewise; 0 for no limit.

    Raises ValueError, TypeError: a limit under which nothing could move.
    """

    def __init__(
        self,
        device: str | None = None,
        *,
        max_in_flight: int | Mapping[str, int] = 16,
        bandwidth: float | Mapping[str, float] = 0.0,
    ) -> None:
        self._native = native.TransferEngine(device, _by_direction(max_in_flight), _by_direction(bandwidth))
        _open.add(self)

    def to(self, x: ArrayLike, device: str, *, priority: int = 0) -> Copy:
        """Begins to copy an array to a device, and returns at once. The highest priority goes first.

        Until the copy has ended its source must not be written but through TensorCraft, which waits.

        Raises ValueError: neither side is this engine's device, or the engine is closed. NotImplementedError: a graph is
        recorded.
        """
        return Copy(self._native.to(x, device, priority))

    def copy(self, x: ArrayLike, *, out: Tensor, priority: int = 0) -> Copy:
        """Begins to copy an array into a tensor of its shape and dtype, and returns at once; like `to`."""
        return Copy(self._native.copy(x, out, priority))

    def statistics(self) -> dict[str, LaneStatistics]:
        """What each direction did, and has to do now."""
        return {name: LaneStatistics(*row) for name, row in self._native.statistics().items()}

    @property
    def device(self) -> str:
        """The device, as text."""
        return self._native.device

    def close(self) -> None:
        """Cancels what is queued and waits for what runs. A callback of a copy cannot."""
        self._native.close()

    def __enter__(self) -> TransferEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _by_direction(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else dict.fromkeys(_DIRECTIONS, value)


_open: weakref.WeakSet[TransferEngine] = weakref.WeakSet()


def _close_all() -> None:
    """Before the interpreter ends: a thread that calls Python after that would never return."""
    for engine in list(_open):
        engine.close()
    native.wait_for_background()


atexit.register(_close_all)
