# SPDX-License-Identifier: Apache-2.0
"""benchmarks/gpu_record.py: counts of tests that ran on a machine with a GPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def case(result: str = "COMPLETED", **more: object) -> dict[str, object]:
    return {"name": "A", "status": "RUN", "result": result, "time": "1.5s", **more}


def shard(folder: Path, name: str, *cases: dict[str, object]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"testsuites": [{"testsuite": list(cases)}]}))


def record(folder: Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(ROOT / "benchmarks" / "gpu_record.py"), str(folder)]
    return subprocess.run(program, capture_output=True, text=True, check=False)


def test_adds_up_shards_and_files(tmp_path: Path) -> None:
    shard(tmp_path / "tests", "ops_tests.0-of-2", case(), case("SKIPPED"), case(status="NOTRUN"))
    shard(tmp_path / "tests", "ops_tests.1-of-2", case())
    xml = '<testsuites><testsuite tests="5" failures="0" errors="0" skipped="2" time="2.0"/></testsuites>'
    (tmp_path / "tests" / "test_a.xml").write_text(xml)
    (tmp_path / "tests" / "test_b.xml").write_text(xml)
    done = record(tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "gpu_tests.json").read_text())["rows"]
    assert rows == [
        {"name": "ops_tests", "tests": 3, "passed": 2, "skipped": 1, "failed": 0, "seconds": 4},
        {"name": "tests/python", "tests": 10, "passed": 6, "skipped": 4, "failed": 0, "seconds": 4},
    ]


def sanitized(report: str = "", verdict: str = "[       OK ] B") -> str:
    """What nine tests print under a tool; the second is where the report is."""
    return (
        "========= COMPUTE-SANITIZER\n[ RUN      ] A\n[       OK ] A\n[ RUN      ] B\n" + report + verdict
        + "\n[----------] Global test environment tear-down\n[==========] 9 tests from 2 test suites ran. (2400 ms total)\n"
        "[  PASSED  ] 8 tests.\n[  SKIPPED ] 1 test, listed below:\n"
    )  # fmt: skip


RACE = "========= Error: Race reported between Read access at k+0x480\n=========     and Write access at k+0x99a0 [24 hazards]\n"


@pytest.mark.parametrize(
    ("tool", "text", "failed"),
    [
        ("racecheck", sanitized() + "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n", 0),
        ("racecheck", sanitized(RACE * 2) + "========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 1 warning)\n", 1),
        ("memcheck", sanitized() + "========= ERROR SUMMARY: 0 errors\n", 0),
        ("memcheck", sanitized() + "========= ERROR SUMMARY: 100 errors\n", 1),
        ("memcheck", sanitized(verdict="[  FAILED  ] B") + "========= ERROR SUMMARY: 0 errors\n", 1),
        ("memcheck", sanitized(), 8),
    ],
)
def test_counts_what_a_sanitizer_found(tmp_path: Path, tool: str, text: str, failed: int) -> None:
    shard(tmp_path / "tests", "ops_tests.0-of-1", case())
    (tmp_path / f"sanitizer_{tool}.0.log").write_text(text)
    assert record(tmp_path).returncode == (failed > 0)
    counts = {"tests": 9, "passed": 8 - failed, "skipped": 1, "failed": failed, "seconds": 2}
    assert json.loads((tmp_path / "gpu_tests.json").read_text())["rows"][1] == {"name": f"compute-sanitizer {tool}", **counts}


@pytest.mark.parametrize(("second", "more", "failed"), [(sanitized(), 9, 0), ("", 1, 1)], ids=["whole", "ended early"])
def test_adds_up_the_shards_of_a_sanitizer(tmp_path: Path, second: str, more: int, failed: int) -> None:
    shard(tmp_path / "tests", "ops_tests.0-of-1", case())
    for number, text in enumerate((sanitized(), second)):
        (tmp_path / f"sanitizer_memcheck.{number}.log").write_text(text + "========= ERROR SUMMARY: 0 errors\n")
    assert record(tmp_path).returncode == failed
    row = json.loads((tmp_path / "gpu_tests.json").read_text())["rows"][1]
    assert (row["tests"], row["failed"]) == (9 + more, failed)


def test_fails_with_a_test(tmp_path: Path) -> None:
    shard(tmp_path / "tests", "ops_tests.0-of-1", case(), case(failures=[{"failure": "no"}]))
    assert record(tmp_path).returncode == 1


def test_fails_if_a_shard_left_no_file(tmp_path: Path) -> None:
    shard(tmp_path / "tests", "ops_tests.0-of-2", case())
    done = record(tmp_path)
    assert done.returncode == 1
    assert "ops_tests.1-of-2 left no file" in done.stdout


def test_fails_if_nothing_ran(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    assert record(tmp_path).returncode == 1
