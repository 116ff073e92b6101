# SPDX-License-Identifier: Apache-2.0
"""`tensorcraft profile`, with a script in the place of ncu: it runs what it is given and writes counters."""

from __future__ import annotations

from pathlib import Path

import pytest
from process import Run

CALL = ("softmax", "8x256", "--device", "cpu")
COLUMNS = {
    "Kernel Name": "softmax_online",
    "Grid Size": "(8, 1, 1)",
    "Block Size": "(256, 1, 1)",
    "gpu__time_duration.sum": "3,000",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": "82.4",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "12",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "50",
    "launch__waves_per_multiprocessor": "0.01",
    "launch__registers_per_thread": "32",
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": "4.5",
}


def line(cells: list[str]) -> str:
    return ",".join(f'"{cell}"' for cell in cells)


def counters(**changes: str) -> str:
    row = {**COLUMNS, **changes}
    units = ["", *("ns" if name.startswith("gpu__time") else "" for name in row)]
    return "\n".join(["==PROF== Connected", line(["ID", *row]), line(units), line(["0", *row.values()])])


@pytest.fixture
def ncu(tmp_path: Path) -> Path:
    """Writes its words, runs the program after its options, and what `log.txt` has goes to --log-file."""
    folder = tmp_path / "tools"
    folder.mkdir()
    script = folder / "ncu"
    script.write_text(
        "#!/bin/sh\n"
        f'printf "%s\\n" "$@" > {tmp_path}/words\n'
        'while [ "${1#-}" != "$1" ]; do\n'
        '  case $1 in --log-file) log=$2; shift 2 ;; --csv) shift ;; *) shift 2 ;; esac\n'
        "done\n"
        '"$@"\n'
        "code=$?\n"
        f'cat {tmp_path}/log.txt > "$log"\n'
        '[ $code = 0 ] || echo "==ERROR== The application returned an error code ($code)." >> "$log"\n'
        "exit $code\n"
    )
    script.chmod(0o755)
    (tmp_path / "log.txt").write_text(counters())
    return script


def test_says_what_bounds_a_kernel(run: Run, ncu: Path) -> None:
    done = run("profile", *CALL, PATH=f"{ncu.parent}:/usr/bin:/bin")
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "softmax_online, grid (8, 1, 1), block (256, 1, 1)",
        "  bound by memory: 82 % of its bandwidth",
        "  3 us at ncu's clock; memory 82.4 %, L2 0 %, L1 0 %, multiprocessors 12 %, tensor cores 0 %",
        "  50 % of the warps, 0.01 waves, 32 registers",
    ]


def test_json_has_the_counters(run: Run, ncu: Path) -> None:
    answer = run("profile", *CALL, "--ncu", str(ncu), "--json").json()
    (kernel,) = answer["kernels"]
    assert answer["op"] == "softmax" and answer["device"] == "cpu"
    assert kernel["bound"] == "dram" and kernel["us"] == 3 and kernel["registers"] == 32
    assert kernel["stalls"] == [{"reason": "long_scoreboard", "warps": 4.5}]


def test_the_call_is_handed_on_as_it_is(run: Run, ncu: Path, tmp_path: Path) -> None:
    call = ("take", "30x4", "8:int64", "--below", "indices=30", "--step", "indices=3", "--option", "axis=0", "--dtype", "f16", "--variant", "cpu", "--device", "cpu")
    done = run("profile", *call, "--ncu", str(ncu), TMPDIR=str(tmp_path))
    assert done.code == 0, done.err
    words = (tmp_path / "words").read_text().splitlines()
    assert words[:2] == ["--csv", "--page"]
    own = words[words.index("profile") :]
    assert own[:5] == ["profile", "--run", "take", "30x4", "8:int64"]
    for name, value in (("--below", "indices=30"), ("--step", "indices=3"), ("--option", "axis=0"), ("--dtype", "f16"), ("--variant", "cpu"), ("--device", "cpu")):
        assert own[own.index(name) + 1] == value
    assert not list(tmp_path.glob("tensorcraft-*"))


def test_latency_names_what_warps_wait_for(run: Run, ncu: Path, tmp_path: Path) -> None:
    changes = {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": "9", "launch__waves_per_multiprocessor": "3"}
    (tmp_path / "log.txt").write_text(counters(**changes))
    out = run("profile", *CALL, "--ncu", str(ncu)).out
    assert "bound by latency" in out and "loads from memory" in out


def test_without_ncu_the_message_says_how_to_get_it(run: Run) -> None:
    done = run("profile", *CALL, PATH="/nonexistent")
    if done.code == 0:
        pytest.skip("this machine has an ncu of its own")
    assert done.code == 3 and "there is no ncu" in done.err and "nsight-compute" in done.err
    answer = run("profile", *CALL, "--json", PATH="/nonexistent").json()
    assert answer["error"]["kind"] == "not_found"


def test_counters_that_this_user_may_not_read(run: Run, ncu: Path, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n")
    done = run("profile", *CALL, "--ncu", str(ncu))
    assert done.code == 3 and "NVreg_RestrictProfilingToAdminUsers=0" in done.err


def test_a_call_without_kernels(run: Run, ncu: Path, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("==WARNING== No kernels were profiled.\n")
    done = run("profile", *CALL, "--ncu", str(ncu))
    assert done.code == 3 and "ncu saw no kernel of the call on cpu" in done.err


def test_an_ncu_that_cannot_be_started(run: Run) -> None:
    done = run("profile", *CALL, "--ncu", "/nonexistent/ncu")
    assert done.code == 3 and "/nonexistent/ncu cannot be started" in done.err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("softmaxx", "8"), "softmax"),
        (("softmax", "8x8", "--variant", "nonesuch"), "nonesuch"),
        (("softmax", "8x8", "--option", "axis=7"), "axis"),
        (("softmax", "8x8", "--below", "x"), "profile: --below is NAME=NUMBER"),
    ],
)
def test_bad_calls_are_refused_before_ncu_is_started(run: Run, ncu: Path, tmp_path: Path, arguments: tuple[str, ...], text: str) -> None:
    done = run("profile", *arguments, "--ncu", str(ncu))
    assert done.code == 2 and text in done.err
    assert not (tmp_path / "words").exists()


def test_run_runs_the_call_here(run: Run) -> None:
    done = run("profile", *CALL, "--run")
    assert (done.code, done.out, done.err) == (0, "", "")
