# SPDX-License-Identifier: Apache-2.0
"""`tensorcraft bench` on the CPU: rows, files, regressions, exit codes, the progress bar."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from process import ROOT, Run, open_terminal

QUICK = ("--device", "cpu", "--seconds", "0.01", "--warmup", "0.01")
ROW = {
    "op", "case", "shape", "dtype", "options", "group", "candidate", "variant", "note", "chosen", "timing", "cache", "median_us", "p10_us", "p90_us",
    "runs", "bytes", "flops", "floor_us", "gbs", "tflops", "error",
}  # fmt: skip


@pytest.fixture
def has_runner(run: Run) -> bool:
    done = run("bench", "relu", "8", *QUICK)
    if done.code == 3:
        assert "Google Benchmark, which runs the repetitions, is missing" in done.err
        pytest.skip("this build has no Google Benchmark")
    return True


def measured(run: Run, *arguments: str) -> Any:
    done = run("bench", *arguments, *QUICK, "--json")
    assert done.code == 0, done.out + done.err
    return done.json()


def test_a_call_beside_a_copy(run: Run, has_runner: bool) -> None:
    results = measured(run, "softmax", "--shape", "64x128", "--variant", "all", "--peer", "all")
    assert results["schema"] == 1 and results["skipped"] == []
    assert {"processor", "tensorcraft"} <= set(results["machine"]) and results["device"]["arch"] == "cpu"
    assert results["timing"]["data"] == "standard normal" and results["timing"]["warmup_s"] == 0.01
    rows = results["rows"]
    assert all(set(row) == ROW for row in rows)
    assert [r["candidate"] for r in rows] == ["tensorcraft"] * (len(rows) - 1) + ["copy"]
    assert {r["variant"] for r in rows} == {"cpu", "reference", "onednn", ""} - ({"onednn"} if len(rows) == 3 else set())
    assert [r["chosen"] for r in rows].count(True) == 1
    for row in rows:
        assert row["error"] is None and 0 < row["p10_us"] <= row["median_us"] <= row["p90_us"] and row["runs"] >= 5
        assert row["bytes"] == 2 * 64 * 128 * 4 and row["gbs"] == pytest.approx(row["bytes"] / row["median_us"] / 1e3)
    text = run("bench", "softmax", "64x128", *QUICK).out
    assert text.splitlines()[0].split("  ")[-1].strip() == "vs copy" and "floor us" not in text
    assert re.search(r" [\d.]+ GFLOPS ", text)
    assert "softmax 64x128 float32" in text and "wall, " in text and "copy " in text


def test_short_names_of_dtypes_and_options(run: Run, has_runner: bool) -> None:
    rows = measured(run, "rms_norm", "--shape", "8x64", "--option", "weight=64", "--dtype", "bf16")["rows"]
    assert (rows[0]["dtype"], rows[0]["case"], rows[0]["options"]) == ("bfloat16", "8x64 bfloat16 weight=64", "weight=64")


def test_a_library_that_is_missing_is_said_once(run: Run, has_runner: bool, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"onednn": "/nonexistent/libdnnl.so"}')
    arguments = ("gemm", "8x8", "8x8", "--variant", "all", *QUICK)
    text = run("bench", *arguments, TENSORCRAFT_CONFIG=str(tmp_path / "config.json")).out
    assert text.count("onednn: not found: ") == 1


def test_a_suite_goes_to_a_file_and_is_its_own_baseline(run: Run, has_runner: bool, tmp_path: Path) -> None:
    file, raw = tmp_path / "results.json", tmp_path / "raw.json"
    done = run("bench", "--suite", "smoke", *QUICK, "--raw", str(raw), "--json", str(file))
    results = json.loads(file.read_text())
    assert done.code == 0 and "gemm 64x256 256x64 float32" in done.out
    names = {row["op"] for row in results["rows"]}
    assert {"softmax", "layer_norm", "gemm"} <= names and all(s in done.out for s in results["skipped"])
    repetitions = [b for b in json.loads(raw.read_text())["benchmarks"] if b["run_type"] == "iteration"]
    assert len(repetitions) == sum(row["runs"] for row in results["rows"])
    gemm = [b for b in repetitions if b["name"].startswith("gemm ")]
    for b in gemm:
        flops = None if b["run_name"].startswith("gemm 64x256 256x64 float32 copy") else 2 * 64 * 64 * 256
        assert b.get("GFLOPS") == (flops and pytest.approx(flops / b["real_time"] / 1e3, rel=1e-6))
    same = run("bench", "--results", str(file), "--fail-on-regression", str(file))
    assert same.code == 0 and "no ratio fell" in same.out
    for row in results["rows"]:
        if row["op"] == "gemm" and row["chosen"]:
            row["median_us"] /= 2
    better = tmp_path / "better.json"
    better.write_text(json.dumps(results))
    worse = run("bench", "--results", str(file), "--fail-on-regression", str(better), "--json")
    fallen = [c for c in worse.json()["changes"] if c["change"] == "fell"]
    assert worse.code == 1 and [c["what"] for c in fallen] == ["gemm 64x256 256x64 float32, warm, chosen, against copy"]
    assert fallen[0]["before"] == pytest.approx(2 * fallen[0]["now"])
    tolerant = run("bench", "--results", str(file), "--fail-on-regression", str(better), "--tolerance", "0.6")
    assert tolerant.code == 0


def test_the_share_of_the_peak_and_means_of_groups_are_printed(run: Run, tmp_path: Path) -> None:
    document = json.loads(Path(__file__).with_name("made_up_results.json").read_text())
    for row in document["rows"]:
        row["group"] = "products" if row["op"] == "gemm" else ""
    file = tmp_path / "results.json"
    file.write_text(json.dumps(document))
    lines = [re.split(r"  +", line.strip()) for line in run("bench", "--results", str(file)).out.splitlines()]
    heads = lines[0]
    ours = next(line for line in lines if "tma *" in line)
    assert ours[heads.index("of peak") - heads.index("median us") + ours.index("tma *") + 1] == "48.42 %"
    assert not any("%" in cell for line in lines if line[0].startswith(("softmax", "add")) for cell in line)  # bytes limit them
    assert ["geometric mean", "vs", "ratio", "smallest", "cases", "slower in"] in lines
    assert ["products", "cublaslt", "0.669", "0.669", "1", "1"] in lines
    assert ["softmax", "copy", "0.8794", "0.8125", "2", "a bound"] in lines
    assert any(line[:2] == ["all operators", "torch"] for line in lines)


def test_a_run_that_is_cut_off_leaves_what_it_measured(
    command: Path, environment: dict[str, str], has_runner: bool, tmp_path: Path
) -> None:
    file = tmp_path / "results.json"
    arguments = [command, "bench", "--suite", "smoke", "--device", "cpu", "--seconds", "0.2", "--warmup", "0", "--json", file]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, env=environment) as process:
        until = time.monotonic() + 60
        while not file.exists() and time.monotonic() < until:
            time.sleep(0.02)
        process.kill()
    results = json.loads(file.read_text())
    assert {r["op"] for r in results["rows"]} >= {"silu"} and "l2_normalize" not in {r["op"] for r in results["rows"]}


def test_a_part_of_a_suite(run: Run, has_runner: bool) -> None:
    rows = measured(run, "--suite", "smoke", "--only", "norm")["rows"]
    assert {r["op"] for r in rows} == {"layer_norm", "rms_norm", "l2_normalize"}
    assert {r["group"] for r in rows} == {"small, on any machine"}


def test_a_row_on_one_side_only_is_said(run: Run, tmp_path: Path, has_runner: bool) -> None:
    results = measured(run, "relu", "64")
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(results))
    results["rows"][0]["case"] = results["rows"][1]["case"] = "65 float32"
    new.write_text(json.dumps(results))
    done = run("bench", "--results", str(new), "--fail-on-regression", str(old))
    assert done.code == 0
    assert "only now  relu 65 float32, warm, chosen" in done.out and "only before  relu 64 float32, warm, chosen" in done.out


def test_a_variant_that_declines_is_a_row_with_an_error(run: Run, has_runner: bool) -> None:
    done = run("bench", "softmax", "0x4", "--variant", "all", *QUICK, "--json")
    assert done.code in (0, 1) and all(set(row) == ROW for row in done.json()["rows"])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "name an operator and its shapes, or a suite"),
        (("relu", "4", "--suite", "smoke"), 2, "or a suite"),
        (("relux", "4"), 2, 'no operator is named "relux"'),
        (("relu", "4x", *QUICK), 2, "relu: x must be a shape"),
        (("relu", "4", "4", *QUICK), 2, "relu: takes 1 shape (x), got 2"),
        (("relu", "4", "--variant", "best", *QUICK), 2, 'no variant of cpu is named "best"'),
        (("relu", "4", "--peer", "mkl", *QUICK), 2, 'no peer is named "mkl"'),
        (("relu", "4", "--device", "simt"), 2, "simt emulates a GPU"),
        (("relu", "4", "--device", "tpu"), 2, "tpu"),
        (("relu", "4", "--dtype", "half"), 2, "half"),
        (("relu", "4", "--below", "x"), 2, "--below is NAME=NUMBER"),
        (("relu", "4", "--step", "x=0"), 2, "--step is NAME=NUMBER"),
        (("relu", "4", "--step", "x=3z"), 2, '--step is NAME=NUMBER, the number at least 1, got "x=3z"'),
        (("spmv", "4", "--below", "index=3"), 2, '--below names "index", which is no array of spmv; give one of data, indices, indptr, x, c, starts'),
        (("relu", "4", "--seconds", "-1"), 2, "--seconds must be above 0, got -1"),
        (("relu", "4", "--warmup", "-1"), 2, "--warmup must be 0 seconds or more, got -1"),
        (("relu", "4", "--repetitions", "-3"), 2, "--repetitions must be 0 or more, got -3"),
        (("relu", "4", "--tolerance", "-1"), 2, "--tolerance must be 0 or more, got -1"),
        (("--suite", "none"), 2, "none"),
        (("--suite", "smoke", "--only", "softmix"), 2, 'no case of smoke has "softmix" in its group'),
        (("relu", "4", "--only", "relu"), 2, "--only chooses among the cases of --suite"),
        (("--results", "/nonexistent"), 3, "/nonexistent cannot be read"),
        (("--results", "/dev/null"), 2, "/dev/null:1:1: is not JSON"),
        (("relu", "4", "--json", "/nonexistent/f", *QUICK), 3, "/nonexistent/f cannot be written"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_message_and_its_code(
    run: Run, has_runner: bool, arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = run("bench", *arguments)
    assert (done.code, done.out) == (code, "")
    assert message in done.err


def test_an_error_in_json(run: Run) -> None:
    done = run("bench", "relux", "4", "--json")
    assert done.code == 2 and done.json()["error"]["kind"] == "key"


def test_the_bar_is_for_terminals(command: Path, environment: dict[str, str], has_runner: bool) -> None:
    arguments = [command, "bench", "relu", "20000000", "--device", "cpu", "--seconds", "1.5", "--warmup", "0.2"]
    piped = subprocess.run(arguments, capture_output=True, env=environment, check=True)
    assert piped.stderr == b""
    ours, theirs = open_terminal()
    subprocess.run(arguments, stdout=subprocess.DEVNULL, stderr=theirs, env=environment, check=True)
    os.close(theirs)
    drawn = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while part := os.read(ours, 65536):
            drawn += part
    assert b"0/1 " in drawn and b" left, relu 20000000 float32" in drawn


def test_help_names_every_option(run: Run) -> None:
    text = run("bench", "--help").out
    assert all(option in text for option in ("--suite", "--peer", "--warm", "--fail-on-regression", "--tolerance", "--raw"))


def test_the_python_program_writes_the_same_form(run: Run, tmp_path: Path, has_runner: bool) -> None:
    pytest.importorskip("tensorcraft")
    file = tmp_path / "python.json"
    arguments = [ROOT / "benchmarks" / "torch_peers.py", file, "--suite", "smoke", "--seconds", "0.01", "--warmup", "0"]
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    theirs, ours = json.loads(file.read_text()), measured(run, "--suite", "smoke")
    assert all(set(row) == ROW for row in theirs["rows"])
    assert {r["candidate"] for r in theirs["rows"]} >= {"tensorcraft", "copy"}
    assert [s.split(":")[0] for s in theirs["skipped"]] == [s.split(":")[0] for s in ours["skipped"]]
    names = [list(dict.fromkeys((r["op"], r["case"]) for r in results["rows"])) for results in (theirs, ours)]
    assert names[0] == names[1]
    assert run("bench", "--results", str(file), "--fail-on-regression", str(file)).code == 0


def test_verify_on_the_emulator_ends_and_says_each_test_at_once(command: Path, environment: dict[str, str], tmp_path: Path) -> None:
    words = [command, "bench", "--verify", "--device", "simt"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path) as process:
        assert process.stdout
        lines = [process.stdout.readline() for _ in range(3)]
        assert process.poll() is None, "what is done is said while the rest runs"
        rest, _ = process.communicate(timeout=300)
    assert process.returncode == 0, rest
    assert lines[0] == "=== Test Report ===\n" and lines[2].startswith("\u2713 correctness: Small 64x64x64 float32: ")
    assert "Success Rate: 100.0%" in rest and "performance: " in rest


def test_verify_reports_five_suites(run: Run, tmp_path: Path) -> None:
    done = run("bench", "--verify", "--device", "cpu", "--json", "verify.json")
    assert done.code == 0, done.out
    lines = done.out.splitlines()
    assert lines[0] == "=== Test Report ===" and "Success Rate: 100.0%" in lines
    total = int(lines[1].removeprefix("Total Tests: "))
    assert f"Summary: {total} passed, 0 failed" in lines and sum(line.startswith("\u2713 ") for line in lines) == total
    tests = json.loads((tmp_path / "verify.json").read_text())["tests"]
    suites = [t["suite"] for t in tests]
    assert list(dict.fromkeys(suites)) == ["correctness", "performance", "boundary", "stress", "regression"]
    assert run("bench", "gemm", "4x4", "4x4", "--verify").code == 2
