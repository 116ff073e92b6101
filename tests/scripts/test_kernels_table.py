# SPDX-License-Identifier: Apache-2.0
"""What the compile gate measured becomes the baseline and its tables."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import kernels_table

COLUMNS = ["registers", "shared_bytes", "spill_bytes", "stack_bytes", "code_bytes", "threads", "min_blocks"]
SMALL, LARGE = [40, 0, 0, 0, 1280, 128, 1], [50, 2048, 8, 8, 900, 256, 2]


def kernels(nvrtc, **archs):
    texts = {arch: dict.fromkeys(rungs, f"of {nvrtc}") for arch, rungs in archs.items()}
    return {"nvrtc": nvrtc, "columns": COLUMNS, "texts": texts, "kernels": archs}


def test_kernels_become_one_row_a_rung_and_one_an_architecture(tmp_path):
    path = tmp_path / "kernels.json"
    hopper = {"gemm_naive": {"float32,float32 a": SMALL, "bfloat16,float32 b": LARGE}}
    path.write_text(json.dumps(kernels("13.0", sm_90a=hopper, sm_120={"add": {"int8 a": SMALL}})))
    rungs = kernels_table.table("rungs", path).splitlines()
    row = "| `gemm_naive` | float32, bfloat16 | 2 | 40 to 50 | 0 to 2,048 | 0 to 8 | 900 to 1,280 | 128 x 1, 256 x 2 |"
    assert rungs[2:] == [row]
    architectures = kernels_table.table("architectures", path).splitlines()
    assert architectures[2:] == ["| sm_90a | 2 | 1 | 50 | 2,048 | 1,280 |", "| sm_120 | 1 | 0 | 40 | 0 | 1,280 |"]
    assert kernels_table.table("compiler", path) == "Compiled by NVRTC 13.0.\n"


def test_an_accepted_measurement_replaces_its_architectures(tmp_path):
    baseline, measured = tmp_path / "kernels.json", tmp_path / "measured.json"
    measured.write_text(json.dumps(kernels("13.0", sm_80={"a": {"int8": SMALL}}, sm_90a={"b": {"int8": LARGE}})))
    kernels_table.accept(measured, baseline)
    assert json.loads(baseline.read_text()) == json.loads(measured.read_text())
    assert '\n    "int8": [50,2048,8,8,900,256,2]\n' in baseline.read_text()
    again = {**kernels("13.0", sm_80={"c": {"int8": LARGE}}), "texts": {"sm_80": {"c": "of 13.0, again"}}}
    measured.write_text(json.dumps(again))
    kernels_table.accept(measured, baseline)
    accepted = json.loads(baseline.read_text())
    assert accepted["kernels"] == {"sm_80": {"c": {"int8": LARGE}}, "sm_90a": {"b": {"int8": LARGE}}}
    assert accepted["texts"] == {"sm_80": {"c": "of 13.0, again"}, "sm_90a": {"b": "of 13.0"}}


def test_old_figures_of_changed_texts_are_not_accepted(tmp_path):
    measured = tmp_path / "measured.json"
    measured.write_text(json.dumps({**kernels("13.0", sm_90a={}), "left_out": {"sm_90a": 3}}))
    with pytest.raises(SystemExit, match="left out 3 kernels for sm_90a: measure all with TC_TEST_FULL=1"):
        kernels_table.accept(measured, tmp_path / "kernels.json")


def test_a_part_measured_by_another_compiler_is_not_accepted(tmp_path):
    baseline, measured = tmp_path / "kernels.json", tmp_path / "measured.json"
    baseline.write_text(json.dumps(kernels("13.0", sm_80={}, sm_90a={})))
    measured.write_text(json.dumps(kernels("13.1", sm_80={})))
    with pytest.raises(SystemExit, match="did not measure sm_90a"):
        kernels_table.accept(measured, baseline)
    measured.write_text(json.dumps(kernels("13.1", sm_80={}, sm_90a={})))
    kernels_table.accept(measured, baseline)
    assert json.loads(baseline.read_text())["nvrtc"] == "13.1"
