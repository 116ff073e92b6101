# SPDX-License-Identifier: Apache-2.0
"""tc.dispatch: what is launched, its limits, and the last launches."""

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

import tensorcraft as tc

GPU = "cuda:0"
on_gpu = pytest.mark.skipif(GPU not in tc.devices(), reason="needs a GPU")
on_simt = pytest.mark.skipif("simt" not in tc.devices(), reason="built without the emulator")


@pytest.fixture(autouse=True)
def _stops() -> Iterator[None]:
    yield
    tc.dispatch.record(False)


def simt() -> tc.Tensor:
    return tc.ones((64,), device="simt")


@on_simt
def test_nothing_is_watched_unless_asked() -> None:
    before = tc.dispatch.stats()
    tc.exp(simt())
    assert tc.dispatch.stats() == before


@on_simt
def test_recorded_launches_are_counted_and_can_be_read() -> None:
    before = tc.dispatch.stats()
    begin = time.monotonic()
    x = simt()
    with tc.dispatch.record():
        tc.softmax(x)
        tc.exp(x)
    tc.exp(x)
    after = tc.dispatch.stats()
    made = after.launched - before.launched
    assert made >= 2 and after.completed - before.completed == made and after.in_flight == before.in_flight
    last = tc.dispatch.recent(made)
    assert len(last) == made
    assert last[0].device == "simt" and last[0].task == 0 and last[0].outcome == "launched"
    assert any("softmax" in launch.name for launch in last)
    assert begin <= last[-1].at <= last[0].at <= time.monotonic()
    assert last[0].block[0] >= 1 and last[0].grid[0] >= 1


@on_simt
def test_no_more_than_a_thousand_are_kept() -> None:
    x = simt()
    with tc.dispatch.record():
        for _ in range(1100):
            tc.exp(x)
    assert len(tc.dispatch.recent()) == 1000
    assert tc.dispatch.recent(0) == ()
    with pytest.raises(ValueError, match="count must be at least 0"):
        tc.dispatch.recent(-1)


@on_simt
def test_operators_in_a_task_are_its_launches() -> None:
    x = simt()
    with tc.Scheduler("simt") as tasks:
        task = tasks.submit(tc.exp, x)
        task.result(60)
        assert tc.dispatch.recent(1)[0].task == task.id
        names = {launch.task for launch in tc.dispatch.recent(1)}
        other = tasks.submit(tc.softmax, x)
        other.result(60)
        assert {launch.task for launch in tc.dispatch.recent(1)} == {other.id} != names


@on_simt
def test_threads_record_together() -> None:
    x = simt()
    before = tc.dispatch.stats().launched

    def work() -> None:
        for _ in range(50):
            tc.exp(x)

    with tc.dispatch.record():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert tc.dispatch.stats().launched - before == 200


@pytest.mark.skipif(GPU in tc.devices(), reason="there is a GPU")
def test_a_limit_needs_a_gpu() -> None:
    with pytest.raises(NotImplementedError, match="a limit needs a GPU"):
        tc.dispatch.set_limit(1)
    with pytest.raises(NotImplementedError, match="a limit needs a GPU"):
        tc.dispatch.limit()
    with pytest.raises(TypeError, match="record takes True or False"):
        tc.dispatch.record("yes")  # type: ignore[arg-type]


@on_gpu
def test_a_limit_holds_the_host_back() -> None:
    stream = tc.Stream(GPU)
    with stream:
        x = tc.ones((4 << 20,), device=GPU)
        tc.exp(x)
        tc.dispatch.set_limit(8, stream)
        assert tc.dispatch.limit(stream) == tc.dispatch.limit() == 8
        most = 0
        for _ in range(200):
            tc.exp(x, out=x)
            most = max(most, tc.dispatch.stats().in_flight)
        tc.dispatch.set_limit(0, stream)
        assert 1 <= most <= 8
        stream.synchronize()
        assert tc.dispatch.limit(stream) == 0
    with pytest.raises(ValueError, match="a limit of -1 launches"):
        tc.dispatch.set_limit(-1)


@on_gpu
def test_streams_have_priorities() -> None:
    assert tc.Stream(GPU).priority == 0
    high = tc.Stream(GPU, priority=2)
    assert high.priority == 2
    with high:
        assert np.array_equal(tc.exp(tc.zeros((4,), device=GPU)).numpy(), np.ones(4, np.float32))
    with pytest.raises(ValueError, match="priority must be 0"):
        tc.Stream(GPU, priority=-1)


@on_gpu
def test_a_launch_on_a_gpu_names_its_kernel() -> None:
    x = tc.ones((4, 4), device=GPU)
    with tc.dispatch.record():
        tc.exp(x)
    last = tc.dispatch.recent(1)[0]
    assert last.device == GPU and last.name and last.kernel
