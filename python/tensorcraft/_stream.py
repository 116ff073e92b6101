# SPDX-License-Identifier: Apache-2.0
"""Streams, events, graphs and the call trace."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _tensorcraft as native
from ._tensorcraft import Event, Graph, Stream

if TYPE_CHECKING:
    from ._typing import ArrayLike, StreamLike

__all__ = ["Event", "Graph", "Stream", "Trace", "stream_wait_value", "stream_write_value", "trace"]


class _Previous(threading.local):
    """The streams that the `with` blocks of this thread return to."""

    def __init__(self) -> None:
        self.stack: list[tuple[int, int]] = []


_previous = _Previous()


def _enter(self: Stream) -> Stream:
    """Makes the stream current for this thread."""
    index = int(self.device.split(":")[1])
    _previous.stack.append((native.current_stream(index), index))
    native.set_current_stream(self.handle, index)
    return self


def _exit(self: Stream, *_: object) -> None:
    """Makes the stream before it current again."""
    native.set_current_stream(*_previous.stack.pop())


Stream.__enter__ = _enter  # type: ignore[method-assign]
Stream.__exit__ = _exit  # type: ignore[method-assign]


def stream_wait_value(
    flag: ArrayLike, value: int, *, condition: str = "at_least", stream: StreamLike | None = None
) -> None:
    """Makes later work of a stream start once flag[0] meets a condition, whoever writes it and whenever.

    condition: at_least, equal, and_bits or nor_bits with `value`.
    """
    native.stream_wait_value(flag, value, condition=condition, stream=stream)


def stream_write_value(flag: ArrayLike, value: int, *, stream: StreamLike | None = None) -> None:
    """Writes flag[0] once a stream has done its work so far; at once if the flag is on the host and no stream is given."""
    native.stream_write_value(flag, value, stream=stream)


class _StreamMethods:
    """The native methods as a reader of signatures sees them: `inspect` cannot read nanobind's."""

    def __init__(self, device: str = "cuda", priority: int = 0) -> None: ...

    def synchronize(self) -> None:
        """Waits for all work enqueued so far."""


class _GraphMethods:
    def __init__(self, work: Callable[[], object], stream: StreamLike | None = None) -> None: ...

    def launch(self, stream: StreamLike | None = None) -> None:
        """Enqueues all that was recorded, on the current stream if none is given, and returns."""


class _EventMethods:
    def __init__(self, device: str = "cuda", timing: bool = False) -> None: ...

    def record(self, value: int | Stream = 1, *, stream: StreamLike | None = None) -> None:
        """Makes the count of the event `value` once a stream has done its work so far.

        A tc.Stream in the place of `value`: moves the event to the end of that stream.
        """

    def wait(self, value: int | Stream = 1, *, stream: StreamLike | None = None, timeout: float | None = None) -> None:
        """Makes later work of a stream start once the count is at least `value`.

        A tc.Stream in the place of `value`: makes later work of that stream start after the event.
        """

    def synchronize(self, value: int | None = None, *, timeout: float | None = None) -> None:
        """Waits until the count is at least `value`; without it, for the event."""

    def set(self, value: int = 1) -> None:
        """Makes the count `value` at once."""

    def reset(self, *, stream: StreamLike | None = None) -> None:
        """Makes the count 0 in the order of a stream."""


def _described(original: Callable[..., None], description: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(description)
    def method(*args: Any, **options: Any) -> None:
        original(*args, **options)

    return method


class _Signature:
    """The signature of a class, made when somebody asks: `inspect` takes long to import."""

    def __init__(self, construct: Callable[..., None]) -> None:
        self.construct = construct

    def __get__(self, instance: object, owner: type) -> Any:
        from inspect import signature

        whole = signature(self.construct)
        return whole.replace(parameters=list(whole.parameters.values())[1:])  # without self


for _class, _methods in ((Stream, _StreamMethods), (Graph, _GraphMethods), (Event, _EventMethods)):
    setattr(_class, "__signature__", _Signature(_methods.__init__))  # noqa: B010
    for _name, _description in vars(_methods).items():
        if not _name.startswith("_"):
            setattr(_class, _name, _described(getattr(_class, _name), _description))

_elapsed_ms = Event.elapsed_ms


def _milliseconds(begin: Event, end: Event) -> float:
    """Milliseconds between two events made with timing=True."""
    return _elapsed_ms(begin, end)


Event.elapsed_ms = staticmethod(_milliseconds)  # type: ignore[method-assign]


class TraceRow(NamedTuple):
    """What a trace says of one operator, variant and device."""

    op: str  # the name of the operator
    variant: str  # the one that ran
    device: str  # where
    calls: int  # how many
    milliseconds: float  # in all of them


class Trace:
    """Times every operator call of this thread while the `with` block runs."""

    def __init__(self) -> None:
        self._native: native.Trace | None = None

    def __enter__(self) -> Trace:
        self._native = native.Trace()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._native is not None:
            self._native.stop()

    def rows(self) -> list[TraceRow]:
        """One row for each operator, variant and device, longest first; waits for the recorded work."""
        return [] if self._native is None else [TraceRow(*row) for row in self._native.rows()]

    def __str__(self) -> str:
        rows = self.rows()
        total = sum(row.milliseconds for row in rows) or 1.0
        lines = [f"{'operator':<16}{'variant':<16}{'calls':>8}{'ms':>12}{'share':>8}"]
        for row in rows:
            share = 100 * row.milliseconds / total
            lines.append(f"{row.op:<16}{row.variant:<16}{row.calls:>8}{row.milliseconds:>12.3f}{share:>7.1f}%")
        return "\n".join(lines)


def trace() -> Trace:
    """A context manager that records the operators a block calls: `with tc.trace() as t: ...; print(t)`."""
    return Trace()
