# SPDX-License-Identifier: Apache-2.0
"""What docs/python.md tells, as a program; it needs no GPU."""

import json
import struct
import tempfile
from pathlib import Path

import numpy as np

import tensorcraft as tc

tc.set_default_device("cpu")  # so that it prints the same everywhere

# Tensors
x = tc.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])  # float32, on the default device
print(x.shape, x.strides, x.dtype, x.device)
row, column = x[0], x[:, 1]  # views: no copy
x[0, 1] = 20.0
print(row.tolist(), column.tolist())  # [1.0, 20.0, 3.0] [20.0, 5.0]
half = x.to("cpu").astype(tc.bfloat16)  # to() is x itself where x is there already
y = (half @ half.T + 1).astype(tc.float32)
print(y.numpy(), y[0, 0].item())

# Keys with arrays
z = tc.asarray([[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]])
print(z[:, ::-1].tolist())  # [[3.0, -2.0, 1.0], [-6.0, 5.0, -4.0]]
print(z[[1, 0, 1], 2].tolist())  # [-6.0, 3.0, -6.0]
z[z < 0] = 0
print(z[z > 2].tolist())  # [3.0, 5.0]

# DLPack
array = np.arange(6, dtype=np.float32).reshape(2, 3)
shared = tc.from_dlpack(array)  # the same memory, on its device
shared[0, 0] = -1
back = np.from_dlpack(shared)  # the same memory again
print(array[0, 0], back[0, 0])  # -1.0 -1.0

# Calls
out = np.empty_like(array)
assert tc.softmax(array, out=out) is out  # no new array
exact = tc.softmax(array, variant="reference", device="cpu")
print(np.abs(out - exact).max())

# Several results
best = tc.topk(array, 2)
print(best.out, best.indices)  # a named tuple
values, indices = best

# Joins
parts = tc.split(array, 3, axis=1)  # three views
print(tc.concat(parts, axis=1).shape, tc.stack(parts).shape)  # (2, 3) (3, 2, 1)

# Streams
if "cuda:0" in tc.devices():
    first, second = tc.Stream("cuda:0"), tc.Stream("cuda:0")
    begin, end = tc.Event("cuda:0", timing=True), tc.Event("cuda:0", timing=True)
    with first:  # the current stream of this thread
        a = tc.ones((1024, 1024), device="cuda:0")
        begin.record(first)
        b = a @ a
        end.record(first)
    end.wait(second)  # what follows on second starts after the product
    c = tc.relu(b, stream=second)
    second.synchronize()
    print(tc.Event.elapsed_ms(begin, end), c[0, 0].item())

# Graphs
if tc.default_device().startswith("cuda"):
    x, counted = tc.ones((4, 8), device="cuda:0"), tc.zeros((), device="cuda:0")

    def step() -> tc.Tensor:
        tc.add(counted, 1.0, out=counted)
        return tc.softmax(x * counted)

    step()  # compiles, which a recording cannot
    graph = tc.Graph(step)  # records, and runs nothing
    for i in range(3):
        x[...] = float(i)  # what the recording read, with new values
        graph.launch()
    print(graph.result.shape, counted.item())

# Traces
with tc.trace() as calls:
    for _ in range(3):
        tc.softmax(array)
    tc.gelu(array)
print(calls)  # a table
print(calls.rows()[0].op, sum(row.calls for row in calls.rows()))

# Blocks that move
pool = tc.MemoryPool(quota=2 << 20, device="cpu")
blocks = [pool.allocate(1 << 20) for _ in range(3)]  # more than the quota: one goes to the host
for block in blocks:
    w = pool.pin(block, (512, 512), "float32")  # comes back, and stays while `w` lives
    w[...] = 1.0
    del w
print(pool.stats().evictions, [b.on_device for b in pool.blocks()])

# Tasks
with tc.Scheduler("cpu", max_running=2) as tasks:
    up = tasks.submit(tc.exp, [0.0], qos="guaranteed")
    down = tasks.submit(tc.log, [1.0], after=[up])
    print(down.result())  # [0.]
    print(tasks.decisions()[0].verdict)  # admit

# Launches
if "simt" in tc.devices():
    with tc.dispatch.record():
        tc.softmax(array, device="simt")
    launch = tc.dispatch.recent(1)[0]
    print(launch.device, launch.outcome, launch.grid)  # simt launched (1, 1, 1)
    print(tc.dispatch.stats().in_flight)  # 0

# Tuning
if "simt" in tc.devices():
    tuned = tc.tune(tc.softmax, array, device="simt")  # runs the call, many times
    print(tuned)  # what is fastest, its time, and that of the cost model's choice
    print(tc.explain(tc.softmax, array, device="simt").variant == tuned.variant)  # True

# Copies beside the program
with tc.TransferEngine("cpu") as engine:
    urgent = engine.to(array, "cpu", priority=1)
    print(urgent.tensor.shape)  # usable at once; what reads it waits
    print(urgent.result().tolist() == array.tolist(), urgent.state)  # True completed


def write_weights(path: Path) -> None:
    """A safetensors file of one float32 matrix: the length of a JSON header, the header, the values."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + array.tobytes())


# Weights
with tempfile.TemporaryDirectory() as folder:
    write_weights(Path(folder) / "model.safetensors")
    weights = tc.load_safetensors(folder, device="cpu")
    for name, w in weights.items():
        print(name, w.shape, w.dtype, w.read_only)  # w (2, 3) float32 True
    lazy = tc.load_safetensors(folder, device="cpu", lazy=True, quota=1 << 30)
    print(lazy.stats().loads, (lazy["w"] @ array.T).shape, lazy.stats().loads)  # 0 (2, 2) 1

# Errors
try:
    tc.softmax(array, axis=2)
except ValueError as error:  # a tc.errors.Error too
    print(error)
try:
    tc.relu(np.ones(3))
except tc.errors.Error as error:
    print(type(error).__name__, error)
