#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names and counts the tests that ran on a machine with a GPU: which suites, when, where, and what became of them.

    python benchmarks/gpu_record.py FOLDER
    python benchmarks/gpu_record.py --machine FOLDER PACKED

FOLDER/tests has the JSON of GoogleTest's programs (NAME.SHARD-of-COUNT.json) and the JUnit XML of pytest (NAME.xml), FOLDER the
output of compute-sanitizer's tools (sanitizer_TOOL.SHARD.log), as `scripts/gpu_test.sh run` leaves them. Writes
FOLDER/gpu_tests.json. Each row names its failing tests, except those that benchmarks/known_gpu_failures.json has with a reason
({ROW: {TEST: REASON}}); a known failure that passed, or is no test any more, is stale, which is said. Exits with 1 if another test
failed, if none ran, if a shard or file of Python left no results, since a program that crashes writes none, or if nothing says
which card and commit that was.

--machine, on the machine with the GPU, writes these facts into FOLDER/machine.json; PACKED/commit, from `gpu_test.sh pack`, has
the commit.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from timing import ROOT, machine, write

KNOWN = ROOT / "benchmarks" / "known_gpu_failures.json"


@dataclass
class Found:
    """What became of tests. `failed` may count more than there are names: a program that ended names no others."""

    tests: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0
    names: set[str] = field(default_factory=set)  # of all
    failing: set[str] = field(default_factory=set)

    def add(self, other: Found) -> None:
        self.tests += other.tests
        self.failed += other.failed
        self.skipped += other.skipped
        self.seconds += other.seconds
        self.names |= other.names
        self.failing |= other.failing


def googletest(file: Path) -> Found:
    """One program or one shard of it."""
    suites = json.loads(file.read_text())["testsuites"]
    ran = [(f"{suite['name']}.{case['name']}", case) for suite in suites for case in suite["testsuite"] if case["status"] == "RUN"]
    failing = {name for name, case in ran if case.get("failures")}
    return Found(
        tests=len(ran),
        failed=len(failing),
        skipped=sum(case["result"] == "SKIPPED" for _, case in ran),
        seconds=sum(float(case["time"].rstrip("s")) for _, case in ran),
        names={name for name, _ in ran},
        failing=failing,
    )


def junit(file: Path) -> Found:
    """One file of pytest. A test is named as one asks pytest for it: test_a.py::test_b[c]."""
    suite = next(ElementTree.parse(file).getroot().iter("testsuite"))
    cases = [(f"{file.stem}.py::{case.attrib['name']}", case) for case in suite.iter("testcase")]
    failing = {name for name, case in cases if case.find("failure") is not None or case.find("error") is not None}
    return Found(
        tests=int(suite.attrib["tests"]),
        failed=len(failing),
        skipped=int(suite.attrib["skipped"]),
        seconds=float(suite.attrib["time"]),
        names={name for name, _ in cases},
        failing=failing,
    )


def sanitized(log: Path) -> Found:
    """Tests that ran under a tool. Those failed that it reports something of, or that failed by themselves, and all if the program
    did not end."""
    text = log.read_text()
    ran = re.search(r"^\[==========\] (\d+) tests? from .* ran\. \((\d+) ms", text, re.MULTILINE)
    skipped = re.search(r"^\[  SKIPPED \] (\d+) test", text, re.MULTILINE)
    errors = re.search(r"(?:ERROR SUMMARY: |RACECHECK SUMMARY: .*\()(\d+) error", text)
    tests, left = int(ran[1]) if ran else 1, int(skipped[1]) if skipped else 0
    of_tests = text.partition("Global test environment tear-down")[0].split("[ RUN      ]")[1:]
    said = {lines.split("\n", 1)[0].strip(): re.search(r"^========= \S|^\[  FAILED  \]", lines, re.MULTILINE) for lines in of_tests}
    failing = {name for name, bad in said.items() if bad}
    failed = len(failing)
    if not ran or not errors:
        failed = tests - left
        failing |= {f"{list(said)[-1]}, where it ended" if said else "it did not begin"} if not ran else set()
    elif int(errors[1]) and not failing:
        failed, failing = 1, {"reported at the end, of no single test"}
    return Found(tests, min(failed, tests - left), left, int(ran[2]) / 1e3 if ran else 0, set(said), failing)


