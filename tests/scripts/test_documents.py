# SPDX-License-Identifier: Apache-2.0
"""Quotes and generated tables of the documents: a wrong one is found."""

import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import check_budgets
import check_links
import documents
import ladder_picture
import learning_tables
import operators_table
import quote
import regions
import results_table

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


def test_results_become_tables(tmp_path):
    rows = [{"name": "gemm", "ms": 1.23456, "p10_ms": 1.0}, {"name": "gemm ladder", "variant": "naive"}, {"name": "add", "ms": 2.0}]
    document = {"title": "Products", "machine": {"gpu": "a GPU"}, "seed": 1, "rows": rows}
    (tmp_path / "a.json").write_text(json.dumps(document))
    head = "**Products** (`a.json`: gpu a GPU, seed 1)\n\n| name | ms |\n| --- | --- |\n| gemm | 1.23 |\n\n"
    ladder = "| name | variant |\n| --- | --- |\n| gemm ladder | naive |\n"
    assert results_table.table("gemm", tmp_path) == head + ladder + "\n"
    assert "| add | 2 |" in results_table.table("", tmp_path)


MADE_UP = Path(__file__).parents[1] / "cli" / "made_up_results.json"


def test_results_of_bench_become_tables(tmp_path):
    (tmp_path / "a.json").write_text(MADE_UP.read_text())
    lines = results_table.table("softmax", tmp_path).splitlines()
    assert lines[0].startswith("**Made-up test data, never measured** (`a.json`: processor imaginary, gpu imaginary GPU, ")
    assert lines[2] == results_table.HOW_TO_READ
    assert lines[4:8] == [
        "| op | shape | dtype | variant | us | GB/s | of copy | torch | torch.compile | slower than |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        "| softmax | 8192x8192 | bfloat16 | in_registers | 72.5 | 3703 | 0.952 | 3.586 | 1.524 |  |",
        "| softmax | 2048x131072 | float32 | cluster | 640 | 3355 | 0.812 | 1.766 | **0.938** | torch.compile |",
    ]
    assert lines[9] == "| op | shape | dtype | in_registers | online | block | naive | cluster |"
    assert lines[11] == "| softmax | 8192x8192 | bfloat16 | **72.5 us** | 95.25 us | 180 us | 2400 us | n/a |"
    assert "| softmax | torch.compile | 1.195 | 2 | 1 | 0.938 |" in lines
    assert "| softmax | copy | 0.879 | 2 | a bound | 0.812 |" in lines
    reason = "- n/a: softmax tensorcraft in_registers (a row has more than 64 values a thread): 2048x131072 float32 axis=-1"
    assert reason in lines
    assert results_table.table("relu", tmp_path) == "Nothing is measured yet.\n\n"
    assert results_table.table("file none.json", tmp_path) == "Nothing is measured yet.\n\n"
    (tmp_path / "b.json").write_text(MADE_UP.read_text())
    twice = results_table.table("softmax", tmp_path).splitlines()
    assert twice.count(lines[0]) == twice.count(lines[2]) == 1 and len(twice) == 2 * len(lines) - 2  # explained once


def test_a_table_of_all_results_tells_cases_and_bounds_apart(tmp_path):
    (tmp_path / "a.json").write_text(MADE_UP.read_text())
    old = {"title": "Old", "rows": [{"name": "softmax", "ms": 1.0}]}
    (tmp_path / "b.json").write_text(json.dumps(old))
    text = results_table.table("", tmp_path)
    gemm = "gemm | 4096x4096x4096 | bfloat16 | transpose_b=true | events | cold | tma | 287 | 350.7 | 478.9 | 0.48 |"
    assert gemm in text and " | us | GB/s | TFLOPS | of peak | of copy | cublaslt | " in text
    assert "| add | 512x512 | float32 |  | graph | warm | vectorized | 2.9 | 1085 | 0.09039 |  | 0.897 |  | 1.138 | n/a |  |" in text
    assert "- n/a: transpose torch.compile (torch.compile gave up: &lt;graph break&gt;): 8192x8192 float32\n" in text
    assert "- n/a: add torch.compile (timed by events, the others by graph): 512x512 float32\n" in text
    assert "- not run: cumsum 8192x8192 float32: there is no operator cumsum\n" in text
    assert text.endswith("**Old** (`b.json`)\n\n| name | ms |\n| --- | --- |\n| softmax | 1 |\n\n")


