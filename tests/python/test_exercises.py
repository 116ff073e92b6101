# SPDX-License-Identifier: Apache-2.0
"""The exercises of docs/learning.md: unsolved they say so, with their answers they are done."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tensorcraft as tc

ROOT = Path(__file__).parents[2]
EXERCISES = ROOT / "examples" / "exercises"
ANSWERS = json.loads((EXERCISES / "answers.json").read_text())
FOUND = {
    "coalesce": ("0 of 4096 are wrong, a warp stores to 32 sectors", "a warp stores to 4 sectors"),
    "barrier": (r"[1-9]\d* of 256 are wrong", "0 of 256 are wrong"),
    "tile": ("0 of 1024 are wrong, 73728 loads", "0 of 1024 are wrong, 8192 loads"),
    "banks": ("a row takes 1 passes, a column 32", "a row takes 1 passes, a column 1"),
    "async_copy": (r"[1-9]\d* of 256 are wrong", "0 of 256 are wrong"),
    "fragment": (r"[1-9]\d* of 128 are wrong", "0 of 128 are wrong"),
    "warpgroup": (r"without a fence\.proxy\.async", "0 of 512 are wrong"),
}
pytestmark = pytest.mark.skipif(
    "simt" not in tc.devices() or not any(map(shutil.which, ("g++", "clang++", "c++"))),
    reason="no emulator or no C++ compiler",
)


def said(folder: Path, name: str) -> str:
    done = subprocess.run([sys.executable, str(folder / f"{name}.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def edited(folder: Path, name: str, edits: list[list[str]]) -> str:
    text = (EXERCISES / f"{name}.py").read_text()
    for old, new in edits:
        assert text.count(old) == 1, f"{name}: {old}"
        text = text.replace(old, new)
    shutil.copy(EXERCISES / "course.py", folder)
    (folder / f"{name}.py").write_text(text)
    return said(folder, name)


@pytest.mark.parametrize("name", FOUND)
def test_an_exercise_is_not_yet_done_and_its_answer_is(name: str, tmp_path: Path) -> None:
    before, after = FOUND[name]
    unsolved = said(EXERCISES, name)
    assert unsolved.startswith("not yet: ") and re.search(before, unsolved), unsolved
    solved = edited(tmp_path, name, ANSWERS[name])
    assert solved.startswith("done: ") and after in solved, solved


def test_the_second_fence_of_wgmma_is_named_after_the_first(tmp_path: Path) -> None:
    first, second = ANSWERS["warpgroup"]
    assert "no wgmma.fence" in edited(tmp_path, "warpgroup", [first])
    assert "without a fence.proxy.async" in edited(tmp_path, "warpgroup", [second])


def test_padding_is_no_answer_where_there_is_no_room(tmp_path: Path) -> None:
    padded = edited(tmp_path, "banks", [["row * 32 + column;", "row * 33 + column;"]])
    assert padded.startswith("not yet: ")


def test_every_exercise_is_on_the_page_and_has_an_answer() -> None:
    names = {path.stem for path in EXERCISES.glob("*.py")} - {"course"}
    page = (ROOT / "docs" / "learning.md").read_text()
    assert (
        names == FOUND.keys() == ANSWERS.keys() == set(re.findall(r"examples/exercises/(\w+)\.py$", page, re.MULTILINE))
    )
