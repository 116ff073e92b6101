# SPDX-License-Identifier: Apache-2.0
"""tc.TransferEngine and x.to(device, non_blocking=True)."""

import asyncio
import concurrent.futures
import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import tensorcraft as tc

GPU = "cuda:0"
on_gpu = pytest.mark.skipif(GPU not in tc.devices(), reason="needs a GPU")
ENGINES = [d for d in tc.devices() if d != "cpu"] or ["cpu"]
MIB = 1 << 20


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest) -> str:
    """Every device that an engine copies to from the host."""
    return str(request.param)


def slow_engine(place: str, pieces_a_second: float = 40.0) -> tc.TransferEngine:
    """One that copies one array of a MiB at a time, in pieces of a quarter."""
    return tc.TransferEngine(place, max_in_flight=1, bandwidth=pieces_a_second * MIB / 4)


def values(bytes: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, bytes, dtype=np.uint8)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5, 7), (MIB + 1,), (9 * MIB,)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_a_round_trip_keeps_every_byte(place: str, shape: tuple[int, ...], dtype: str) -> None:
    x = tc.asarray(values(int(np.prod(shape)))).reshape(shape).astype(dtype)
    with tc.TransferEngine(place) as engine:
        there = engine.to(x, place).result(60)
        back = engine.to(there, "cpu").result(60)
    assert there.device == place and back.device == "cpu"
    assert back.shape == shape and str(back.dtype) == dtype
    assert np.array_equal(back.astype("float32").numpy(), x.astype("float32").numpy())


def test_takes_lists_numpy_and_strides(place: str) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    with tc.TransferEngine(place) as engine:
        assert engine.to([1, 2], place).result(60).tolist() == [1, 2]
        assert engine.to(x.T, place).result(60).tolist() == x.T.tolist()
        assert engine.to(tc.asarray(x)[:, 1:3], place).result(60).tolist() == x[:, 1:3].tolist()


def test_the_tensor_can_be_used_at_once_and_the_source_written(place: str) -> None:
    with slow_engine(place, 40) as engine:
        x = tc.asarray(values(MIB))
        before = x.numpy().copy()
        copy = engine.to(x, place)
        assert not copy.done()
        x[...] = 7  # after the copy has read it
        assert copy.state == "completed"
        assert np.array_equal(copy.tensor.numpy(), before)
        down = engine.to(copy.tensor, "cpu")
        assert np.array_equal((down.tensor * 1).numpy(), before)


def test_writes_into_what_is_there(place: str) -> None:
    with tc.TransferEngine(place) as engine:
        out = tc.zeros((3 * MIB,), dtype="uint8", device=place)
        for seed in range(3):
            x = values(3 * MIB, seed)
            assert engine.copy(x, out=out).result(60) is not None
            assert np.array_equal(out.numpy(), x)


def test_priority_then_order(place: str) -> None:
    ended: list[int] = []
    with slow_engine(place) as engine:
        copies = []
        for i, priority in enumerate([0, 0, 3, -1, 3]):
            copies.append(engine.to(values(MIB), place, priority=priority))
            copies[-1].add_done_callback(lambda _, i=i: ended.append(i))
        concurrent.futures.wait(copies, 60)
    assert ended == [0, 2, 4, 1, 3]


def test_a_queued_copy_is_cancelled_at_once_and_the_next_goes_on(place: str) -> None:
    with slow_engine(place) as engine:
        first, second, third = (engine.to(values(MIB), place) for _ in range(3))
        assert (first.state, second.state) == ("running", "queued")
        assert second.cancel() and second.cancel()
        with pytest.raises(concurrent.futures.CancelledError):
            second.result(60)
        with pytest.raises(RuntimeError, match="the transfer was cancelled; its destination is undefined"):
            second.tensor.tolist()
        assert np.array_equal(third.result(60).numpy(), values(MIB))
        assert first.done() and not first.cancel()
        assert second.state == "cancelled" and third.state == "completed"


def test_a_running_copy_is_cancelled(place: str) -> None:
    with slow_engine(place, 10) as engine:
        copy = engine.to(values(MIB), place)
        assert copy.running() and copy.cancel()
        with pytest.raises(concurrent.futures.CancelledError):
            copy.result(60)
        assert engine.statistics()["h2d"].cancelled == 1