def lost_shards(folder: Path) -> list[str]:
    """The shards whose file is missing beside those of the others."""
    programs = {(file.name.split(".")[0], file.stem.split("-of-")[1]) for file in folder.glob("*.json")}
    all_shards = [f"{name}.{i}-of-{count}" for name, count in programs for i in range(int(count))]
    return sorted(shard for shard in all_shards if not (folder / f"{shard}.json").exists())


def rows_of(folder: Path) -> dict[str, Found]:
    """One row a program, the shards and the files of Python together, and one a tool of compute-sanitizer."""
    rows: dict[str, Found] = {}
    for file in sorted((folder / "tests").iterdir()):
        if file.stat().st_size:  # else it is lost
            name = "tests/python" if file.suffix == ".xml" else file.name.split(".")[0]
            rows.setdefault(name, Found()).add((junit if file.suffix == ".xml" else googletest)(file))
    for log in sorted(folder.glob("sanitizer_*.log")):
        tool = log.name.split(".")[0].removeprefix("sanitizer_")
        rows.setdefault(f"compute-sanitizer {tool}", Found()).add(sanitized(log))
    return rows


def as_json(name: str, row: Found, known: dict[str, str]) -> dict[str, Any]:
    return {
        "name": name,
        "tests": row.tests,
        "passed": row.tests - row.failed - row.skipped,
        "skipped": row.skipped,
        "failed": row.failed,
        "seconds": round(row.seconds),
        "failing": sorted(row.failing - known.keys()),
        "known": {test: known[test] for test in sorted(row.failing & known.keys())},
    }


def stale(rows: dict[str, Found], known: dict[str, dict[str, str]]) -> Iterator[str]:
    """The known failures that are none."""
    for name, tests in known.items():
        for test in sorted(tests.keys() - rows[name].failing) if name in rows else ():
            yield f"{name}: {test} " + ("passes" if test in rows[name].names else "is no test, or did not run")


def where(folder: Path) -> dict[str, str]:
    """What --machine left: facts of the machine and the commit."""
    file = folder / "machine.json"
    return json.loads(file.read_text()) if file.exists() else {}


def record(folder: Path, known: dict[str, dict[str, str]]) -> int:
    rows = rows_of(folder)
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    table, facts, old = [as_json(name, row, known.get(name, {})) for name, row in rows.items()], where(folder), list(stale(rows, known))
    lost = [*lost_shards(folder / "tests"), *sorted(file.stem for file in (folder / "tests").iterdir() if not file.stat().st_size)]
    write(str(folder / "gpu_tests.json"), f"tests on a GPU, {date}", table, machine=facts, timing="seconds of all processes together",
          stale=old, lost=lost)  # fmt: skip
    missing = [fact for fact in ("gpu", "driver", "commit") if not facts.get(fact)]
    for name in lost:
        print(f"gpu_record: {name} left no file: it crashed, or was ended")
    for fact in missing:
        print(f"gpu_record: the {fact} is not known: {folder / 'machine.json'} is from gpu_record.py --machine, on the machine with the GPU")
    for text in old:
        print(f"gpu_record: stale in {KNOWN.name}: {text}")
    bad = any(row["failed"] > len(row["known"]) or not row["passed"] for row in table)
    return 1 if lost or missing or not table or bad else 0


def main(arguments: list[str]) -> int:
    if arguments[0] != "--machine":
        return record(Path(arguments[0]), json.loads(KNOWN.read_text()))
    folder, packed = (Path(a) for a in arguments[1:])
    commit = packed / "commit"
    facts = machine() | {"commit": commit.read_text().strip() if commit.exists() else ""}
    (folder / "machine.json").write_text(json.dumps(facts, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
