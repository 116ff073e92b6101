# SPDX-License-Identifier: Apache-2.0
"""Fills `waits` of docs/waiting.md: every place where a call waits for a GPU, and what to do instead.

Each row names the lines of the library that wait on its behalf. A line that waits and stands in no row, or a row
that names a line that is gone, fails the test: who adds a wait documents it here.
"""

import re
from typing import NamedTuple

import regions


class Wait(NamedTuple):
    """A row of the page, and the lines behind it, as `file: text of the line`."""

    kind: str  # asked, values, memory, end
    calls: str
    waits_for: str
    instead: str
    lines: tuple[str, ...]


ROWS = [
    Wait("asked", "`tc.synchronize(device)`; `synchronize(Device)`", "all work of the device, and its copies",
         "an event of what is needed", (
             "bindings/python/module.cpp: if (d.is_cuda()) TransferEngine::synchronize(d);",
             "bindings/python/module.cpp: synchronize(d);",
             "python/tensorcraft/_devices.py: native.synchronize(native.default_device() if device is None else device)",
             "tensorcraft/cuda/device.cpp: cuda::require_driver().context_synchronize();",
             "tensorcraft/runtime/transfer/engine.cpp: if (made) made->synchronize();")),
    Wait("asked", "`Stream.synchronize()`; `StreamRef::synchronize()`", "the stream",
         "`Event.wait(stream)`: another stream waits, the host goes on", (
             "bindings/python/stream.cpp: s.stream.ref().synchronize();",
             "tensorcraft/cuda/stream.cpp: cuda::require_driver().stream_synchronize(handle_);")),
    Wait("asked", "`Event.synchronize()`, `Event.elapsed_ms(begin, end)`", "the event, for `elapsed_ms` the later one",
         "`event.done` asks and does not wait", (
             "bindings/python/event.cpp: e.synchronize();",
             "tensorcraft/cuda/event.cpp: cuda::require_driver().event_synchronize(handle_);",
             "tensorcraft/cuda/event.cpp: end.synchronize();",
             "tensorcraft/cuda/timer.cpp: return Event::elapsed_ms(begin_, end_);")),
    Wait("asked", "`Event.synchronize(value)`, and `Event.wait(value)` of an event of the CPU", "a count, until it is at least so high",
         "`timeout=`, or `event.value`", (
             "bindings/python/event.cpp: e.synchronize(least, limit);",
             "tensorcraft/cuda/event.cpp: if (!device_.is_cuda()) return wait_now(f.line(), value, timeout);",
             "tensorcraft/cuda/event.cpp: wait_now(line, value, timeout);")),
    Wait("asked", "`copy.result()`, `engine.synchronize()`, `engine.close()` of [transfers](transfers.md); `Transfer::wait()`", "that copy, or all",
         "`add_done_callback`, `await copy`", (
             "bindings/python/transfer.cpp: transfer.wait();",
             "tensorcraft/runtime/transfer/engine.hpp: void await_resume() const { transfer.wait(); }",
             "tensorcraft/runtime/transfer/cuda_copy_device.cpp: void synchronize(StreamRef lane) override { lane.synchronize(); }",
             "tensorcraft/runtime/transfer/core.cpp: static_cast<void>(error_of([&] { device_->synchronize(lane.stream); }));")),
    Wait("asked", "rows of `tc.trace()`, a file of `tensorcraft trace`", "what was recorded; at its first call a trace file times the device's clock",
         "read them at the end", (
             "tensorcraft/op/launch/trace.cpp: ? double(Event::elapsed_ms(*call.start_event, *call.end_event))",
             "tensorcraft/runtime/trace/trace_log.cpp: event.synchronize();",
             "tensorcraft/runtime/trace/trace_log.cpp: const std::chrono::duration<double, std::milli> since(Event::elapsed_ms(epoch.event, event));")),
    Wait("asked", "`tc.tune`, `tensorcraft tune`", "each run that is timed", "tune before the program serves", (
        "tensorcraft/diagnose/tune.cpp: if (stream_.handle()) stream_.synchronize();",
        "tensorcraft/diagnose/tune.cpp: synchronize(device);  // what the arrays come from")),
    Wait("asked", "the end of an executor of a [scheduler](scheduler.md)", "tasks that run", "close it once", (
        "tensorcraft/runtime/scheduler/executor.cpp: if (task.done) task.done->synchronize();",)),
    Wait("values", "`numpy()`, `item()`, `tolist()`, `bool(t)`, `int(t)`, `print(t)`, `to(\"cpu\")`, `to(\"cuda\")` of host memory, pickling; `to_vector`, `copy_bytes`",
         "the stream, so that the values are there and the source may change",
         "`to(device, non_blocking=True)`, or [transfers](transfers.md); keep numbers on the device", (
             "tensorcraft/runtime/memory/tensor.cpp: if (!to.device().is_cuda() || !from.device().is_cuda()) stream.synchronize();",
             "python/tensorcraft/_protocols.py: return _restored, (values.numpy(), self.dtype.name, self.device)",
             "python/tensorcraft/_methods.py: return (_ops.astype(self, DType.float32) if self.dtype in _NOT_IN_NUMPY else self).numpy()",
             "python/tensorcraft/_methods.py: return _host_values(self).item()",
             "python/tensorcraft/sparse.py: arrays = tuple(t.numpy().copy() for t in (data, self.indices, self.indptr))")),
    Wait("values", "a call on NumPy arrays or lists that computes on a GPU: its result is NumPy's", "that call",
         "give it arrays of the device", (
             "python/tensorcraft/_arguments.py: return result.numpy()",
             "python/tensorcraft/sparse.py: return result if dense is x else result.numpy()",
             "python/tensorcraft/sparse.py: return result.numpy() if dense is not x else from_dlpack(type(x), result)")),
    Wait("values", "`to(\"cuda:1\")` of a tensor of `cuda:0`", "both streams, piece by piece, by way of the host",
         "copy once, not in a loop", (
             "tensorcraft/runtime/memory/tensor.cpp: stream.synchronize();  // it holds, or waits for, what was to happen before the copy",
             "tensorcraft/runtime/memory/tensor.cpp: source.synchronize();",
             "tensorcraft/runtime/memory/tensor.cpp: target.synchronize();")),
    Wait("values", "a bool mask as a key, `nonzero`, `repeat` with an array: results whose shape is a value", "one number",
         "`where`, which keeps the shape", (
             "python/tensorcraft/_indexing.py: count = int(upto._select(0, flat.size - 1).item())",
             "python/tensorcraft/_manipulation.py: total = int(ends._select(0, ends.size - 1).item())",
             "python/tensorcraft/_manipulation.py: if bool(_ops.any(_ops.less(times, 0)).item()):")),
    Wait("values", "reading a host array that a GPU call wrote, such as one of `tc.memory.pinned`", "the device of that call",
         "read it once, after an event", (
             "bindings/python/memory.cpp: if (used_by_ >= 0) wait_for(Device::cuda(std::exchange(used_by_, -1)));",)),
    Wait("values", "a call of the host on an array that a copy still writes or reads", "that copy",
         "on a GPU the stream waits instead", (
             "bindings/python/memory.cpp: one.transfer.wait();",)),
    Wait("values", "making a matrix of `tc.sparse`", "the device: its arrays are checked and analysed",
         "make it once; products do not wait", (
             "tensorcraft/sparse/matrix.cpp: if (device.is_cuda()) synchronize(device);",)),
    Wait("values", "loading weights, and `finish` of one", "the copies of that tensor",
         "`keys()` and shapes are there at once", (
             "tensorcraft/runtime/safetensors/file.cpp: if (uploads_.size() >= kHostCopies) uploads_[uploads_.size() - kHostCopies].transfer.wait();",
             "tensorcraft/runtime/safetensors/file.cpp: upload.transfer.wait();")),
    Wait("values", "a [KV transfer](kv_transfer.md) from or to pageable memory of the host", "the stream, as the host moves what the indices say",
         "`tc.memory.pinned`, which the GPU reads and writes itself", (
             "tensorcraft/ops/transfer_hicache/transfer_hicache_pageable.cpp: stream.synchronize();",
             "tensorcraft/ops/transfer_hicache/transfer_hicache_pageable.cpp: call_.stream.synchronize();",
             "tensorcraft/ops/transfer_hicache/transfer_hicache_pageable.cpp: for (const Pending& one : in_) one.transfer.wait();",
             "tensorcraft/ops/transfer_hicache/transfer_hicache_pageable.cpp: for (const Pending& one : out_) one.transfer.wait();")),
    Wait("memory", "an allocation while the [pool](memory.md) is short, `trim`, `set_quota`", "work on the memory that is to serve, or go back",
         "a quota that fits, or fewer streams", (
             "tensorcraft/runtime/memory/pool.cpp: uses, [&](Use use) { return timeline_.passed(use) || (may_wait && timeline_.wait(use)); });",
             "tensorcraft/runtime/memory/timeline.cpp: mark->wait();",
             "tensorcraft/runtime/memory/cuda_memory_device.cpp: event_.synchronize();")),
    Wait("memory", "the last name of an array that another package shares, or its use on another stream", "the device, since its order is not known",
         "keep it alive over the loop", (
             "bindings/python/memory.cpp: if (shared_) wait_for(device_);  // else the tensor goes back in the order of its stream",
             "bindings/python/memory.cpp: if (shared_ || recorded_) return wait_for(device_);",
             "bindings/python/memory.cpp: synchronize(device);")),
    Wait("memory", "the end of a [graph](graphs.md) and of its recording", "the device", "keep the graph", (
        "bindings/python/graph.cpp: wait_for(Device::cuda(stream_.device()));",)),
    Wait("memory", "memory and kernels back to the driver: `trim`, the end of a pool, of page-locked memory, of a kernel of your own",
         "the driver may wait for the device", "keep them", (
             "tensorcraft/cuda/launch.cpp: cuda::quietly_on(device_, [this](const Driver& d) { d.library_unload.quiet(library_); });",
             "tensorcraft/cuda/memory.cpp: d.mem_free.quiet(address(pointer));",
             "tensorcraft/cuda/memory.cpp: quietly_on(0, [&](const Driver& d) { d.mem_free_host.quiet(pointer); });")),
    Wait("memory", "each allocation and release of a pool with `PoolOptions::checks`", "its stream", "for debugging alone", (
        "tensorcraft/runtime/memory/memory_check.cpp: device_.synchronize(stream);",
        "tensorcraft/runtime/memory/cuda_memory_device.cpp: void synchronize(StreamRef stream) override { stream.synchronize(); }")),
    Wait("end", "a launch on a stream with a limit of [dispatch](dispatch.md)", "the oldest launches", "no limit, which is the default", (
        "tensorcraft/runtime/dispatch/controller.cpp: first->wait();",)),
    Wait("end", "the first call of a kernel", "the compiler, and the driver that loads it, which may wait for the device", "[warm up](cache.md)", (
        "tensorcraft/jit/kernel.cpp: if (context.valid()) context.wait();",)),
    Wait("end", "a copy whose event the driver refused", "its lane: the one way left to know that it ended", "nothing to do", (
        "tensorcraft/runtime/transfer/core.cpp: if (device_->usable() && !error_of([&] { device_->synchronize(lane.stream); })) return true;",
        "tensorcraft/runtime/transfer/core.cpp: if (unmarked && !error_of([&] { device_->synchronize(lane.stream); })) {")),
]  # fmt: skip

