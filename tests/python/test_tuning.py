# SPDX-License-Identifier: Apache-2.0
"""`tc.tune`: in a process of its own, as the folder of what is tuned is read once."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import numpy as np
import tensorcraft as tc

x = np.random.default_rng(1).standard_normal((8, 256)).astype(np.float32)
before = tc.explain(tc.softmax, x)
assert before.tuned is None
result = tc.tune(tc.softmax, x)
assert result.op == "softmax" and result.call == "x=float32[8,256] out=float32[8,256]"
assert result.model_variant == before.variant and 0 < result.us <= result.model_us
assert result.speedup >= 1 and result.trials[0].variant == before.variant and result.trials[0].us > 0
assert str(result).startswith("softmax: ") and result.end in str(result)
after = tc.explain("softmax", x)
assert after.variant == result.variant and after.tuned.us == result.us and ", tuned: " in str(after)
def check_explain(device):  # with what was tuned, and for a layout of out that was not
    for out in (None, np.zeros((8, 512), np.float32)[:, ::2]):
        said = tc.explain(tc.softmax, x, out=out, device=device)
        with tc.trace() as log:
            tc.softmax(x, out=out, device=device)
        assert [row.variant for row in log.rows()] == [said.variant]
        assert (said.tuned is None) == (out is not None)

check_explain("cpu")
again = tc.tune("softmax", x)
assert again.end == "known" and again.trials == () and again.us == result.us
assert tc.tune(tc.softmax, x, again=True, every=True, seconds=5.0).end != "known"
assert np.allclose(tc.softmax(x).sum(axis=-1), 1, atol=1e-5)

product = tc.tune(tc.gemm, x, x, transpose_b=True)
assert product.call == "a=float32[8,256] b=float32[8,256] out=float32[8,8] transpose_b=True", product.call
assert tc.explain(tc.gemm, np.zeros((4096, 4096), np.float32), np.zeros((4096, 4096), np.float32), arch="sm_90a").prior.startswith("rule large")

for wrong, kind, text in (
    (lambda: tc.tune(tc.gemm, x, x, transpose_b=True, config={"tile_m": 64}), ValueError, "gemm: tuning finds config"),
    (lambda: tc.tune(tc.gemm, x, x, transpose_b=True, batch_invariant=True), tc.Unsupported, "leaves the choice"),
    (lambda: tc.tune(tc.softmax, x, variant="cpu"), TypeError, "tune: variant is what tuning chooses"),
    (lambda: tc.tune(tc.softmax, x, axis=7), ValueError, "axis"),
    (lambda: tc.tune("softmaxx", x), KeyError, "softmaxx"),
):
    try:
        wrong()
    except kind as problem:
        assert text in str(problem), problem
    else:
        raise AssertionError(text)
if "simt" in tc.devices():
    there = tc.tune(tc.softmax, x, device="simt")
    assert len(there.trials) > 1 and there.device.startswith("SIMT")
    check_explain("simt")
print("tuned", result.variant)
"""


def test_a_call_is_tuned_and_what_is_found_is_kept(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path),
                   "TENSORCRAFT_CACHE_DIR": str(tmp_path), "TENSORCRAFT_DEVICE": "cpu"}  # fmt: skip
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "tuned").glob("*.tuned"))
    another = "import numpy as np, tensorcraft as tc; print(tc.explain(tc.softmax, np.ones((8, 256), np.float32)).tuned is not None)"
    done = subprocess.run([sys.executable, "-c", another], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr
