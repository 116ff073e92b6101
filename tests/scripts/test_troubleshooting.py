# SPDX-License-Identifier: Apache-2.0
"""docs/troubleshooting.md has what the library says when something is missing, in its own words."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# A statement that gives a reason why the library does without something.
REASON = re.compile(r"\bproblem =|log_warn\(|kNoD\w+\[?\]? ?=|Device::cpu\(\), \"|unavailable_reason =|return join\(\s*\"the NVIDIA")
SOURCES = ["cuda/driver", "cuda/device", "cuda/default_device", "cuda/nvrtc", "jit/folder"]


def source(path: Path) -> str:
    """The text with each literal that is written in parts as one, and in place of its name."""
    text = re.sub(r'"\s*\n\s*"', "", path.read_text())
    known: dict[str, str] = {}
    parts = re.split(r"(?=\b(?:kNo\w+|kFix|fix) =)", text)  # a name counts up to its next definition
    for i, part in enumerate(parts):
        if defined := re.match(r'(\w+) =\s*("[^"]*")', part):
            known[defined[1]] = defined[2]
        for name, literal in known.items():
            parts[i] = re.sub(rf"\b{name}\b(?! =)", lambda _, said=literal: said, parts[i])
    return "".join(parts)


def literals(text: str) -> list[str]:
    """The parts of the first line of each string that says something."""
    lines = (part.split("\\n")[0] for part in LITERAL.findall(text))
    found = (re.sub(r"^\W+|\W+$", "", part) for line in lines for part in re.split(r"; |\. ", line))
    return [part for part in found if len(part) >= 8]


def rows(page: str, column: int, heading: str) -> list[str]:
    """What stands in backticks in a column of a section's table."""
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert section, heading
    cells = [line.split(" | ")[column] for line in section[1].splitlines()[3:] if line.startswith("| ")]
    return [code for cell in cells for code in re.findall(r"`([^`]+)`", cell)]


def test_every_message_of_the_page_is_one_of_ours() -> None:
    files = [*ROOT.glob("tensorcraft/*/*.cpp"), *ROOT.glob("tensorcraft/*/*/*.cpp"), *ROOT.glob("scripts/*.sh")]
    said = "\n".join(source(path) for path in files).replace('echo "', "")
    heads = [h for h in re.findall(r"^## (.+)$", PAGE, re.MULTILINE) if "doctor" not in h]
    messages = [m for h in heads for m in rows(PAGE, 0, h)] + rows(PAGE, 1, "What `tensorcraft doctor` says")
    assert len(messages) > 25
    unknown = [m for m in messages if m.removeprefix("setup: ").removeprefix("docs: ") not in said]
    assert not unknown


@pytest.mark.parametrize("name", SOURCES)
def test_every_reason_for_a_fall_back_is_on_the_page(name: str) -> None:
    statements = [s for s in source(ROOT / "tensorcraft" / f"{name}.cpp").split(";\n") if REASON.search(s)]
    reasons = [said for s in statements if (said := literals(s[REASON.search(s).start() :]))]  # type: ignore[union-attr]
    assert reasons
    assert not [said for said in reasons if not any(part in PAGE for part in said)]


def test_every_finding_of_the_doctor_is_on_the_page() -> None:
    text = source(ROOT / "tensorcraft" / "diagnose" / "doctor.cpp")
    bad = [f for f in re.findall(r"return \{(.*?)\};", text, re.DOTALL) if re.search(r"CheckResult::(warn|fail)|without_gpu", f)]
    assert len(bad) > 15
    missing = [f for f in bad if not any(part in PAGE for part in literals(f))]
    assert not missing
