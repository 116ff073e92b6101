# SPDX-License-Identifier: Apache-2.0
"""The API references: comments reach the declarations they are meant for, and what is missing or dangling is found."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from doxygen_comments import Filter

HEADER = """\
#pragma once
namespace tensorcraft {

// A pair. It holds
// two numbers.
struct Pair {
  // In elements.
  int first = 0, second = 0;
  float gap = 0;  // in bytes
  Pair(const Pair&) = delete;
  ~Pair() { clear(); }

  int sum() const { return first + second; }
};
template <>
struct Pair<int> {
  int hidden;
};

// Does this:
//   use({1, 2});
void use(Pair p = {});
void use(int a, int b);
void other();

void silent();
}  // namespace tensorcraft
"""


def documented(text: str) -> list[str]:
    return Filter(text).run().splitlines()


def test_a_comment_belongs_to_what_it_stands_above_or_behind() -> None:
    lines = documented(HEADER)
    assert len(lines) == HEADER.count("\n")  # what Doxygen warns of has the line of the header
    assert lines[3:5] == ["/// A pair. It holds", "/// two numbers."]
    assert lines[7] == "/** In elements. */ int first = 0; /** In elements. */ int second = 0;"
    assert lines[8] == "  /** In elements. */ float gap = 0;  ///< in bytes"


def test_what_says_itself_is_left_out() -> None:
    lines = documented(HEADER)
    assert not any("delete" in line or "~Pair" in line or "hidden" in line for line in lines)


def test_a_comment_holds_for_its_paragraph_and_no_further() -> None:
    lines = documented(HEADER)
    assert lines[12] == "  int sum() const { return first + second; }"
    assert lines[22:24] == ["/** Does this: */ void use(int a, int b);", "/** Does this: */ void other();"]
    assert lines[25] == "void silent();"


def test_indented_lines_are_code() -> None:
    assert "///  @code{.cpp} use({1, 2}); @endcode" in documented(HEADER)


def test_what_doxygen_would_read_as_a_command_is_text() -> None:
    assert documented("// Of <T> and @all, `a<b>`.\nint f();\n")[0] == r"/// Of \<T\> and \@all, `a<b>`."
    assert documented("int n;  // [m, k]: rows\n")[0] == "int n;  ///< &#91;m, k]: rows"


def test_bodies_and_initialisers_end_where_they_end() -> None:
    text = "// A.\nint f(int a = {}, int b = 2) : c_{a}, d_(b) {\n  int inner = 0;\n}\n\n// B.\nint g();\n"
    assert documented(text)[2] == "  int inner = 0;"
    assert documented(text)[5] == "/// B."


def doxygen(folder: Path, header: str) -> "subprocess.CompletedProcess[str]":
    (folder / "a.hpp").write_text(header)
    settings = (ROOT / "docs" / "Doxyfile").read_text()
    settings += f"\nINPUT = docs/namespaces.dox {folder}/a.hpp\nOUTPUT_DIRECTORY = {folder}\nUSE_MDFILE_AS_MAINPAGE =\n"
    return subprocess.run(["doxygen", "-"], input=settings, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not shutil.which("doxygen"), reason="doxygen is not installed")
def test_a_public_name_without_a_comment_fails(tmp_path: Path) -> None:
    whole = HEADER.replace("  int sum", "  // Of both.\n  int sum").replace("void silent", "// Says nothing.\nvoid silent")
    done = doxygen(tmp_path, whole)
    assert done.returncode == 0, done.stdout + done.stderr
    done = doxygen(tmp_path, HEADER)
    assert done.returncode != 0
    assert "sum() const" in done.stderr and "silent()" in done.stderr and "other()" not in done.stderr


POINT = '''"""A module."""
class Point:
    """A place, as tc.nothing."""

    x: int  # to the right
    y: int

    def length(self):
        pass
'''


def test_a_python_name_without_a_docstring_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorcraft")
    doc = pytest.importorskip("pdoc").doc
    from python_reference import walk

    (tmp_path / "point_of_a_test.py").write_text(POINT)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = list(walk(doc.Module.from_name("point_of_a_test"), "point_of_a_test"))
    assert sorted(found) == [
        "point_of_a_test.Point.length: has no docstring",
        "point_of_a_test.Point.y: has no docstring",
        "point_of_a_test.Point: refers to tc.nothing, which does not exist",
    ]


def test_a_reference_to_nothing_is_found() -> None:
    pytest.importorskip("pdoc")
    pytest.importorskip("tensorcraft")
    from python_reference import linked, unresolved

    assert list(unresolved("As tc.softmax, tc.Tensor.shape and tc.errors.Error.")) == []
    assert list(unresolved("As tc.softmaxx and tc.Tensor.shapes.")) == ["tc.softmaxx", "tc.Tensor.shapes"]
    assert linked("See tc.softmax.", "tensorcraft") == "See [tc.softmax](#softmax)."
    assert linked("See tc.cache.stat.", "tensorcraft") == "See [tc.cache.stat](tensorcraft/cache.html#stat)."
    assert linked("See tc.Tensor.", "tensorcraft.cache") == "See [tc.Tensor](../tensorcraft.html#Tensor)."
    assert linked("Call `tc.softmax(x)`.", "tensorcraft") == "Call `tc.softmax(x)`."