HEADS = {
    "asked": "Calls that are there to wait",
    "values": "Values that the host reads",
    "memory": "Memory",
    "end": "Starts, limits and faults",
}
WAITS = re.compile(
    r"\b(context|stream|event)_synchronize\(|\b(mem_free|mem_free_host|library_unload)\.\w+\(|\bsynchronize\(|"
    r"(?<![.>])\bwait_for\(|\bwait_now\(|\b(mark|first|context|transfer)(->|\.)wait\(\)|timeline_\.wait\(|\belapsed_ms\(|"
    r"\.numpy\(\)|\.item\(\)"
)
DECLARES = re.compile(
    r"((static|virtual) )?(void|float|def) ?[\w:]*\b(synchronize|wait_for|wait_now|elapsed_ms)\([^{}]*([;:{]|= 0;)$|void synchronize.* const;$"
)
LOOKED_AT = {"tensorcraft": (".cpp", ".hpp"), "bindings/python": (".cpp", ".hpp"), "python/tensorcraft": (".py",)}
# What waits for no GPU, and why.
ELSEWHERE = {
    "tensorcraft/simt/": "the emulator has no queue",
    "tensorcraft/runtime/transfer/host_copy_device": "copies of the host",
    "tensorcraft/runtime/memory/host_memory_device": "memory of the host",
    "python/tensorcraft/_explain.py: like = ": "lists, which the host has",
    "python/tensorcraft/_join.py: given = ": "lists, which the host has",
    "python/tensorcraft/linalg.py: a, b = ": "lists, which the host has",
}


