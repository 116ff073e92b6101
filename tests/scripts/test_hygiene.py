# SPDX-License-Identifier: Apache-2.0
"""The format and lint checks fail on a deliberate violation, and pass a clean file."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLEAN = "int next(int number) { return number + 1; }\n"


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path):
    """A repository with the real checks and one file."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "format.sh", tmp_path / "scripts")
    for name in (".clang-format", ".clang-tidy", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize("text, clean", [(CLEAN, True), ("int  next( int number ){return number+1;}\n", False)])
def test_the_format_check(tree, text, clean):
    (tree / "a.cpp").write_text(text)
    code, printed = run(tree, "scripts/format.sh", "--check")
    assert (code == 0) == clean, printed
    assert clean or "a.cpp:1" in printed
    assert (tree / "a.cpp").read_text() == text


@pytest.mark.parametrize(
    "text, finding",
    [
        (CLEAN, None),
        ("int Next(int number) { return number + 1; }\n", "readability-identifier-naming"),
        ("int* none() { return 0; }\n", "modernize-use-nullptr"),
        ("int f(int x) {\n  if (x == 1);\n    x = 0;\n  return x;\n}\n", "bugprone-suspicious-semicolon"),
        ("int f(int x) {\n" + "  x += 1;\n" * 61 + "  return x;\n}\n", "readability-function-size"),
    ],
)
def test_the_lint_check(tree, text, finding):
    (tree / "a.cpp").write_text(text)
    code, printed = run(tree, "clang-tidy-19", "--quiet", "a.cpp", "--", "-std=c++20")
    assert (code == 0) == (finding is None), printed
    assert finding is None or finding in printed


def test_what_a_contributor_reads_is_linked_from_the_first_page():
    readme = (ROOT / "README.md").read_text()
    templates = [f".github/{name}" for name in ("pull_request_template.md", "ISSUE_TEMPLATE/bug.md", "ISSUE_TEMPLATE/wish.md")]
    for name in ["CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", "CHANGELOG.md", "LICENSE", *templates]:
        assert (ROOT / name).read_text() and f"({name})" in readme, name


HOOKS = re.findall(r"entry: ([^,}]+)", (ROOT / ".pre-commit-config.yaml").read_text())


@pytest.mark.parametrize("entry", [hook for hook in HOOKS if not hook.startswith("scripts/format.sh")])  # test.sh runs that
def test_the_hooks_pass_on_the_tree(entry):
    code, printed = run(ROOT, *entry.split())
    assert code == 0, printed


def test_wheels_are_configured_for_the_systems_that_the_project_names():
    tomllib = pytest.importorskip("tomllib")  # since Python 3.11
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheels = project["tool"]["cibuildwheel"]
    assert project["build-system"]["build-backend"] == "scikit_build_core.build"
    assert "Operating System :: POSIX :: Linux" in project["project"]["classifiers"] and "manylinux" in wheels["build"]
    programs = re.findall(r"\{project\}/(\S+)", wheels["test-command"])
    assert programs and all((ROOT / program).exists() for program in programs)


def test_there_are_settings_for_editors_and_a_hook_for_each_check():
    assert len(HOOKS) == 4 and any(hook.startswith("scripts/format.sh") for hook in HOOKS)
    for name in (".editorconfig", ".gitignore", ".gitattributes", ".clang-format", ".clang-tidy"):
        assert (ROOT / name).read_text(), name


def test_the_python_check(tree):
    (tree / "a.py").write_text("import os\n")
    code, printed = run(tree, sys.executable, "-m", "ruff", "check", "--no-cache", "a.py")
    assert code and "F401" in printed
