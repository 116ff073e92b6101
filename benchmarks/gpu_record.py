#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the tests that ran on a machine with a GPU: which suites, when, and what became of them.

    python benchmarks/gpu_record.py FOLDER

FOLDER/tests has the JSON of GoogleTest's programs (NAME.SHARD-of-COUNT.json) and the JUnit XML of pytest (NAME.xml),
FOLDER the output of compute-sanitizer's tools (sanitizer_TOOL.SHARD.log), as `scripts/gpu_test.sh run` leaves them. Writes FOLDER/gpu_tests.json. Exits with 1 if a test failed, if none ran, or
if a shard left no file, since a program that crashes writes none.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from timing import write


def googletest(file: Path) -> dict[str, float]:
    """Counts of one program or of one shard of it."""
    document = json.loads(file.read_text())
    cases = [case for suite in document["testsuites"] for case in suite["testsuite"]]
    ran = [case for case in cases if case["status"] == "RUN"]
    return {
        "tests": len(ran),
        "failed": sum(bool(case.get("failures")) for case in ran),
        "skipped": sum(case["result"] == "SKIPPED" for case in ran),
        "seconds": sum(float(case["time"].rstrip("s")) for case in ran),
    }


def junit(file: Path) -> dict[str, float]:
    """Counts of one file of pytest."""
    suite = next(ElementTree.parse(file).getroot().iter("testsuite"))
    return {
        "tests": int(suite.attrib["tests"]),
        "failed": int(suite.attrib["failures"]) + int(suite.attrib["errors"]),
        "skipped": int(suite.attrib["skipped"]),
        "seconds": float(suite.attrib["time"]),
    }


def lost_shards(folder: Path) -> list[str]:
    """The shards whose file is missing beside those of the others."""
    programs = {(file.name.split(".")[0], file.stem.split("-of-")[1]) for file in folder.glob("*.json")}
    all_shards = [f"{name}.{i}-of-{count}" for name, count in programs for i in range(int(count))]
    return sorted(shard for shard in all_shards if not (folder / f"{shard}.json").exists())


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """One row a program, the shards and the files of Python together, and one a tool of compute-sanitizer."""
    parts = [("tests/python" if file.suffix == ".xml" else file.name.split(".")[0], (junit if file.suffix == ".xml" else googletest)(file))
             for file in sorted((folder / "tests").iterdir())]  # fmt: skip
    parts += [(f"compute-sanitizer {log.name.split('.')[0].removeprefix('sanitizer_')}", sanitized(log))
              for log in sorted(folder.glob("sanitizer_*.log"))]  # fmt: skip
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for name, counts in parts:
        for key, value in counts.items():
            found[name][key] += value
    return [
        {
            "name": name,
            "tests": int(row["tests"]),
            "passed": int(row["tests"] - row["failed"] - row["skipped"]),
            "skipped": int(row["skipped"]),
            "failed": int(row["failed"]),
            "seconds": round(row["seconds"]),
        }
        for name, row in found.items()
    ]


def sanitized(log: Path) -> dict[str, float]:
    """Counts of the tests that ran under a tool. Those failed that it reports something of, or that failed by themselves, and
    all if the program did not end."""
    text = log.read_text()
    ran = re.search(r"^\[==========\] (\d+) tests? from .* ran\. \((\d+) ms", text, re.MULTILINE)
    skipped = re.search(r"^\[  SKIPPED \] (\d+) test", text, re.MULTILINE)
    errors = re.search(r"(?:ERROR SUMMARY: |RACECHECK SUMMARY: .*\()(\d+) error", text)
    tests, left = int(ran[1]) if ran else 1, int(skipped[1]) if skipped else 0
    of_tests = text.partition("Global test environment tear-down")[0].split("[ RUN      ]")[1:]
    bad = sum(bool(re.search(r"^========= \S|^\[  FAILED  \]", lines, re.MULTILINE)) for lines in of_tests)
    if not ran or not errors:
        bad = tests - left
    elif int(errors[1]):
        bad = max(bad, 1)  # what is reported at the end is of no single test
    return {"tests": tests, "failed": min(bad, tests - left), "skipped": left, "seconds": int(ran[2]) / 1e3 if ran else 0}


def main() -> int:
    folder = Path(sys.argv[1])
    rows = rows_of(folder)
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    write(str(folder / "gpu_tests.json"), f"tests on a GPU, {date}", rows, timing="seconds of all processes together")
    lost = lost_shards(folder / "tests")
    for name in lost:
        print(f"gpu_record: {name} left no file: it crashed, or was ended")
    return 1 if lost or not rows or any(row["failed"] or not row["passed"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