def waiting_lines(root=regions.ROOT):
    """Every line of the library that may wait for a GPU, as `file: text`."""
    for folder, suffixes in LOOKED_AT.items():
        for path in sorted((root / folder).rglob("*")):
            for text in path.read_text().splitlines() if path.suffix in suffixes else ():
                line = f"{path.relative_to(root).as_posix()}: {text.strip()}"
                code = re.sub(r"^(//|#).*", "", re.sub(r'"(\\.|[^"\\])*"', '""', text.strip()))
                if WAITS.search(code) and not DECLARES.match(code) and not line.startswith(tuple(ELSEWHERE)):
                    yield line


def problems(found, rows=ROWS):
    """Waits that the page does not know, and lines of the page that are gone."""
    said = {line for row in rows for line in row.lines}
    yield from (
        f"{line}\n  waits for a GPU: say so in a row of scripts/waits_table.py" for line in found if line not in said
    )
    yield from (
        f"{line}\n  is in a row of scripts/waits_table.py, and the code has no such line" for line in said - set(found)
    )


def all_problems():
    return problems(list(waiting_lines()))


def table(_=""):
    lines = []
    for kind, head in HEADS.items():
        lines += [f"### {head}", "", "| call | waits for | instead | in |", "| --- | --- | --- | --- |"]
        for row in (row for row in ROWS if row.kind == kind):
            files = dict.fromkeys(line.split(": ", 1)[0] for line in row.lines)
            links = ", ".join(f"[{file.rsplit('/', 1)[1]}](../{file})" for file in files)
            lines.append(f"| {row.calls} | {row.waits_for} | {row.instead} | {links} |")
        lines.append("")
    return "\n".join(lines) + "\n"