def test_products_rounded_to_tf32_stand_by_themselves():
    for options, name in [("", "float32"), ("transpose_b=true allow_tf32=true", "tfloat32"), ("precision=3xtf32", "float32")]:
        assert results_table.precision({"dtype": "float32", "options": options}) == name


def test_groups_of_a_suite_have_means_of_their_own(tmp_path):
    document = json.loads(MADE_UP.read_text())
    for row in document["rows"]:
        row["group"] = "rows" if row["op"] == "softmax" else ""
    (tmp_path / "a.json").write_text(json.dumps(document))
    lines = results_table.table("softmax", tmp_path).splitlines()
    assert "| group | peer | geomean of ratios | cases | slower in | smallest |" in lines
    assert "| rows | torch.compile | 1.195 | 2 | 1 | 0.938 |" in lines
    assert not [line for line in results_table.table("gemm", tmp_path).splitlines() if line.startswith("| group")]


def test_a_changed_measurement_changes_the_table(tmp_path):
    document = json.loads(MADE_UP.read_text())
    (tmp_path / "a.json").write_text(json.dumps(document))
    page = tmp_path / "page.md"
    page.write_text("<!-- results: softmax -->\n<!-- /results -->\n")

    def content(argument):
        return results_table.table(argument, tmp_path)

    assert regions.update("results", content, tmp_path) == ["page.md"]
    assert regions.update("results", content, tmp_path, check=True) == []
    document["rows"][6]["median_us"] += 1
    (tmp_path / "a.json").write_text(json.dumps(document))
    assert regions.update("results", content, tmp_path, check=True) == ["page.md"]


def test_without_results_the_table_says_so(tmp_path):
    assert results_table.table("", tmp_path) == "Nothing is measured yet.\n\n"


MEASURED = results_table.documents(results_table.RESULTS)


def test_an_operator_that_loses_says_why_and_types_no_figure():
    reasons = json.loads(results_table.REASONS.read_text())
    everything = [*results_table.standings(MEASURED), *results_table.host_standings(MEASURED)]
    assert reasons.keys() == {s.name for s in everything if s.needs_reason()}
    for reason in reasons.values():
        assert reason.endswith(".") and not check_budgets.TYPED_RATIO.search(reason)


def test_every_file_of_results_is_listed():
    lines = results_table.files_lines(MEASURED)
    assert all(any(line.startswith(f"| `{name}` |") for line in lines) for name in MEASURED)
    assert sum("| yes |" in line for line in lines) == sum(d.get("schema") == 1 for d in MEASURED.values())


def test_each_case_has_one_figure():
    cases = [tuple(c.first[k] for k in results_table.CASE) for d in MEASURED.values() if d.get("schema") == 1
             for c in results_table.cases_of(d, "")]  # fmt: skip
    assert len(cases) == len(set(cases)) > 100
    for d in MEASURED.values():
        counted = [row for row in d.get("rows", []) if results_table.COUNTED in row]
        assert not any({"us", "GB/s"} & set(results_table.shown(row)) for row in counted)


def test_the_summary_says_how_far_and_why():
    lines = results_table.summary_lines({"a.json": json.loads(MADE_UP.read_text())}, {"add": "Launches."})
    assert lines[0] == "On imaginary GPU:"
    softmax = "| softmax | 0.73 (0.70) | 1.20 (0.94) | 1 of 2 |  |"
    gemm = "| gemm bfloat16 | 0.48 (0.48) | 0.67 (0.67) | 1 of 1 |  |"
    assert softmax in lines and gemm in lines
    standings = {s.name: s for s in results_table.standings({"a.json": json.loads(MADE_UP.read_text())})}
    assert standings["softmax"].needs_reason() and not standings["add"].needs_reason()
    assert standings["add"].roofs == []  # timed in a graph: a launch is most of it
    assert results_table.summary_lines({}, {}) == []


def test_a_rate_below_half_of_the_roof_needs_a_reason_without_any_peer():
    document = json.loads(MADE_UP.read_text())
    document["rows"] = [r for r in document["rows"] if r["op"] == "softmax" and r["candidate"] == "tensorcraft"]

    def needs():
        (standing,) = results_table.standings({"a.json": document})
        return standing.needs_reason()

    assert not needs()
    for row in document["rows"]:
        row["floor_us"] /= 2
    assert needs()


def test_operations_are_not_compared_with_a_copy():
    lines = results_table.sections({"a.json": json.loads(MADE_UP.read_text())}, "gemm")
    assert not any("copy |" in line for line in lines)


