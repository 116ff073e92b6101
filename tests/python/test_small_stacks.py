# SPDX-License-Identifier: Apache-2.0
"""Calls on threads with stacks of 64 KiB: what needs more takes a thread of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tensorcraft as tc

HERE = Path(__file__).resolve().parent

ON_A_SMALL_STACK = """
import sys, threading
from pathlib import Path
import numpy as np
import tensorcraft as tc

threading.stack_size(64 << 10)

def on_a_small_stack(name, call):
    print(name, flush=True)  # the last one is the one that ended the process
    results, errors = [], []
    def run():
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
"""

OPERATORS = """
from valid_calls import valid_call

def arrays(result):
    every = result if isinstance(result, (tuple, list)) else [result]
    return [r.numpy() if isinstance(r, tc.Tensor) else r for r in every]

for name, operator in tc.ops().items():
    def call():
        positional, named = valid_call(name)
        put = lambda v: tc.asarray(v, device=sys.argv[1]) if isinstance(v, np.ndarray) else v
        return operator.function(*map(put, positional), **{k: put(v) for k, v in named.items()})
    small, usual = arrays(on_a_small_stack(name, call)), arrays(call())
    for a, b in zip(small, usual, strict=True):
        np.testing.assert_array_equal(a, b)
"""

TOUR = """
import runtime_tour

runtime_tour.write_weights(Path(sys.argv[1]))
for name, stop in runtime_tour.stops(Path(sys.argv[1])).items():
    on_a_small_stack(name, stop)
"""


def run(text: str, argument: str, cache: Path) -> None:
    environment = {
        **os.environ,
        "TENSORCRAFT_CACHE_DIR": str(cache),
        "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    done = subprocess.run(
        [sys.executable, "-c", ON_A_SMALL_STACK + text, argument],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout.splitlines()[-1:]}: {done.stderr[-4000:]}"


@pytest.mark.parametrize("place", [d for d in tc.devices() if not d.startswith("cuda")])
def test_every_operator_gives_its_result(place: str, tmp_path: Path) -> None:
    run(OPERATORS, place, tmp_path)


@pytest.mark.skipif("simt" not in tc.devices(), reason="no emulator")
def test_the_runtime_and_the_compilers_work(tmp_path: Path) -> None:
    run(TOUR, str(tmp_path), tmp_path / "cache")