def test_a_coroutine_awaits_it(place: str) -> None:
    async def trips() -> list[bool]:
        async def trip(seed: int) -> bool:
            there = await engine.to(values(MIB, seed), place)
            back = await engine.to(there, "cpu")
            return bool(np.array_equal(back.numpy(), values(MIB, seed)))

        return await asyncio.gather(*(trip(seed) for seed in range(8)))

    with tc.TransferEngine(place) as engine:
        assert all(asyncio.run(trips()))


def test_statistics_add_up(place: str) -> None:
    with tc.TransferEngine(place) as engine:
        for _ in range(3):
            engine.to(values(MIB), place).result(60)
        up, down = engine.statistics()["h2d"], engine.statistics()["d2h"]
        copy = engine.to(values(MIB), place)
        copy.result(60)
        assert copy.gb_per_s > 0
    assert (up.completed, up.bytes, up.queued, up.running) == (3, 3 * MIB, 0, 0)
    assert up.busy > 0 and up.gb_per_s > 0
    assert down == tc.LaneStatistics(0, 0, 0, 0, 0, 0, 0.0, 0.0)


def test_memory_lives_until_the_copy_ends_and_no_longer(place: str) -> None:
    with slow_engine(place, 40) as engine:
        x = values(MIB)
        seen = weakref.ref(x)
        copy = engine.to(x, place)
        del x
        gc.collect()
        assert seen() is not None or copy.done()  # a busy machine may come here late
        assert np.array_equal(copy.result(60).numpy(), values(MIB))
        engine.to([0], place).result(60)  # the engine is done with the one before
        for _ in range(1000):
            gc.collect()
            if seen() is None:
                break
            threading.Event().wait(0.01)
        assert seen() is None


def test_many_threads(place: str) -> None:
    def trip(seed: int) -> bool:
        there = engine.to(values(MIB, seed), place, priority=seed % 3).result(60)
        return bool(np.array_equal(engine.to(there, "cpu").tensor.numpy(), values(MIB, seed)))

    with tc.TransferEngine(place) as engine, concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert all(pool.map(trip, range(40)))


def test_what_cannot_be_is_refused(place: str) -> None:
    with pytest.raises(ValueError, match="max_in_flight: expected h2d, d2h, d2d or peer, got up"):
        tc.TransferEngine(place, max_in_flight={"up": 1})
    with pytest.raises(ValueError, match="max_in_flight of d2h must be at least 1, got 0"):
        tc.TransferEngine(place, max_in_flight={"d2h": 0})
    with pytest.raises(ValueError, match="the bandwidth of h2d must be 0"):
        tc.TransferEngine(place, bandwidth=-1)
    with pytest.raises(TypeError):
        tc.TransferEngine(place, max_in_flight={"h2d": "many"})  # type: ignore[dict-item]
    engine = tc.TransferEngine(place)
    out = tc.zeros((4,), device=place)
    with pytest.raises(ValueError, match="out must be contiguous, of shape"):
        engine.copy([1.0, 2.0], out=out)
    with pytest.raises(ValueError, match="overlap"):
        engine.copy(out[1:3], out=out[:2])
    with pytest.raises(TypeError, match="out=, a tc.Tensor"):
        engine.copy([1.0], out=np.zeros(1, np.float32))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="priority must fit 32 bits"):
        engine.to([1], place, priority=1 << 40)
    engine.close()
    engine.close()
    with pytest.raises(ValueError, match="it is closed"):
        engine.to([1], place)


def test_a_copy_beside_the_engines_device_is_refused() -> None:
    with tc.TransferEngine("cpu") as engine:
        if GPU in tc.devices():
            with pytest.raises(ValueError, match="this engine is of cpu"):
                engine.to([1], GPU)
        assert engine.to([1], "cpu").result(60).tolist() == [1]
        assert engine.statistics()["d2d"].completed == 1


def test_a_program_may_end_in_the_middle() -> None:
    program = f"""
import sys, numpy as np, tensorcraft as tc
e = tc.TransferEngine("cpu", bandwidth=40 << 20)
copies = [e.to(np.ones(1 << 20, np.uint8), "cpu") for _ in range(4)]
copies[0].add_done_callback(lambda c: print("ended", flush=True))
dropped = tc.TransferEngine("cpu")
dropped.to(np.ones(1 << 20, np.uint8), "cpu")
del dropped
for d in {ENGINES!r}:
    x = tc.asarray(np.ones(32 << 20, np.uint8)).to(d, non_blocking=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "ended" in done.stdout and not done.stderr, done.stdout + done.stderr


def test_callbacks_do_not_close_and_a_fork_has_no_engine() -> None:
    program = """