@pytest.mark.parametrize("op, unit", [("softmax", "GB/s"), ("rms_norm", "GB/s"), ("gemm", "TFLOPS")])
def test_a_ladder_goes_up_from_naive_in_what_limits_it(op, unit):
    head, _, *lines = results_table.ladder_lines(MEASURED, op)
    assert head.startswith(f"| rung | us | {unit} |") and lines[0].startswith("| `naive` |")
    times = [float(line.split(" | ")[1].replace(",", "")) for line in lines if line.startswith("| `")]
    assert len(times) >= 5 and times == sorted(times, reverse=True)


def test_a_peer_on_a_cpu_is_in_the_summary():
    document = {"title": "t", "machine": {}, "rows": [{"name": "add 4x4", "peer": "numpy", "ratio": r} for r in (2.0, 0.5)]}
    lines = results_table.summary_lines({"a.json": document}, {"cpu add": "Slow."})
    assert "| add | 1.00 (0.50) | 1 of 2 | Slow. |" in lines


def test_the_ladder_is_drawn_and_tabled_from_one_case():
    text = results_table.table("ladder gemm")
    drawn = ladder_picture.picture(*ladder_picture.ladder_of_gemm(MEASURED))
    rungs, beside = results_table.ladder_of(MEASURED, "gemm")
    for name, row in rungs:
        assert f"| `{name}` |" in text and f">{name}</text>" in drawn
        rate = f"{beside.first['flops'] / row['us'] * 1e-6:.3g}"
        assert f" {rate} |" in text and f">{rate}</text>" in drawn
    assert rungs[0][0] == "naive" and ">cublaslt</text>" in drawn and "prefers-color-scheme: dark" in drawn


def test_what_bench_measured_becomes_an_image_and_a_table(tmp_path):
    image, numbers = tmp_path / "softmax.svg", tmp_path / "softmax.csv"
    ladder_picture.main([str(MADE_UP), "--operator", "softmax", "--image", str(image), "--csv", str(numbers)])
    with numbers.open() as file:
        rows = list(csv.DictReader(file))
    measured = json.loads(MADE_UP.read_text())["rows"]
    of_case = [r for r in measured if (r["op"], r["shape"]) == ("softmax", "8192x8192") and not r.get("error")]
    times = {r["variant"]: r["median_us"] for r in of_case if r["candidate"] == "tensorcraft"}
    assert {r["name"]: float(r["us"]) for r in rows if r["kind"] == "variant"} == times
    assert rows[0]["name"] == "naive" and rows[0]["times the first"] == "1"
    assert {r["name"] for r in rows if r["kind"] == "peer"} == {"torch", "torch.compile"}
    drawn = ElementTree.parse(image).getroot()
    space = "{http://www.w3.org/2000/svg}"
    widths = {kind: [float(r.get("width")) for r in drawn.iter(space + "rect") if r.get("class") == kind] for kind in ("bar", "peer")}
    assert (len(widths["bar"]), len(widths["peer"])) == (len(times), 2)
    assert widths["bar"] == sorted(widths["bar"]) and all(0 < w < 500 for w in widths["bar"])
    words = [text.text for text in drawn.iter(space + "text")]
    assert words[0] == "softmax, step by step: 8192x8192 in bfloat16" and {r["name"] for r in rows} <= set(words)
    with pytest.raises(SystemExit, match="no variant of topk was timed"):
        ladder_picture.main([str(MADE_UP), "--operator", "topk", "--image", str(image)])


@pytest.mark.parametrize(("row", "words"), [
    ({"op": "gemm", "shape": "8x2 2x4", "options": ""}, "8x4x2"),
    ({"op": "gemm", "shape": "8x2 4x2", "options": "transpose_b=true"}, "8x4x2"),
    ({"op": "gemm", "shape": "2x8 2x4", "options": "transpose_a=true"}, "8x4x2"),
    ({"op": "gemm", "shape": "2x8 4x2", "options": "transpose_a=true transpose_b=true"}, "8x4x2"),
    ({"op": "gemm", "shape": "3x8x2 2x4", "options": ""}, "3x8x2 2x4"),
    ({"op": "attention", "shape": "4x16x2048x64 4x16x2048x64 4x16x2048x64", "options": ""}, "b4 h16 s2048 d64"),
    ({"op": "attention", "shape": "4x16x1x64 4x2x99x64 4x2x99x64", "options": ""}, "4x16x1x64 4x2x99x64 4x2x99x64"),
    ({"op": "add", "shape": "8x2 8x2", "options": ""}, "8x2 8x2"),
])  # fmt: skip
def test_a_case_is_named_as_one_writes_it(row, words):
    assert results_table.short_shape(row) == words


