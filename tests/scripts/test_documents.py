# SPDX-License-Identifier: Apache-2.0
"""Quotes and generated tables of the documents: a wrong one is found."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import check_links
import documents
import quote
import regions

SOURCE = "// SPDX-License-Identifier: Apache-2.0\nint a() {\n  return 1;\n}\nint b();\n"


ROOT = Path(__file__).parents[2]
# A document of each writer, and a text of it behind which the writer's part begins.
WRITTEN = [
    ("launchers", "docs/launchers.md", "<!-- launchers -->\n"),
    ("launchers", "tensorcraft/kernels/all.cuh", "#pragma once\n"),
    ("quote", "README.md", "<!-- quote: examples/quickstart.py -->\n"),
    ("tests", "tensorcraft/ops/gemm/README.md", "<!-- tests -->\n"),
    ("results", "docs/performance.md", "<!-- results: summary -->\n"),
    ("layers", "ARCHITECTURE.md", "<!-- layers -->\n"),
    ("ladder", "docs/gemm_ladder.svg", "</style>\n"),
    ("kernels", "docs/kernels.md", "<!-- kernels: compiler -->\n"),
    ("waits", "docs/waiting.md", "<!-- waits -->\n"),
    ("operators", "README.md", "<!-- operators -->\n"),
    ("operators", "docs/operators.md", "<!-- index -->\n"),
]


def write_documents(root, *arguments):
    command = [sys.executable, "scripts/documents.py", *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "a.cpp").write_text(SOURCE)
    return tmp_path


def test_every_document_is_up_to_date():
    assert write_documents(ROOT, "--check") == (0, [], "")


def test_a_stale_document_of_each_writer_is_named_and_mended(tmp_path):
    assert {word for word, _, _ in WRITTEN} == documents.WRITERS.keys()
    tree = shutil.copytree(ROOT, tmp_path / "tree", symlinks=True, ignore=shutil.ignore_patterns(*regions.SKIPPED))
    for _, page, begin in WRITTEN:
        before, found, after = (tree / page).read_text().partition(begin)
        (tree / page).write_text(before + found + "stale\n" + after)
        assert found, page
    stale = {page: (tree / page).read_text() for _, page, _ in WRITTEN}
    named = [f"{page}: is not up to date: run .venv/bin/python scripts/documents.py" for _, page, _ in WRITTEN]
    assert write_documents(tree, "--check") == (1, named, "")
    assert write_documents(tree, "--check", "waits", "quote") == (1, [named[2], named[8]], "")
    assert stale == {page: (tree / page).read_text() for page in stale}
    assert write_documents(tree) == (0, [f"{page}: written" for _, page, _ in WRITTEN], "")
    assert {page: (tree / page).read_text() for page in stale} == {page: (ROOT / page).read_text() for page in stale}


def test_what_a_person_has_to_mend_fails_too(monkeypatch, capsys):
    monkeypatch.setattr(documents, "WRITERS", {"quote": documents.Writer(quote, lambda check: [], lambda: ["page.md: by hand"])})
    for arguments in ([], ["--check"]):
        monkeypatch.setattr(sys, "argv", ["documents.py", *arguments])
        assert documents.main() and capsys.readouterr().out == "page.md: by hand\n"


def test_a_writer_that_there_is_not_is_refused():
    code, _, said = write_documents(ROOT, "quotes")
    assert code == 2 and "no writer is named quotes; there are launchers, quote, " in said


def test_the_changelog_begins_with_the_version_of_the_project():
    project = re.search(r"project\(tensorcraft VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    newest = re.search(r"^## ([0-9.]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest[1] == project[1]


def test_a_quote_is_the_file_without_its_licence(tree):
    assert quote.quote("a.cpp", tree) == "```cpp\nint a() {\n  return 1;\n}\nint b();\n```\n"


def test_a_quote_of_a_part_ends_where_it_says(tree):
    assert quote.quote('a.cpp "int a" "^}"', tree) == "```cpp\nint a() {\n  return 1;\n}\n```\n"
    assert quote.quote('a.cpp "return" "int b"', tree) == "```cpp\n  return 1;\n}\nint b();\n```\n"


@pytest.mark.parametrize("argument", ["b.cpp", 'a.cpp "int c" "}"', 'a.cpp "int a" "^int c"'])
def test_a_quote_of_nothing_fails(tree, argument):
    with pytest.raises(SystemExit, match="quote: "):
        quote.quote(argument, tree)


def test_a_document_that_disagrees_is_found_and_mended(tree):
    page = tree / "page.md"
    page.write_text('Text.\n<!-- quote: a.cpp "int b" "int b" -->\nint c();\n<!-- /quote -->\nMore.\n')

    def content(argument):
        return quote.quote(argument, tree)

    assert regions.update("quote", content, tree, check=True) == ["page.md"]
    assert "int c" in page.read_text()
    assert regions.update("quote", content, tree) == ["page.md"]
    assert "\nint b();\n" in page.read_text() and page.read_text().endswith("More.\n")
    assert regions.update("quote", content, tree, check=True) == []


def test_code_outside_a_quote_is_found(tree):
    (tree / "page.md").write_text("```cpp\nint c();\n```\n")
    assert list(quote.typed_by_hand(tree)) == ["page.md: cpp code stands outside a quote"]


def test_links_to_nothing_are_found(tree):
    (tree / "docs").mkdir()
    (tree / "docs" / "b.md").write_text("# Head of `b`, twice\n## Part\n## Part\n```\n# no heading, [no](link.md)\n```\n")
    good = "[b](docs/b.md) [part](docs/b.md#part-1) [head](docs/b.md#head-of-b-twice) [out](https://b.c/d) `docs/b.md` [a](#top)\n"
    (tree / "page.md").write_text("# Top\n" + good)
    assert list(check_links.problems(tree)) == []
    (tree / "page.md").write_text("[b](b.md) [part](docs/b.md#part-2) [no](docs/b.md#no-heading-no) `docs/c.md`\n")
    assert list(check_links.problems(tree)) == [
        "page.md: links to b.md, which does not exist",
        "page.md: links to docs/b.md#part-2, but there is no such heading",
        "page.md: links to docs/b.md#no-heading-no, but there is no such heading",
        "page.md: names docs/c.md, which does not exist",
    ]


def test_every_page_is_listed():
    docs = ROOT / "docs"
    listed = set(re.findall(r"\]\(([\w.]+\.md)\)", (docs / "README.md").read_text()))
    assert {page.name for page in docs.glob("*.md")} - {"README.md"} == listed


@pytest.mark.parametrize(("file", "pattern", "words"), [
    ("CMakeLists.txt", r"cmake_minimum_required\(VERSION ([\d.]+)\)", "CMake {}"),
    ("cmake/compiler.cmake", r"(GCC \d+, Clang \d+) with", "{}"),
    ("pyproject.toml", r'requires-python = ">=([\d.]+)"', "Python {}."),
    ("cmake/cuda_toolkit.cmake", r"TENSORCRAFT_CUDA_MINIMUM ([\d.]+)\)", "| {} or newer, when you build |"),
    ("cmake/cuda_toolkit.cmake", r"TENSORCRAFT_CUDA_MINIMUM ([\d.]+)\)", "| {} or newer, of the driver's version or older |"),
    ("tensorcraft/cuda/driver.cpp", r"kInterface = (\d+)000;", "| CUDA {}.0 or newer |"),
])  # fmt: skip
def test_the_page_of_install_says_what_the_build_and_the_library_ask_for(file, pattern, words):
    asked = re.search(pattern, (ROOT / file).read_text())[1].replace(", Clang", " or Clang")
    assert words.format(asked) in (ROOT / "docs" / "install.md").read_text()


OPS = ROOT / "tensorcraft" / "ops"
HEADER = re.compile(r'#include "(tensorcraft/[^"]+)"')
WAITS = re.compile(
    r"__syncthreads\w*\(|\b(bar_sync|cluster_sync|block_(sum|max|reduce)|group_reduce\w*|part_of_warps|over_group|block_moments)\("
)
# What a kernel may call of these is seen where it calls it.
CALLED = re.compile(r"tensorcraft/device/(host\w*\.h|ptx/\w+\.cuh|(reduce|row_group|cluster)\.cuh)")


def texts_of(file, seen):
    """Device text of an operator with all that it includes."""
    name = file.relative_to(OPS.parents[1]).as_posix()
    if name in seen or CALLED.match(name) or not file.exists():
        return
    seen[name] = re.sub(r"//.*", "", file.read_text())
    for included in HEADER.findall(seen[name]):
        texts_of(OPS.parents[1] / included, seen)


def rungs_of(table):
    return {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}


@pytest.mark.parametrize("folder", sorted({p.parent for p in OPS.glob("*/*.cuh")}), ids=lambda folder: folder.name)
def test_every_rung_says_how_many_barriers_it_has(folder):
    """Warps do most of what threads do together: the page of an operator shows where a block waits."""
    page = (folder / "README.md").read_text().partition("\n## Notebook\n")[0]
    texts = {}
    for file in folder.glob("*.cuh"):
        texts_of(file, texts)
    waiting = [name for name, text in texts.items() if WAITS.search(text)]
    if "No kernel here has a barrier." in page:
        assert waiting == []
        return
    assert waiting, "the page can say that no kernel here has a barrier"
    tables = re.findall(r"^\|(?: [^|\n]* \|)* barriers a (?:[^\n]*)\n(?:\|[^\n]*\n)+", page, re.MULTILINE)
    for table in tables:
        head, _, *rows = [line.split("|") for line in table.splitlines()]
        at = next(i for i, cell in enumerate(head) if cell.startswith(" barriers a "))
        assert all(re.match(r" (\d|none|as )", row[at]) for row in rows), table
    rungs = {re.sub(r"^\d+_", "", file.stem) for file in folder.glob("[0-9]*.cuh")}
    named = set().union(*map(rungs_of, tables))
    # The file of a second ladder of a folder names it beside the rung: backward_naive, naive_sort.
    assert {rung for rung in rungs - named if not named & set(rung.split("_"))} == set()


def test_what_was_tried_stands_in_the_notebook_at_the_end_of_a_page():
    """Who reads a page from its top learns the present, not its history."""
    history = re.compile(r"\bpredicted\b|to be measured|\btried\b|was learned", re.IGNORECASE)
    for page in sorted((ROOT / "tensorcraft" / "ops").glob("*/README.md")):
        now, _, notebook = page.read_text().partition("\n## Notebook\n")
        assert not history.search(now), f"{page.parent.name}: {history.search(now)[0]}"
        assert "\n## " not in notebook, f"{page.parent.name}: a section follows the notebook"
