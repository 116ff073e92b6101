# SPDX-License-Identifier: Apache-2.0
"""Tables of measurements: what benchmarks/results/ becomes in the documents."""

import csv
import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import check_budgets
import ladder_picture
import learning_tables
import operators_table
import regions
import results_case
import results_table

ROOT = Path(__file__).parents[2]


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
    cases = [tuple(c.first[k] for k in results_case.CASE) for d in MEASURED.values() if d.get("schema") == 1
             for c in results_case.cases_of(d, "")]  # fmt: skip
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
    assert results_case.short_shape(row) == words


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
    products = [c.first for d in MEASURED.values() if d.get("schema") == 1 for c in results_case.cases_of(d, "gemm")
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