def test_an_appendix_leaves_out_what_an_operator_shows(tmp_path):
    readme = tmp_path / "tensorcraft" / "ops" / "softmax" / "README.md"
    readme.parent.mkdir(parents=True)
    readme.write_text("<!-- results: short softmax -->\n<!-- /results -->\n")
    (tmp_path / "a.json").write_text(MADE_UP.read_text())
    text = results_table.table("file a.json", tmp_path, tmp_path)
    assert "| softmax |" not in text and "| gemm |" in text
    assert "With their operators: [softmax](operators.md#softmax)." in text


def test_the_operator_table_has_one_row_a_group():
    class Variant:
        def __init__(self, name, device):
            self.name, self.device = name, device

    class Operator:
        def __init__(self, name):
            self.name, self.group = name, "reduce"
            self.variants = [Variant("block", "cuda"), Variant("cpu", "cpu")]

    rows = list(operators_table.rows({"sum": Operator("sum"), "max": Operator("max")}))
    assert rows[2:] == ["| reduce | `sum`, `max` | block | cpu |"]


def test_fusion_is_shown_with_the_bytes_and_times_that_were_measured(tmp_path):
    rows = [{"op": "silu_and_mul", "case": "8x16 float32", "shape": "8x16", "dtype": "float32", "options": "", "timing": "events",
             "cache": "cold", "candidate": name, "variant": "", "median_us": us, "bytes": 768.0, "error": error}
            for name, us, error in (("tensorcraft", 2.0, None), ("torch", 5.0, None), ("copy", 1.0, None))]  # fmt: skip
    document = {"schema": 1, "machine": {"gpu": "a GPU"}, "rows": rows}
    (tmp_path / "a.json").write_text(json.dumps(document))
    # 8 x 8 results of 4 bytes: silu of a half is written and read, which is 512 bytes beside 3 x 256.
    row = "| `silu`, then a product of elements | 8x16 | float32 | 0 | 0 | 1.67 | torch | 5 | 2 | 2.50 |"
    assert row in results_table.table("fusion", tmp_path).splitlines()
    rows[1]["error"] = "torch is missing"
    (tmp_path / "a.json").write_text(json.dumps(document))
    assert results_table.table("fusion", tmp_path) == "Nothing is measured yet.\n\n"


@pytest.mark.parametrize(("op", "shape", "options", "result"), [
    ("rms_norm", "8x4", "weight=4 residual=8x4", 32),
    ("silu_and_mul", "8x4", "", 16),
    ("gemm", "8x4 6x4", "transpose_b=true bias=6 activation=silu", 48),
    ("gemm", "8x4 6x4", "transpose_b=true gated=silu", 24),
])  # fmt: skip
def test_a_result_is_counted_by_its_operator(op, shape, options, result):
    assert learning_tables.elements_of_result({"op": op, "shape": shape, "options": options}) == result


def test_each_chain_that_fusion_shows_was_measured():
    text = results_table.table("fusion")
    for _, _, calls, by, _ in learning_tables.FUSED:
        assert f"| {calls} |" in text and f"| {by} |" in text
    products = [c.first for d in MEASURED.values() if d.get("schema") == 1 for c in results_table.cases_of(d, "gemm")
                if any(f[1] in c.first["options"] for f in learning_tables.FUSED if f[0] == "gemm")]  # fmt: skip
    assert products and all("transpose_b=true" in first["options"] for first in products)


def test_counters_of_a_kernel_are_those_of_the_file(tmp_path):
    counted = dict.fromkeys(learning_tables.SHOWN, 12.4) | {"name": "sum", "case": "8x8", "us": 3.0, "of least bytes": 1.25}
    rows = [counted | {"kernel": "slow", "us": 9.0}, counted | {"kernel": "fast"}, counted | {"kernel": "x", "name": "add"}]
    (tmp_path / "nsight.json").write_text(json.dumps({"machine": {"gpu": "a GPU"}, "method": "alone", "rows": rows}))
    lines = results_table.table("counters sum", tmp_path).splitlines()
    assert lines[0] == "a GPU, alone:"
    assert lines[4:6] == ["| `fast` | 8x8 | 1.25 | 12 | 12 | 12 | 12 | 12 | 12 |", "| `slow` | 8x8 | 1.25 | 12 | 12 | 12 | 12 | 12 | 12 |"]
    assert results_table.table("counters max", tmp_path) == "Nothing is measured yet.\n\n"
