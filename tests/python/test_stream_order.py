# SPDX-License-Identifier: Apache-2.0
"""Kernels start while what is in front of them on the stream still ends, and yet see all of it."""

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a GPU and torch", allow_module_level=True)

import tensorcraft as tc

ROWS, COLUMNS = 4096, 8192  # long enough for a kernel that does not wait to read too early


@pytest.fixture
def x():
    return torch.zeros(ROWS, COLUMNS, device="cuda")


def write_by_memset(x, value, staged):
    x.zero_()


def write_by_copy(x, value, staged):
    x.copy_(staged[value])


def write_by_kernel(x, value, staged):
    x.fill_(value)


def write_by_ours(x, value, staged):
    tc.maximum(staged[value], staged[0], out=x)


WRITERS = [write_by_memset, write_by_copy, write_by_kernel, write_by_ours]


@pytest.fixture
def staged():
    return [torch.full((ROWS, COLUMNS), float(v), device="cuda") for v in range(4)]


def expected(write, value):
    return 0.0 if write is write_by_memset else float(value)


@pytest.mark.parametrize("write", WRITERS)
def test_reads_what_was_written_in_front_of_it(write, x, staged):
    results, wanted = [], []
    for i in range(40):
        x.fill_(9.0)
        write(x, i % 4, staged)
        small = tc.sum(x[-1:], axis=1)  # one block, which would be there first
        results.append((small, tc.sum(x, axis=1)))
        wanted.append(expected(write, i % 4))
    for (small, all_rows), value in zip(results, wanted, strict=True):
        assert small.item() == value * COLUMNS
        assert torch.all(all_rows == value * COLUMNS)


@pytest.mark.parametrize("write", WRITERS)
def test_a_graph_keeps_the_order(write, x, staged):
    small = torch.empty(1, device="cuda")
    other = torch.empty(ROWS, device="cuda")
    stream, side, graph = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.CUDAGraph()

    def work():
        tc.sum(x[-1:], axis=1, out=small)  # the first of a graph
        x.fill_(9.0)
        write(x, 3, staged)
        side.wait_stream(stream)
        with torch.cuda.stream(side):  # a fork and a join
            tc.sum(x, axis=1, out=other)
        tc.sum(x[-1:], axis=1, out=small)
        stream.wait_stream(side)
        tc.add(other[:1], small, out=small)

    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()  # compiles, which a capture cannot
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        work()
    for _ in range(20):
        other.fill_(-1.0)
        small.fill_(-1.0)
        graph.replay()
        torch.cuda.synchronize()
        assert small.item() == 2 * COLUMNS * expected(write, 3)
        assert torch.all(other == COLUMNS * expected(write, 3))


def test_overwrites_nothing_that_is_still_read(x, staged):
    target = staged[1]
    for i in range(40):
        tc.add(staged[2], float(i), out=target)
        copy = target.clone()  # a reader
        tc.add(staged[0], -5.0, out=target)
        assert torch.all(copy == 2.0 + i)


def test_a_graph_keeps_the_numbers_of_its_calls():
    x = torch.arange(6.0, device="cuda")
    out, whole = torch.empty_like(x), torch.empty(6, dtype=torch.int64, device="cuda")
    counts = torch.arange(6, device="cuda")

    def work():
        tc.multiply(x, -1.375, out=out)
        tc.add(counts, 1 << 40, out=whole)

    work()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    for i in range(50):
        tc.multiply(x, float(i), out=out)  # other numbers, maybe where those were
        whole.zero_()
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(out, x * -1.375)
        assert torch.equal(whole, counts + (1 << 40))


def test_a_graph_refuses_an_array_of_the_host():
    x = torch.ones(6, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tc.add(x, x)
        with pytest.raises(NotImplementedError, match=r"host array of 24 bytes .* while a CUDA graph is captured"):
            tc.exp([1.0] * 6, device="cuda:0", stream=torch.cuda.current_stream().cuda_stream)


def test_a_graph_keeps_the_memory_between_the_kernels_of_its_calls():
    targets = torch.arange(512, device="cuda") % 64
    logits = [torch.randn(512, 64, device="cuda") for _ in range(4)]
    streams = [torch.cuda.Stream() for _ in logits]
    losses, sums = ([torch.empty((), device="cuda") for _ in logits] for _ in range(2))
    wanted = [(tc.cross_entropy(x, targets), tc.sum(x)) for x in logits]

    def recorded(i):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(20):  # two kernels each, with numbers of the first for the second
                tc.cross_entropy(logits[i], targets, out=losses[i])
                tc.sum(logits[i], out=sums[i])
        return graph

    graphs = [recorded(i) for i in range(len(logits))]
    for turn in range(40):
        for graph, stream in zip(graphs, streams, strict=True):
            with torch.cuda.stream(stream):  # at the same time
                graph.replay()
        if turn % 4 == 0:
            graphs[0] = None  # while it runs
            graphs[0] = recorded(0)
        torch.cuda.synchronize()
        for i, (loss, total) in enumerate(wanted):
            assert torch.equal(losses[i], loss) and torch.equal(sums[i], total)
            losses[i].zero_()
            sums[i].zero_()
