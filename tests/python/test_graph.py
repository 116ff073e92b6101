# SPDX-License-Identifier: Apache-2.0
"""tc.Graph: a launch does what was recorded, with the values of then; what a graph cannot hold is refused."""

import gc

import numpy as np
import pytest

tc = pytest.importorskip("tensorcraft")

GPU = "cuda:0"
on_gpu = pytest.mark.skipif(GPU not in tc.devices(), reason="needs a GPU")


def put(values):
    return tc.asarray(np.asarray(values, np.float32), device=GPU)


@pytest.mark.skipif(GPU in tc.devices(), reason="there is a GPU")
def test_without_a_gpu_nothing_is_recorded_and_nothing_called():
    called = []
    with pytest.raises(
        NotImplementedError, match=r"records calls on a GPU, and the default device is cpu; call the fun"
    ):
        tc.Graph(lambda: called.append(1))
    with pytest.raises(NotImplementedError):
        tc.Graph(lambda: called.append(1), stream=5)
    assert not called


@pytest.mark.parametrize("arguments", [(), (3,), (None,), (lambda: 1, None, 2)])
def test_what_is_no_function_is_a_type_error(arguments):
    with pytest.raises(TypeError, match="Graph takes a function without arguments, and perhaps a stream"):
        tc.Graph(*arguments)


@on_gpu
def test_a_stream_of_another_kind_is_a_type_error():
    with pytest.raises(TypeError, match="stream must be a tc.Stream"):
        tc.Graph(lambda: None, stream="cuda:0")


