# SPDX-License-Identifier: Apache-2.0
"""benchmarks/gpu_record.py: names and counts of tests that ran on a machine with a GPU, and which of their failures are known."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "scripts")]
import gpu_record
import results_table

PLACE = {"gpu": "NVIDIA H200", "driver": "580.1", "commit": "0123abc"}


@pytest.fixture(autouse=True)
def place(tmp_path: Path) -> None:
    (tmp_path / "machine.json").write_text(json.dumps(PLACE))


def case(result: str = "COMPLETED", **more: object) -> dict[str, object]:
    return {"name": "A", "status": "RUN", "result": result, "time": "1.5s", **more}


def shard(folder: Path, name: str, *cases: dict[str, object]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"testsuites": [{"name": "S", "testsuite": list(cases)}]}))


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
    none = {"failing": [], "known": {}}
    assert rows == [
        {"name": "ops_tests", "tests": 3, "passed": 2, "skipped": 1, "failed": 0, "seconds": 4, **none},
        {"name": "tests/python", "tests": 10, "passed": 6, "skipped": 4, "failed": 0, "seconds": 4, **none},
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
    ("tool", "text", "failed", "failing"),
    [
        ("racecheck", sanitized() + "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n", 0, []),
        ("racecheck", sanitized(RACE * 2) + "========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 1 warning)\n", 1, ["B"]),
        ("memcheck", sanitized() + "========= ERROR SUMMARY: 0 errors\n", 0, []),
        ("memcheck", sanitized() + "========= ERROR SUMMARY: 100 errors\n", 1, ["reported at the end, of no single test"]),
        ("memcheck", sanitized(verdict="[  FAILED  ] B") + "========= ERROR SUMMARY: 0 errors\n", 1, ["B"]),
        ("memcheck", sanitized(), 8, []),
    ],
)
def test_counts_what_a_sanitizer_found(tmp_path: Path, tool: str, text: str, failed: int, failing: list[str]) -> None:
    shard(tmp_path / "tests", "ops_tests.0-of-1", case())
    (tmp_path / f"sanitizer_{tool}.0.log").write_text(text)
    assert record(tmp_path).returncode == (failed > 0)
    counts = {"tests": 9, "passed": 8 - failed, "skipped": 1, "failed": failed, "seconds": 2, "failing": failing, "known": {}}
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


def xml(*cases: str) -> str:
    failed = sum("<failure" in case for case in cases)
    return f'<testsuites><testsuite tests="{len(cases)}" failures="{failed}" errors="0" skipped="0" time="1">{"".join(cases)}</testsuite></testsuites>'


RIGHT = '<testcase classname="tests.python.test_a" name="test_right"/>'
WRONG = '<testcase classname="tests.python.test_a" name="test_wrong[simt-1]"><failure message="no">no</failure></testcase>'


def failing_run(folder: Path) -> None:
    bad = {"failures": [{"failure": "no"}]}
    shard(folder / "tests", "gpu_tests.0-of-1", case(), {**case(), **bad, "name": "B/0"})
    (folder / "tests" / "test_a.xml").write_text(xml(RIGHT, WRONG))
    text = sanitized(RACE) + "========= RACECHECK SUMMARY: 1 hazard displayed (1 errors, 0 warnings)\n"
    (folder / "sanitizer_racecheck.0.log").write_text(text)


def test_names_what_failed_and_where_that_was(tmp_path: Path) -> None:
    failing_run(tmp_path)
    assert record(tmp_path).returncode == 1
    found = json.loads((tmp_path / "gpu_tests.json").read_text())
    assert found["machine"] == PLACE
    assert {row["name"]: row["failing"] for row in found["rows"]} == {
        "gpu_tests": ["S.B/0"],
        "tests/python": ["test_a.py::test_wrong[simt-1]"],
        "compute-sanitizer racecheck": ["B"],
    }


def test_a_failure_with_a_reason_is_shown_and_fails_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failing_run(tmp_path)
    known = {
        "gpu_tests": {"S.B/0": "a bug of the driver"},
        "tests/python": {"test_a.py::test_wrong[simt-1]": "waits for | torch"},
        "compute-sanitizer racecheck": {"B": "the tool's own"},
    }
    assert gpu_record.record(tmp_path, known) == 0
    found = json.loads((tmp_path / "gpu_tests.json").read_text())
    assert {row["name"]: row["known"] for row in found["rows"]} == known
    assert [row["failed"] for row in found["rows"]] == [1, 1, 1] and found["stale"] == []
    table = list(results_table.tables_of(found["rows"]))
    assert table[3].endswith(r"| 1 | 1 |  | `test_a.py::test_wrong[simt-1]`: waits for \| torch |")
    assert "stale" not in capsys.readouterr().out
    # The reason of one row excuses no other.
    assert gpu_record.record(tmp_path, known | {"compute-sanitizer racecheck": {}, "gpu_tests": {"B": "", **known["gpu_tests"]}}) == 1


def test_a_known_failure_that_passes_is_stale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shard(tmp_path / "tests", "gpu_tests.0-of-1", case())
    known = {"gpu_tests": {"S.A": "was a bug", "S.Gone": "was one too"}, "tests/python": {"test_a.py::test_b": "did not run"}}
    assert gpu_record.record(tmp_path, known) == 0
    said = ["gpu_tests: S.A passes", "gpu_tests: S.Gone is no test, or did not run"]
    assert json.loads((tmp_path / "gpu_tests.json").read_text())["stale"] == said
    assert all(f"gpu_record: stale in known_gpu_failures.json: {text}\n" in capsys.readouterr().out for text in said[:1])


def test_what_is_known_is_committed_with_reasons() -> None:
    known = json.loads(gpu_record.KNOWN.read_text())
    assert all(reason for tests in known.values() for reason in tests.values())


@pytest.mark.parametrize("missing", ["machine.json", "gpu", "driver", "commit"])
def test_fails_if_card_or_commit_is_not_known(tmp_path: Path, missing: str) -> None:
    shard(tmp_path / "tests", "ops_tests.0-of-1", case())
    file = tmp_path / "machine.json"
    file.unlink() if missing == file.name else file.write_text(json.dumps({k: v for k, v in PLACE.items() if k != missing}))
    done = record(tmp_path)
    assert done.returncode == 1 and f"the {'gpu' if missing == file.name else missing} is not known" in done.stdout


def test_the_machine_leaves_its_facts_and_the_commit_of_what_was_packed(tmp_path: Path) -> None:
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "commit").write_text("0123abc dirty\n")
    assert gpu_record.main(["--machine", str(tmp_path), str(tmp_path / "packed")]) == 0
    assert gpu_record.where(tmp_path)["commit"] == "0123abc dirty"
    assert gpu_record.where(tmp_path)["processor"]


def test_fails_if_a_file_of_python_left_no_results(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.xml").write_text(xml(RIGHT))
    (tmp_path / "tests" / "test_b.xml").write_text("")  # gpu_test.sh's, which pytest replaces at its end
    done = record(tmp_path)
    assert done.returncode == 1 and "test_b left no file" in done.stdout


BODY = re.compile(r"\b(steady_clock|Clock::now|gb_per_s|host_us|best_ms|ratio\(|cost\()")
BOUND = re.compile(r"\bEXPECT_(LT|LE|GT|GE)\((?!.*\b\d+m?s\);)")  # those of a time-out are whole units


def test_what_bounds_a_time_is_left_out_of_the_record() -> None:
    """By its name or mark, with which gpu_test.sh leaves it to the part that has the machine for itself."""
    script = (ROOT / "scripts" / "gpu_test.sh").read_text()
    assert "GTEST_FILTER='-*Timing*' apart gpu_tests" in script and '-m "not timing"' in script
    assert "--gtest_filter='*Timing*'" in script and "-m timing" in script
    tests = [body for file in ROOT.glob("tests/gpu/*.cpp") for body in re.split(r"^(?=TEST\w*\()", file.read_text(), flags=re.MULTILINE)]
    timed = [body for body in tests if body.startswith("TEST") and BODY.search(body) and BOUND.search(body)]
    assert len(timed) >= 8
    assert not [body.splitlines()[0] for body in timed if not re.match(r"TEST\w*\(\w*Timing,", body)]
    python = [body for file in ROOT.glob("tests/python/test_*.py") for body in re.split(r"\n\n\n", file.read_text())]
    timed = [body for body in python if "def test_" in body and re.search(r"host_us\(|timeit|import tensorcraft; print\(\(time", body)]
    assert len(timed) >= 3 and all("@pytest.mark.timing\n" in body for body in timed)


def test_fails_if_a_shard_left_no_file(tmp_path: Path) -> None:
    shard(tmp_path / "tests", "ops_tests.0-of-2", case())
    done = record(tmp_path)
    assert done.returncode == 1
    assert "ops_tests.1-of-2 left no file" in done.stdout


def test_fails_if_nothing_ran(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    assert record(tmp_path).returncode == 1
