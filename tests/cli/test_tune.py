# SPDX-License-Identifier: Apache-2.0
"""`tensorcraft tune`: what is found, kept, taken by later calls, exported, and left by a killed session."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from process import Run

CALL = ("softmax", "8x256", "--device", "simt")
KILLS = 100 if os.environ.get("TC_TEST_FULL") else 6


@pytest.fixture(autouse=True)
def has_simt(run: Run) -> None:
    if "simt" not in [d["device"] for d in run("devices", "--json").json()["devices"]]:
        pytest.skip("this build has no emulator")


def test_a_call_is_tuned_and_later_ones_take_it(run: Run) -> None:
    assert run("tune", "--list").out == "nothing is tuned\n"
    done = run("tune", *CALL)
    assert done.code == 0, done.err
    first, *_, last = done.out.splitlines()
    assert first == "Starting adaptive tuning for problem: 8x256"
    assert "Best performance: " in done.out and "% over the model" in done.out and "iteration" in last
    (row,) = run("tune", "--list", "--json").json()["tuned"]
    assert row["op"] == "softmax" and row["call"] == "x=float32[8,256] out=float32[8,256]"
    answer = run("explain", *CALL, "--json").json()
    assert answer["variant"] == row["variant"] and answer["tuned"]["us"] == pytest.approx(row["us"])
    assert f"{row['variant']}, tuned: " in run("explain", *CALL).out
    assert run("explain", "softmax", "8x255", "--device", "simt", "--json").json()["tuned"] is None
    assert run("tune", *CALL, "--json").json()["cases"][0]["end"] == "known"
    assert run("tune", *CALL, "--again", "--json").json()["cases"][0]["end"] != "known"


def test_json_has_the_winner_the_models_choice_and_every_trial(run: Run) -> None:
    answer = run("tune", *CALL, "--json").json()
    (case,) = answer["cases"]
    assert answer["device"] == case["device"]
    assert set(case) == {
        "device", "op", "call", "variant", "config", "us", "model_us", "iterations", "version", "problem", "model", "tflops", "end", "trials",
    }  # fmt: skip
    assert case["trials"][0]["variant"] == case["model"]["variant"]
    assert len(case["trials"]) == case["iterations"] and 0 < case["us"] <= case["model_us"]


def long_call(size: int) -> tuple[str, ...]:
    """Enough candidates to be killed among: every tile of every rung, on the emulator."""
    return ("gemm", f"{size}x128", "128x128", "--dtype", "bf16", "--device", "simt", "--all")


def test_a_session_that_is_killed_goes_on_and_loses_nothing(command: Path, environment: dict[str, str], run: Run, tmp_path: Path) -> None:
    def trials(call: tuple[str, ...], *more: str) -> tuple[list[str], str]:
        (case,) = run("tune", *call, "--json", *more).json()["cases"]
        return [f"{t['variant']} {t['config']}" for t in case["trials"]], case["end"]

    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    moments = random.Random(seed)
    size, known, most, kills = 128, [], 0, 0
    while kills < KILLS or most <= 5:  # a slow machine measures less between two kills
        kills += 1
        assert kills <= 10 * KILLS, f"{most} trials are the most that killed sessions left"
        child = subprocess.Popen([command, "tune", *long_call(size)], env=environment, stdout=subprocess.DEVNULL, cwd=tmp_path)
        time.sleep(moments.uniform(0.05, 0.9))
        child.send_signal(signal.SIGKILL)
        child.wait()
        # What a killed session left is seen by one that has no time, which adds a trial at most.
        now, end = trials(long_call(size), "--seconds", "0.001")
        if end in ("known", "every candidate is measured"):
            size, known = size + 16, []
            continue
        assert now[: len(known)] == known, "in the order they were measured"
        assert len(set(now)) == len(now), "and none is repeated"
        known, most = now, max(most, len(now))
    whole, end = trials(long_call(size))
    assert end == "every candidate is measured" and whole[: len(known)] == known
    assert trials(long_call(size))[1] == "known"


def test_processes_tune_into_one_file(command: Path, environment: dict[str, str], run: Run, tmp_path: Path) -> None:
    calls = [("softmax", f"4x{size}", "--device", "simt") for size in (32, 32, 64, 96)]  # two of them the same call
    children = [subprocess.Popen([command, "tune", *c], env=environment, stdout=subprocess.DEVNULL, cwd=tmp_path) for c in calls]
    assert [child.wait() for child in children] == [0] * 4
    assert len(run("tune", "--list", "--json").json()["tuned"]) == 3


def test_results_are_exported_and_imported(run: Run, tmp_path: Path) -> None:
    done = run("tune", "--export", "none.tuned")
    assert done.code == 3 and "nothing is tuned" in done.err
    run("tune", *CALL)
    assert run("tune", "--export", "all.tuned", "--json").json() == {"file": "all.tuned", "exported": 1}
    before = run("tune", "--list", "--json").json()
    shutil.rmtree(tmp_path / "cache" / "tuned")
    assert run("tune", "--list", "--json").json() == {"tuned": []}
    assert run("tune", "--import", "all.tuned").out == "took 1 result from all.tuned\n"
    assert run("tune", "--list", "--json").json() == before
    assert run("tune", "--import", "all.tuned", "--json").json()["imported"] == 0
    assert run("explain", *CALL, "--json").json()["tuned"] is not None


def test_a_damaged_file_is_set_aside_by_tune_and_a_warning_for_others(run: Run, tmp_path: Path) -> None:
    run("tune", *CALL)
    (file,) = (tmp_path / "cache" / "tuned").glob("*.tuned")
    file.write_bytes(b"x" * 5000)
    done = run("explain", *CALL)
    assert done.code == 0 and "no database of what is tuned" in done.err and ", tuned: " not in done.out
    done = run("tune", *CALL, "--json")
    assert done.json()["cases"][0]["end"] != "known" and "set aside" in done.err
    assert file.with_name(file.name + ".damaged").read_bytes() == b"x" * 5000
    assert run("tune", *CALL, "--json").json()["cases"][0]["end"] == "known"


def test_a_suite_shares_its_time(run: Run) -> None:
    start = time.monotonic()
    done = run("tune", "--suite", "smoke", "--only", "softmax", "--device", "cpu", "--seconds", "2", "--json")
    assert time.monotonic() - start < 60
    cases = done.json()["cases"]
    assert cases and all(case["op"] == "softmax" for case in cases) and done.code == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "tune: name an operator and its shapes, or a suite with --suite"),
        (("softmax", "8x8", "--suite", "smoke"), "tune: name an operator and its shapes, or a suite"),
        (("softmax", "8x8", "--only", "x"), "tune: --only chooses among the cases of --suite"),
        (("softmax", "8x8", "--list"), "tune: --list, --export and --import stand alone"),
        (("--suite", "smoke", "--only", "nonesuch"), 'tune: no case of smoke has "nonesuch"'),
        (("softmaxx", "8x8"), "softmax"),
        (("gemm", "8x8", "8x8", "--device", "cpu", "--option", "config=tile_m=64"), "gemm: tuning finds config; leave it out"),
        (("relu", "8", "--below", "x"), "tune: --below is NAME=NUMBER"),
        (("relu", "8", "--seconds", "-1"), "tune: --seconds must be above 0, or left out, got -1"),
    ],
)
def test_bad_arguments(run: Run, arguments: tuple[str, ...], text: str) -> None:
    done = run("tune", *arguments)
    assert done.code == 2 and text in done.err


def test_explain_prints_the_rule_and_its_reason(run: Run) -> None:
    call = ("explain", "gemm", "4096x4096", "4096x4096", "--dtype", "bf16", "--arch", "sm_90a")
    rule = "rule large (m, n and k above 2048), confidence 0.9: 128 x 128 x 64, 4 x 4 warps, 2 stages"
    assert f"prior: {rule}" in run(*call, TENSORCRAFT_NVRTC="/nonexistent").out
    assert run(*call, "--json", TENSORCRAFT_NVRTC="/nonexistent").json()["prior"] == rule


def test_a_call_that_only_the_model_may_choose_for(run: Run) -> None:
    done = run("tune", "gemm", "8x8", "8x8", "--device", "cpu", "--option", "batch_invariant=true")
    assert done.code == 3 and "leaves the choice to the cost model" in done.err