@on_gpu
def test_launches_read_what_arrays_hold_then():
    x, total = put(np.arange(12).reshape(3, 4)), put(np.zeros(3))

    def step():
        tc.add(total, tc.sum(x * 2.0, axis=1), out=total)
        return tc.softmax(x), total

    step()
    total[...] = 0.0
    graph = tc.Graph(step)
    assert graph.device == GPU and total.numpy().tolist() == [0, 0, 0]  # nothing ran
    wanted = np.zeros(3)
    for turn in range(20):
        values = np.random.default_rng(turn).standard_normal((3, 4)).astype(np.float32)
        x[...] = put(values)
        graph.launch()
        wanted += 2 * values.sum(1)
        exact = np.exp(values.astype(np.float64))
        np.testing.assert_allclose(graph.result[0].numpy(), exact / exact.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(graph.result[1].numpy(), wanted, rtol=1e-4, atol=1e-4)
    assert graph.result[1] is total


@on_gpu
def test_a_given_stream_is_the_current_one_while_it_records_and_launches_go_anywhere():
    stream, other = tc.Stream(GPU), tc.Stream(GPU)
    x = put([1.0, 2.0])

    def step():
        assert tc._tensorcraft.current_stream(0) == stream.handle
        return x + 1.0

    x + 1.0
    graph = tc.Graph(step, stream=stream)
    assert tc._tensorcraft.current_stream(0) != stream.handle
    tc.synchronize(GPU)
    for where in (None, other, stream, other.handle):
        graph.result[...] = 0.0
        tc.synchronize(GPU)
        graph.launch(stream=where)
        assert graph.result.numpy().tolist() == [2, 3]


@on_gpu
def test_the_graph_keeps_what_its_calls_were_given():
    def made():
        x, y = put(np.full(1 << 18, 3.0)), put(np.full(1 << 18, 4.0))
        step = lambda: x * y + 1.0
        step()
        return tc.Graph(step)

    graph = made()
    gc.collect()
    others = [tc.full((1 << 18,), -1.0, device=GPU) for _ in range(8)]  # where x and y would have been
    graph.launch()
    assert np.all(graph.result.numpy() == 13.0)
    result = graph.result
    del graph
    gc.collect()
    others += [tc.full((1 << 18,), -2.0, device=GPU) for _ in range(8)]
    assert np.all(result.numpy() == 13.0)


@on_gpu
def test_memory_within_a_graph_serves_again_and_is_freed_with_it():
    rows = put(np.ones((1 << 10, 1 << 10)))  # 4 MiB

    def long():
        y = rows
        for _ in range(64):
            y = y * 1.0 + 0.5
        return y

    long()
    for _ in range(400):  # of 512 MiB each if nothing served again; more than any GPU has if they stayed
        graph = tc.Graph(long)
        graph.launch()
    assert np.all(graph.result.numpy() == 33.0)


@on_gpu
@pytest.mark.parametrize(
    ("work", "kind", "said"),
    [
        (
            lambda x: x.numpy(),
            NotImplementedError,
            "a copy from cuda:0 to cpu is not possible while this thread records",
        ),
        (lambda x: x[0].item(), NotImplementedError, "a copy from cuda:0 to cpu"),
        (lambda x: bool(tc.any(x)), NotImplementedError, "a copy from cuda:0 to cpu"),
        (lambda x: put([1.0]), NotImplementedError, "a copy from cpu to cuda:0"),
        (lambda x: x + np.ones(2, np.float32), ValueError, "host and device arrays are mixed; move the host array"),
        (lambda x: tc.exp([1.0], device=GPU), NotImplementedError, "host"),
        (lambda x: tc.exp(tc.ones(3, device="cpu")), ValueError, "this call is on cpu: it would run now"),
        (lambda x: tc.exp(x, stream=tc.Stream(GPU)), ValueError, "this call goes to another stream"),
        (lambda x: tc.synchronize(GPU), NotImplementedError, "synchronize is not possible"),
        (lambda x: tc.Stream(GPU).synchronize(), NotImplementedError, "synchronize is not possible"),
        (lambda x: tc.Graph(lambda: None), NotImplementedError, "another recording is not possible"),
        (lambda x: tc.exp(x, nonsense=1), TypeError, "nonsense"),
        (lambda x: 1 / 0, ZeroDivisionError, "division"),
    ],
)
def test_what_cannot_be_recorded_is_refused_and_ends_the_recording(work, kind, said):
    x = put([1.0, 2.0])
    tc.exp(x), tc.any(x)
    stream = tc.Stream(GPU)
    with pytest.raises(kind, match=said):
        tc.Graph(lambda: work(x), stream=stream)
    graph = tc.Graph(lambda: tc.exp(x), stream=stream)  # the stream, and the thread, are free again
    graph.launch()
    np.testing.assert_allclose(graph.result.numpy(), np.exp([1.0, 2.0]), rtol=1e-6)


@on_gpu
def test_the_default_stream_and_a_launch_in_a_recording_are_refused():
    with pytest.raises(ValueError, match="the default stream of cuda:0 cannot be recorded"):
        tc.Graph(lambda: None, stream=0)
    inner = tc.Graph(lambda: None)
    with pytest.raises(NotImplementedError, match="a graph in a graph"):
        tc.Graph(inner.launch)


@on_gpu
def test_arrays_and_graphs_may_go_while_another_is_recorded():
    x = put(np.ones(1000))
    work = lambda: x * 3.0
    work()
    held = [put(np.ones(1000)), tc.Graph(work), tc.Stream(GPU)]
    held.append(tc.exp(held[0], stream=held[2]))  # used on another stream, so it waits when it goes
    tc.Graph(work).launch()

    def step():
        y = work()
        held.clear()
        gc.collect()
        return work() + y

    graph = tc.Graph(step)
    graph.launch()
    assert np.all(graph.result.numpy() == 6.0)


@on_gpu
def test_a_trace_leaves_recorded_calls_out():
    x = put([1.0])
    tc.exp(x)
    with tc.trace() as calls:
        tc.Graph(lambda: tc.exp(x)).launch()
        tc.exp(x)
    assert [(row.op, row.calls) for row in calls.rows()] == [("exp", 1)]