import os, tensorcraft as tc
e = tc.TransferEngine("cpu", bandwidth=1 << 20)
e.to([0.0] * (1 << 18), "cpu")
c = e.to([0.0], "cpu")  # a second later
c.add_done_callback(lambda _: e.close())   # refused, and logged by concurrent.futures
c.result(20)
if (child := os.fork()) == 0:
    try: e.to([1.0], "cpu")
    except NotImplementedError as error: print(error, flush=True)
    del e
    os._exit(0)
print("child", os.waitpid(child, 0)[1])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout.endswith("child 0\n"), done.stdout + done.stderr
    assert "made before this process was forked" in done.stdout
    assert "close was called by a callback" in done.stderr


def test_to_takes_non_blocking_on_every_device(device: str) -> None:
    x = tc.asarray([1.0, 2.0], device="cpu")
    y = x.to(device, non_blocking=True)
    assert (y + 1).tolist() == [2.0, 3.0]
    assert y.to("cpu", non_blocking=True).tolist() == [1.0, 2.0]
    assert x.to("cpu", non_blocking=True) is x


@on_gpu
@pytest.mark.parametrize("bytes", [0, 1, 1000, 5 * MIB + 3, 96 * MIB])
def test_non_blocking_up_and_down(bytes: int) -> None:
    x = values(bytes)
    y = tc.asarray(x).to(GPU, non_blocking=True)
    z = tc.copy(y).to("cpu", non_blocking=True)
    assert np.array_equal(z.numpy(), x)
    assert np.array_equal(y.numpy(), x)


@on_gpu
def test_non_blocking_keeps_the_order_of_the_stream() -> None:
    n = 32 * MIB
    for stream in (tc.Stream(GPU), tc.Stream(GPU)):
        with stream:
            x = tc.zeros((n,), dtype="uint8", device=GPU)
            for i in range(20):
                x[...] = i
                y = x.to("cpu", non_blocking=True)  # reads what the stream wrote before
                x[...] = 255  # and not what it writes after
                assert int(y.numpy().min()) == i == int(y.numpy().max())
            del x, y
    host = tc.asarray(values(n))
    for i in range(10):
        y = host.to(GPU, non_blocking=True)
        host[...] = i  # waits until it was read
        assert i == 0 or int(tc.max(y)) == i - 1


@on_gpu
def test_non_blocking_into_other_frameworks() -> None:
    torch = pytest.importorskip("torch")
    x = values(16 * MIB)
    for _ in range(10):
        y = torch.from_dlpack(tc.asarray(x).to(GPU, non_blocking=True))
        assert np.array_equal(y.cpu().numpy(), x)
    pinned = torch.from_numpy(x).pin_memory()
    assert np.array_equal(tc.asarray(pinned).to(GPU, non_blocking=True).numpy(), x)


@on_gpu
def test_non_blocking_results_may_be_dropped_at_once() -> None:
    x = tc.asarray(values(8 * MIB))
    kept = []
    for i in range(100):
        y = x.to(GPU, non_blocking=True)
        if i % 10 == 0:
            kept.append(y)
        del y
        tc.zeros((8 * MIB,), dtype="uint8", device=GPU)
    assert all(np.array_equal(y.numpy(), x.numpy()) for y in kept)


@on_gpu
def test_synchronize_waits_for_copies_too() -> None:
    pinned = tc.zeros((64 * MIB,), dtype="uint8", device=GPU).to("cpu", non_blocking=True)
    tc.synchronize(GPU)
    assert int(pinned.numpy().max()) == 0


@on_gpu
def test_a_recording_refuses_copies() -> None:
    x = tc.asarray(values(MIB)).to(GPU, non_blocking=True)
    y = tc.empty((MIB,), dtype="uint8", device=GPU)
    tc.copy(x, out=y)
    graph = tc.Graph(lambda: tc.copy(x, out=y))
    graph.launch()
    assert np.array_equal(y.numpy(), values(MIB))
    with pytest.raises(NotImplementedError, match="while this thread records a graph"):
        tc.Graph(lambda: x.to("cpu", non_blocking=True))
