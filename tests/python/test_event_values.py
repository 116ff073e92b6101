# SPDX-License-Identifier: Apache-2.0
"""Events with a count, and flags that are waited for: on host devices the calling thread waits."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import tensorcraft as tc

GPUS = [device for device in tc.devices() if device.startswith("cuda")]


def test_a_wait_begins_before_its_record(device: str) -> None:
    event, seen = tc.Event(device), []

    def produce() -> None:
        time.sleep(0.005)
        seen.append("produced")
        event.set()

    thread = threading.Thread(target=produce)
    thread.start()
    event.wait()
    event.synchronize(1, timeout=10)
    seen.append("consumed")
    thread.join()
    assert seen == ["produced", "consumed"] and event.value == 1
    event.set(5)
    event.wait(5, timeout=10)
    assert event.value == 5
    event.reset()
    if device.startswith("cuda"):
        tc.synchronize(device)
    assert event.value == 0


@pytest.mark.parametrize("device", [d for d in tc.devices() if not d.startswith("cuda")])
def test_a_producer_that_dies_is_a_time_out(device: str) -> None:
    event = tc.Event(device)
    with pytest.raises(TimeoutError, match="the count was still 0 after 0.01 s, expected at least 2") as error:
        event.wait(2, timeout=0.01)
    assert isinstance(error.value, tc.errors.TimedOut)
    with pytest.raises(TimeoutError):
        event.synchronize(2, timeout=0)


@pytest.mark.parametrize("device", GPUS)
def test_a_stream_whose_producer_dies_is_a_time_out(device: str) -> None:
    event, stream = tc.Event(device), tc.Stream(device)
    event.wait(2, stream=stream, timeout=0.01)
    stream.synchronize()
    with pytest.raises(TimeoutError, match="a stream waited for a value until its time was over"):
        event.value  # noqa: B018


def test_a_flag_is_waited_for(device: str) -> None:
    if device.startswith("cuda"):
        stream, flag, result = tc.Stream(device), tc.zeros(1, dtype=tc.int32, device=device), tc.zeros(4, device=device)
        tc.add(result, 0.0, out=result, stream=stream)  # loading a kernel waits for streams that wait
        tc.synchronize(device)
        tc.stream_wait_value(flag, 3, stream=stream)
        tc.add(result, 1.0, out=result, stream=stream)
        tc.stream_write_value(flag, 3)
        stream.synchronize()
        assert result.numpy().tolist() == [1] * 4
        return
    flag = np.zeros(1, np.int32) if device == "cpu" else tc.zeros(1, dtype=tc.int32, device=device)
    thread = threading.Thread(target=lambda: (time.sleep(0.005), tc.stream_write_value(flag, 3)))
    thread.start()
    tc.stream_wait_value(flag, 3)
    tc.stream_wait_value(flag, 2, condition="and_bits")
    thread.join()
    assert int(np.asarray(flag)[0]) == 3


@pytest.mark.parametrize("device", GPUS)
def test_a_graph_waits_and_writes(device: str) -> None:
    stream, ready = tc.Stream(device), tc.Event(device)
    x, y = tc.zeros(4, device=device), tc.zeros(4, device=device)

    def step() -> None:
        ready.wait(1)
        tc.add(x, 1.0, out=y)
        ready.reset()

    tc.add(x, 1.0, out=y)
    graph = tc.Graph(step, stream)
    for turn in range(3):
        graph.launch(stream)
        x[...] = float(turn)
        ready.record()
        stream.synchronize()
        assert y.numpy().tolist() == [turn + 1] * 4 and ready.value == 0


def test_what_they_refuse() -> None:
    event = tc.Event("cpu")
    with pytest.raises(ValueError, match=r"wait_flag expects a non-empty tensor\."):
        tc.stream_wait_value(np.zeros(0, np.int32), 1)
    with pytest.raises(TypeError, match="Dtype value"):
        tc.stream_wait_value(np.zeros(1, np.float32), 1)
    with pytest.raises(TypeError, match="flag must be an array, which somebody writes"):
        tc.stream_wait_value([0], 1)
    with pytest.raises(ValueError, match="condition must be at_least, equal, and_bits or nor_bits"):
        tc.stream_wait_value(np.zeros(1, np.int32), 1, condition="more")
    with pytest.raises(ValueError, match="value must be in"):
        event.record(2**31)
    with pytest.raises(ValueError, match="timeout must be seconds"):
        event.wait(0, timeout=-1)
    with pytest.raises(TypeError, match="wait: takes one tc.Stream, or a value"):
        event.wait(0, 1, 2)
