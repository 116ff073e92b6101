# SPDX-License-Identifier: Apache-2.0
"""suites.json holds what it must, and Python expands it."""

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import suites

HEADLINE = {
    "silu", "gelu", "add", "silu_and_mul", "softmax", "layer_norm", "rms_norm", "cross_entropy", "transpose", "sum", "quantize", "rope",
    "batch_norm",
}  # fmt: skip
ROWS = ["32768x1024", "16384x4096", "8192x8192", "4096x32768", "2048x131072"]


def test_every_case_is_filled_in_and_there_once():
    cases = suites.suite("all")
    assert len({(c.op, c.name) for c in cases}) == len(cases) > 120
    for case in cases:
        assert "{" not in case.name
        assert all(suites.SHAPE.fullmatch(shape) for shape in case.shapes), case.name
        assert all("=" in option for option in case.options)


def test_the_pages_name_every_suite():
    root = Path(__file__).parents[2]
    known = {group["suite"] for group in json.loads((root / "benchmarks" / "suites.json").read_text())["groups"]}
    option = next(line for line in (root / "docs" / "command.md").read_text().splitlines() if line.startswith("| `--suite` |"))
    assert set(re.findall(r"`([a-z-]+)`", option)) - {"--suite"} == known | {"all"}
    table = (root / "docs" / "benchmarks.md").read_text().partition("| suite | holds |")[2].partition("\n\n")[0]
    assert {name for row in table.splitlines() for name in re.findall(r"`([a-z-]+)`", row.split("|")[1] if "|" in row else "")} == known


def test_the_headline_has_every_shape_in_both_dtypes():
    cases = suites.suite("headline")
    assert {c.op for c in cases} == HEADLINE
    names = {f"{c.op} {c.name}" for c in cases}
    for dtype in ("bfloat16", "float32"):
        for rows in ROWS:
            cols = rows.split("x")[1]
            wanted = [f"softmax {rows} {dtype}", f"layer_norm {rows} {dtype} weight={cols} bias={cols}",
                      f"rms_norm {rows} {dtype} weight={cols}", f"rms_norm {rows} {dtype} weight={cols} residual={rows}"]  # fmt: skip
            assert names.issuperset(wanted)
    sums = [c for c in cases if c.op == "sum" and not c.at_most_us]
    sizes = {"bfloat16": 2, "float32": 4}
    for case in sums:
        rows, cols = map(int, case.shapes[0].split("x"))
        assert rows * cols * sizes[case.dtype] == 1 << 30
    assert len(sums) == 6


def sizes_of(case):
    """m, n and k of a product of two matrices."""
    a, b = ([int(size) for size in shape.partition("/")[0].split("x")] for shape in case.shapes)
    (m, k) = a[::-1] if "transpose_a=true" in case.options else a
    (n, also_k) = b if "transpose_b=true" in case.options else b[::-1]
    assert k == also_k, case.name
    return m, n, k


def test_products_of_every_layout_and_of_odd_shapes():
    cases = suites.suite("gemm")
    assert {c.op for c in cases} == {"gemm"} and len(cases) <= 60
    layouts = {(), ("transpose_a=true",), ("transpose_b=true",), ("transpose_a=true", "transpose_b=true")}
    for size in (256, 512, 1024, 2048, 4096, 8192):
        squares = [c for c in cases if sizes_of(c) == (size,) * 3 and c.dtype == "bfloat16"]
        assert {c.options for c in squares} == layouts
    tf32 = [c for c in cases if "allow_tf32=true" in c.options]
    assert {sizes_of(c)[0] for c in tf32} == {4096, 8192} and len(tf32) == 8
    odd = [c for c in cases if c.group == "odd shapes"]
    shapes = [sizes_of(c) for c in odd]
    assert len(odd) == 20 and (333, 4097, 1023) in shapes
    assert any(k == 1 for _, _, k in shapes) and any(n == 1 for _, n, _ in shapes)
    rows = [re.split("[x/]", shape)[-1] for c in odd for shape in c.shapes]
    assert sum(int(leading) % 8 != 0 for leading in rows) > 10  # strides that the copy engine cannot take
    assert any("/" in shape for c in odd for shape in c.shapes)


def test_the_ladder_of_products_doubles():
    cases = suites.suite("gemm-ladder")
    assert {sizes_of(c) for c in cases} == {(2**i,) * 3 for i in range(8, 13)} and {c.dtype for c in cases} == {"float32", "bfloat16"}


def test_products_of_models():
    cases = suites.suite("gemm-llm")
    assert 32 <= len(cases) <= 60
    by_group = {group: [sizes_of(c) for c in cases if c.group == group] for group in {c.group for c in cases}}
    assert set(by_group) == {"M 1 to 64", "M 256 to 8192"}
    assert {m for m, _, _ in by_group["M 1 to 64"]} == {1, 4, 16, 64}
    assert {m for m, _, _ in by_group["M 256 to 8192"]} == {256, 1024, 4096, 8192}
    deepseek = {(2112, 7168), (576, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048)}
    for shapes in by_group.values():
        assert {(n, k) for _, n, k in shapes} >= deepseek
    assert all("transpose_b=true" in c.options and c.dtype == "bfloat16" for c in cases)


def test_eight_bits_have_every_kind_of_scale():
    cases = suites.suite("gemm-bytes")
    groups = {group: [c for c in cases if c.group == group] for group in {c.group for c in cases}}
    by_block = groups["float8, scales by block"]
    assert len(by_block) == 21 and {sizes_of(c)[0] for c in by_block} == {64, 128, 4096}
    whole = {sizes_of(c) for name in ("the same shapes, one scale", "float8, one scale") for c in groups[name]}
    assert whole >= {sizes_of(c) for c in by_block if sizes_of(c)[0] == 4096}
    assert {c.dtype for c in cases} == {"float8_e4m3fn", "int8"}


def test_epilogues_come_with_their_products():
    options = {option.split("=")[0] for c in suites.suite("gemm-epilogue") for option in c.options}
    assert options >= {"bias", "activation", "c", "out_dtype"}


def test_attention_has_as_many_tokens_and_channels_in_each_case():
    cases = [c for c in suites.suite("attention") if c.at_least]
    shapes = [[int(n) for n in c.shapes[0].split("x")] for c in cases]
    assert len(cases) == 30 and all(b * s == 16384 and h * d == 2048 for b, h, s, d in shapes)


def test_targets_belong_to_their_cases():
    by_name = {f"{c.op} {c.name}": c for c in suites.suite("headline")}
    row = by_name["softmax 8192x8192 bfloat16"]
    assert row.at_least == {"copy": 0.95, "torch": 1.0, "torch.compile": 1.0} and not row.at_most_us
    assert by_name["cross_entropy 8192x131072 8192:int64 bfloat16"].below == {"targets": 131072}
    assert by_name["softmax 512x1024 bfloat16"].at_most_us == {"copy": 1.5}


def test_a_line_of_another_form_and_an_unknown_suite_are_refused():
    assert suites.parse("relu 4x8").name == "4x8 float32"
    with pytest.raises(ValueError, match="there is no --loud"):
        suites.parse("relu 4 --loud")
    with pytest.raises(ValueError, match='no suite "none"; there are attention, convolution, gemm, '):
        suites.suite("none")
