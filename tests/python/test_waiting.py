# SPDX-License-Identifier: Apache-2.0
"""Operators enqueue and return: what waits for a GPU stands in docs/waiting.md, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest
from valid_calls import filled, valid_call

import tensorcraft as tc

GPU = "cuda:0"
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(GPU not in tc.devices(), reason="no GPU")]
SECONDS = 20.0  # after which a stream that is held back goes on, so that a wait fails and hangs nothing


def held_back(stream: tc.Stream, work: Any) -> bool:
    """Whether `work` returns while all of the stream stands still."""
    gate, end = tc.Event(GPU), tc.Event(GPU)
    gate.wait(1, stream=stream, timeout=SECONDS)
    with stream:
        kept = work()
    end.record(stream)
    returned = not end.done
    gate.set(1)
    stream.synchronize()
    del kept
    return returned


def on_gpu(shape: tuple[int, ...], dtype: str | None, fill: dict[str, Any] | None) -> tc.Tensor:
    return tc.asarray(filled(shape, dtype, fill), device=GPU)


@pytest.mark.parametrize(
    "name", [name for name, op in tc.ops().items() if any(v.device == "cuda" for v in op.variants)]
)
def test_no_operator_waits(name: str) -> None:
    stream = tc.Stream(GPU)
    arguments, options = valid_call(name, on_gpu)
    tc.synchronize(GPU)
    operator = tc.ops()[name].function
    with stream:
        first = operator(*arguments, **options)  # compiles, and gives the stream its memory
    stream.synchronize()
    del first
    assert held_back(stream, lambda: operator(*arguments, **options)), f"{name} waits for the GPU"


def test_reading_a_value_waits() -> None:
    stream, x = tc.Stream(GPU), tc.ones((8,), device=GPU)
    with stream:
        tc.add(x, 1.0)  # compiles
    tc.synchronize(GPU)
    gate = tc.Event(GPU)
    gate.wait(1, stream=stream, timeout=0.2)
    with stream:
        y = tc.add(x, 1.0)
        end = tc.Event(GPU)
        end.record(stream)
        assert not end.done
        assert y.numpy()[0] == 2 and end.done
    with pytest.raises(TimeoutError):
        gate.value  # noqa: B018
