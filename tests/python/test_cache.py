# SPDX-License-Identifier: Apache-2.0
"""`tc.cache` shows, checks, empties and carries the folder of compiled kernels."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorcraft as tc

SCRIPT = """
import sys
from pathlib import Path
import numpy as np, tensorcraft as tc
folder, bundle = Path(sys.argv[1]), sys.argv[2]
assert tc.cache.stat().folder == str(folder) and tc.cache.list() == () and tc.cache.clear() == 0
e = tc.explain("relu", np.ones(8, np.float32), arch="sm_90a")
if e.kernels[0].problem:
    print("skip", e.kernels[0].problem)
    raise SystemExit
(kernel,) = tc.cache.list()
assert kernel.signature == e.kernels[0].signature and kernel.arch == "sm_90a" and kernel.bytes > e.kernels[0].code_bytes
stat = tc.cache.stat()
assert (stat.entries, stat.bytes, stat.problem) == (1, kernel.bytes, "")
assert tc.cache.export(bundle) == 1 and tc.cache.export(Path(bundle), arch="sm_90a") == 1
try:
    tc.cache.export(bundle, arch="sm_80")
except FileNotFoundError:
    pass
else:
    raise AssertionError("there is no kernel for sm_80")
assert tc.cache.verify() == tc.cache.Check(good=1, removed=())
file = folder / (kernel.key + ".kernel")
file.write_bytes(file.read_bytes()[:-1])
assert tc.cache.verify() == tc.cache.Check(good=0, removed=(file.name,))
assert tc.cache.import_(bundle) == tc.cache.Import(imported=1, already_there=0)
assert tc.cache.list()[0].key == kernel.key
assert tc.cache.clear() == 1 and tc.cache.list() == ()
print("done")
"""


def test_the_cache_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORCRAFT_CACHE_DIR", str(tmp_path / "cache"))  # read once, so in a process of its own
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "cache"), str(tmp_path / "bundle")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if done.stdout.startswith("skip"):
        pytest.skip(done.stdout)
    assert done.stdout == "done\n"


def stat_of(where: bytes, folder: Path) -> str:
    """The cache folder of a process in `folder` that then goes elsewhere, with TENSORCRAFT_CACHE_DIR=where; as repr()."""
    script = "import os, tensorcraft as tc\ntc.cache.stat()\nos.chdir('/')\nprint(repr(tc.cache.stat().folder))"
    path = b":".join(os.fsencode(os.path.abspath(p)) for p in sys.path)
    environment = {**os.environb, b"TENSORCRAFT_CACHE_DIR": where, b"HOME": os.fsencode(folder / "home"), b"PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_cache_folder_may_be_in_the_home_folder_or_relative(tmp_path: Path) -> None:
    assert stat_of(b"~/k", tmp_path) == repr(str(tmp_path / "home" / "k"))
    assert stat_of(b"rel/k", tmp_path) == repr(str(tmp_path / "rel" / "k"))


def test_the_cache_folder_may_have_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    assert stat_of(os.fsencode(tmp_path) + b"/caf\xe9", tmp_path) == repr(str(tmp_path / "caf\udce9"))


def test_an_error_may_name_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    for call in (tc.load_safetensors, tc.cache.import_):
        with pytest.raises(OSError, match="caf\udce9"):
            call(os.fsencode(tmp_path) + b"/caf\xe9")


def test_a_bundle_that_is_not_there_is_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        tc.cache.import_(tmp_path / "nothing")


def test_explain_on_the_cpu_has_no_kernel() -> None:
    e = tc.explain("relu", np.ones(8, np.float32), device="cpu")
    assert e.kernels == () and e.device == "cpu" and e.variant == "cpu"


def test_explain_for_a_gpu_that_is_not_there() -> None:
    x = np.ones((4096, 64), np.float32)
    e = tc.explain("gemm", x, x.T, bias=np.ones(4096, np.float32), arch="sm_90a")
    assert e.device in ("cuda:0", "sm_90a") and (e.device == "sm_90a" or "cuda:0" in tc.devices())
    assert e.floor_us > 0 and e.flops == 2 * 4096 * 4096 * 64
    accepted = [v for v in e.variants if v.accepted]
    assert all(v.estimate_us >= e.floor_us and v.file.startswith("tensorcraft/ops/gemm/") for v in accepted)
    reasons = {v.name: v.reason for v in e.variants}
    assert "takes 16-bit operands" in reasons["tensor_core"] and not reasons[e.variant]
    assert e.kernels[0].arch == "sm_90a" and e.kernels[0].block[0] > 0
    if not e.kernels[0].problem:
        kernel = e.kernels[0]
        assert kernel.registers > 8 and 0 < kernel.occupancy <= 1 and kernel.limited_by
        assert f"{kernel.registers} registers a thread" in str(e)
    assert len(e.kernels) == 1
    shared = tc.explain("sum", np.ones((256, 1024), np.float32), arch="sm_90a")
    first, second = shared.kernels
    assert first.grid[0] > second.grid[0]
    assert tc.explain(tc.gemm, x, x.T, arch="sm_90a") == tc.explain("matmul", x, x.T, arch="sm_90a")
    with pytest.raises(TypeError, match="explain: op must be an operator's function or name"):
        tc.explain(tc.concat, [x])
    with pytest.raises(ValueError, match='architecture "sm_1" is not known'):
        tc.explain("relu", x, arch="sm_1")
