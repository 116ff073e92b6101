"""Time of small calls from Python on the CPU and of the import over NumPy's, of one package or of two side by side.

usage: python_call.py FOLDER [BEFORE]    each holds a package `tensorcraft`, as build/release/python does

Packages take turns, each in a process of its own, which is replaced now and then: the place of memory changes times
too. With torch there, calls on its tensors are among them: the function, that of tensorcraft.torch, and the operator of
torch.ops. A turn has the time of its fastest batch, which other work on the machine disturbs least; printed are medians over
all turns, and that of the ratios of neighbouring turns.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from timeit import timeit
from typing import Any

PROCESSES, TURNS, BATCHES, CALLS, IMPORTS = 12, 10, 10, 100, 60
BYTECODE = tempfile.TemporaryDirectory()


def cases() -> dict[str, Callable[[], Any]]:
    import numpy as np

    import tensorcraft as tc

    a, b, o = (np.ones(16, np.float32) for _ in range(3))
    ta, tb, to = (tc.asarray(x, device="cpu") for x in (a, b, o))
    sa, sb, so = (tc.asarray(x, device="simt") for x in (a, b, o))
    return {
        "add(a, b), NumPy": lambda: tc.add(a, b),
        "add(a, b, out=o), NumPy": lambda: tc.add(a, b, out=o),
        "add(a, a, out=a), NumPy": lambda: tc.add(a, a, out=a),
        "softmax(a), NumPy": lambda: tc.softmax(a),
        "add(a, 1.0), NumPy": lambda: tc.add(a, 1.0),
        "add(a, b), Tensor": lambda: tc.add(ta, tb),
        "add(a, b, out=o), Tensor": lambda: tc.add(ta, tb, out=to),
        "softmax(a), Tensor": lambda: tc.softmax(ta),
        "a + b, Tensor": lambda: ta + tb,
        "add(a, b, out=o), Tensor of simt": lambda: tc.add(sa, sb, out=so),
        **(torch_cases() if find_spec("torch") and find_spec("tensorcraft.torch") else {}),
    }


def torch_cases() -> dict[str, Callable[[], Any]]:
    import tensorcraft.torch as tct
    import torch

    import tensorcraft as tc

    x, entry = torch.ones(16), torch.ops.tensorcraft.softmax
    torch.set_grad_enabled(False)  # as in inference; else each call looks for arrays that require gradients
    return {
        "softmax(x), torch": lambda: tc.softmax(x),
        "softmax(x), tensorcraft.torch": lambda: tct.softmax(x),
        "softmax(x), torch.ops": lambda: entry(x),
    }


def work() -> None:
    """Answers each line of stdin with the microseconds of each case."""
    todo = cases()
    for call in todo.values():
        timeit(call, number=CALLS)
    for _ in sys.stdin:
        times = {name: min(timeit(call, number=CALLS) for _ in range(BATCHES)) for name, call in todo.items()}
        print(json.dumps({name: seconds / CALLS * 1e6 for name, seconds in times.items()}), flush=True)


def python(folder: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": folder,
        "TENSORCRAFT_DEVICE": "cpu",
        "PYTHONPYCACHEPREFIX": BYTECODE.name,
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a user's second import compiles nothing
    return subprocess.Popen([sys.executable, *arguments], env=environment, text=True, **options)


def times_of_calls(folders: list[str]) -> dict[str, list[list[float]]]:
    """Of each case the times of each folder."""
    times: dict[str, list[list[float]]] = {}
    for _ in range(PROCESSES):
        workers = [
            python(folder, __file__, "--work", stdin=subprocess.PIPE, stdout=subprocess.PIPE) for folder in folders
        ]
        for _ in range(TURNS):
            for i, worker in enumerate(workers):
                print("turn", file=worker.stdin, flush=True)
                assert worker.stdout is not None
                for name, microseconds in json.loads(worker.stdout.readline()).items():
                    times.setdefault(name, [[] for _ in folders])[i].append(microseconds)
        for worker in workers:
            worker.communicate()
    return times


def times_of_imports(folders: list[str]) -> list[list[float]]:
    """Milliseconds of the import of each folder once NumPy is there."""
    code = "import numpy, timeit; print(timeit.timeit('import tensorcraft', number=1) * 1e3)"
    times: list[list[float]] = [[] for _ in folders]
    for _ in range(IMPORTS + 1):
        for i, folder in enumerate(folders):
            text, _ = python(folder, "-c", code, stdout=subprocess.PIPE).communicate()
            times[i].append(float(text))
    return [of_folder[1:] for of_folder in times]  # the first compiles


def row(name: str, unit: str, times: list[list[float]]) -> str:
    medians = [statistics.median(of_folder) for of_folder in times]
    texts = [f"{median:8.3f} {unit}" for median in medians]
    if len(times) == 2:
        ratio = statistics.median(now / before for now, before in zip(*times))
        texts.append(f"{100 * (ratio - 1):+6.1f} %")
    return f"{name:36}{''.join(texts)}"


def main() -> None:
    if sys.argv[1:] == ["--work"]:
        return work()
    folders = [os.path.abspath(folder) for folder in sys.argv[1:]]
    if len(folders) not in (1, 2):
        sys.exit(__doc__)
    print(row("import over numpy", "ms", times_of_imports(folders)))
    for name, times in times_of_calls(folders).items():
        if all(times):  # every package has it
            print(row(name, "us", times))


if __name__ == "__main__":
    main()
