# SPDX-License-Identifier: Apache-2.0
"""Streams, events, graphs and the call trace."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import NamedTuple

from . import _tensorcraft as native
from ._tensorcraft import Event, Graph, Stream, stream_wait_value, stream_write_value

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
