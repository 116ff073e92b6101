# SPDX-License-Identifier: Apache-2.0
"""Streams and events: two products beside each other on a GPU, and a sum on one stream that waits for the other.

`tensorcraft trace -o build/streams.json python examples/streams.py` shows each stream as a track of its own. On the
emulator a call returns when it has computed, so there one product comes after the other.
"""

import numpy as np

import tensorcraft as tc

on_gpu = "cuda:0" in tc.devices()
device = "cuda:0" if on_gpu else "simt"
# Few rows and columns and a long k: a product has few blocks, and most of a GPU is free beside it.
rows, k = 64, 65536 if on_gpu else 256

random = np.random.default_rng(1)
a, b, c, d = (
    tc.asarray(random.integers(-1, 2, shape).astype(np.float32), device=device)
    for shape in ((rows, k), (k, rows), (rows, k), (k, rows))
)


def product(left: tc.Tensor, right: tc.Tensor) -> tc.Tensor:
    result: tc.Tensor = tc.gemm(left, right, variant="coalesced")
    return result


def one_after_the_other() -> tc.Tensor:
    result: tc.Tensor = tc.add(product(a, b), product(c, d))
    return result


# the streams
def side_by_side() -> tc.Tensor:
    first, second = tc.Stream(device), tc.Stream(device)
    begin, end, other_begin, other_end = (tc.Event(device, timing=True) for _ in range(4))
    with first:
        begin.record(first)
        x = product(a, b)  # enqueued: the host goes on
        end.record(first)
    with second:
        other_begin.record(second)
        y = product(c, d)  # the GPU computes it beside the other
        other_end.record(second)
    other_end.wait(first)  # what follows on `first` comes after it; the host does not wait
    with first:
        total: tc.Tensor = tc.add(x, y)
    first.synchronize()  # here it does
    print("first:  0 ms to", round(tc.Event.elapsed_ms(begin, end), 3), "ms")
    other = (round(tc.Event.elapsed_ms(begin, event), 3) for event in (other_begin, other_end))
    print("second:", *(f"{ms} ms" for ms in other), sep=" ")
    both = min(tc.Event.elapsed_ms(begin, end), tc.Event.elapsed_ms(begin, other_end))
    print("beside each other for", round(both - max(0.0, tc.Event.elapsed_ms(begin, other_begin)), 3), "ms")
    return total


# end
total = one_after_the_other()  # compiles; the streams below find the kernels
if on_gpu:
    tc.synchronize(device)
    total = side_by_side()
expected = a.numpy() @ b.numpy() + c.numpy() @ d.numpy()  # small integers: exact
np.testing.assert_array_equal(total.numpy(), expected)
print("on", device, "the sum of both products is exact")
