# SPDX-License-Identifier: Apache-2.0
"""`tc.explain` says what runs: the variant that a trace of the same call records."""

from typing import Any

import numpy as np
import pytest
from test_layouts import Generator

import tensorcraft as tc

CALLS = 40  # of each operator that answer, on the CPU
SEEDS = {"cpu": 11, "simt": 12}
DEVICES = [d for d in tc.devices() if d in SEEDS]


def ran(op: Any, *args: Any, **options: Any) -> dict[str, str]:
    """The variant of each operator that a call ran."""
    with tc.trace() as log:
        op(*args, **options)
    return {row.op: row.variant for row in log.rows()}


def check(op: Any, *args: Any, **options: Any) -> str:
    """explain and a trace agree."""
    said = tc.explain(op, *args, **options)
    assert ran(op, *args, **options)[said.op] == said.variant
    return said.variant


def strided(shape: tuple[int, int], dtype: str, device: str) -> tc.Tensor:
    """Every second column of a tensor."""
    return tc.zeros((shape[0], 2 * shape[1]), dtype, device)[:, ::2]


def unaligned(shape: tuple[int, int], dtype: str, device: str) -> tc.Tensor:
    """A tensor that begins one element behind the beginning of its memory."""
    return tc.zeros(shape[0] * shape[1] + 1, dtype, device)[1:].reshape(shape)


@pytest.mark.parametrize("layout", [strided, unaligned, tc.zeros])
@pytest.mark.parametrize("name", ["add", "exp", "copy", "softmax", "layer_norm", "gemm"])
def test_the_layout_of_out_counts(name: str, layout: Any, device: str) -> None:
    x = tc.ones((4, 1024), "float32", device)
    args = {"add": (x, x), "gemm": (x, tc.ones((1024, 1024), "float32", device))}.get(name, (x,))
    options = {"out": layout((4, 1024), "float32", device)}
    check(getattr(tc, name), *args, **options)
    check(getattr(tc, name), *args)


@pytest.mark.skipif("simt" not in DEVICES, reason="built without the emulator")
def test_a_strided_out_takes_another_rung() -> None:
    x = tc.ones((4, 1024), "float32", "simt")
    fresh, given = (check(tc.add, x, x, **o) for o in ({}, {"out": strided((4, 1024), "float32", "simt")}))
    assert fresh == "vectorized" != given


def test_an_image_that_the_call_makes_is_no_missing_one(device: str) -> None:
    where = {"stride": 2, "padding": ((0, 2), (0, 2))}
    x, w = (tc.asarray(np.ones(shape, np.float32), device=device) for shape in ((2, 1, 13, 4), (8, 1, 3, 3)))
    check(tc.conv2d, x, w, **where)
    check(tc.conv2d, x.astype("bfloat16"), w.astype("bfloat16"), **where)
    check(tc.conv2d, x.numpy(), w.numpy(), **where, device=device)


def test_clip_takes_arrays_as_bounds(device: str) -> None:
    x, low = tc.ones((3, 64), "float32", device), tc.zeros((64,), "float32", device)
    for op in ("clip", tc.clip):
        least, most = tc.explain(op, x, low), tc.explain(op, x, max=low)
        assert (least.op, most.op) == ("maximum", "minimum")
        assert ran(tc.clip, x, low) == {"maximum": least.variant}
        assert ran(tc.clip, x, max=low) == {"minimum": most.variant}
        both = tc.explain(op, x, low, low, out=tc.empty_like(x))
        assert ran(tc.clip, x, low, low) == {"maximum": least.variant, "minimum": both.variant} and both.op == "minimum"
        assert str(both).startswith("maximum on ") and "\nminimum on " in str(both)
        assert both.bytes == least.bytes + most.bytes
    host = tc.explain(tc.clip, [1.0, 2.0], [0.0, 3.0], [1.0, 1.0], device=device)
    assert host.variant == ran(tc.clip, [1.0, 2.0], [0.0, 3.0], [1.0, 1.0], device=device)["minimum"]
    assert tc.explain("clip", x, 0, 1).op == "clip"


def test_it_takes_the_arguments_of_the_functions_over_operators(device: str) -> None:
    x = tc.ones((16, 128), "float32", device)
    assert tc.explain(tc.astype, x, "float16", copy=False).op == "astype"
    w = tc.pack_weight(tc.ones((128, 32), "float32", device))
    for op in (tc.gemm, tc.matmul):
        found = tc.explain(op, x, w)
        assert found.op == "packed_gemm" and ran(op, x, w) == {"packed_gemm": found.variant}
    with pytest.raises(tc.errors.Unsupported, match="alpha"):
        tc.explain(tc.gemm, x, w, alpha=2.0)


def test_it_refuses_what_the_call_refuses(device: str) -> None:
    x = tc.ones(8, "float32", device)
    elsewhere = next((d for d in tc.devices() if d != device), None)
    wrong = {"a list": [1.0], "dtype": tc.ones(8, "int32", device), "shape": tc.ones(9, "float32", device)}
    wrong["a tuple"] = (None, None)
    if elsewhere:
        wrong["device"] = tc.ones(8, "float32", elsewhere)
    for what, out in wrong.items():
        texts = []
        for call in (tc.relu, lambda *a, **o: tc.explain(tc.relu, *a, **o)):
            with pytest.raises(tc.errors.Error) as error:
                call(x, out=out)
            texts.append(str(error.value))
        assert texts[0] == texts[1], what
    if elsewhere:
        with pytest.raises(ValueError, match="Device mismatch"):
            tc.explain(tc.add, x, tc.ones(8, "float32", elsewhere))
    if device == "cpu":
        with pytest.raises(ValueError, match="stream= was given"):
            tc.explain(tc.relu, x, stream=0)


def test_a_variant_that_is_named_is_what_runs(device: str) -> None:
    x = tc.ones((4, 64), "float32", device)
    e = tc.explain(tc.softmax, x, out=strided((4, 64), "float32", device))
    for verdict in e.variants:
        if verdict.accepted:
            assert check(tc.softmax, x, variant=verdict.name) == verdict.name


def test_an_operand_across_out_is_read_from_a_copy(device: str) -> None:
    room = tc.ones(65, "float32", device)
    check(tc.add, room[:64], room[1:], out=room[:64])
    check(tc.add, room[1:], room[:64], out=room[1:])


def test_a_result_in_place_lies_as_the_argument_does(device: str) -> None:
    def pages(room: int) -> tc.Tensor:
        return tc.zeros((3, 4, 2, room), "float16", device)[..., :16]

    new = [tc.ones((2, 2, 16), "float16", device) for _ in range(2)]
    where = tc.asarray(np.array([1, 5], np.int64), device=device)
    for room in (16, 17):
        check(tc.append_kv, pages(room), pages(room), *new, where)


def out_of(generator: Generator, found: Any) -> Any:
    """An array for a result: none, dense, or in a random layout; of several results one for some."""
    if isinstance(found, tuple):
        return tuple(out_of(generator, one) for one in found) if generator.random.integers(2) else None
    if generator.random.integers(3) == 0 or not isinstance(found, np.ndarray):
        return None
    out = generator.array(found.shape, str(found.dtype))
    return out if out.flags.writeable else None


def agree(op: Any, args: list[Any], options: dict[str, Any]) -> bool:
    """Runs a call and asks about it; False if both refuse."""
    try:
        variants = ran(op, *args, **options)
    except tc.errors.Error:
        try:
            assert tc.explain(op, *args, **options).variant == ""
        except tc.errors.Error:
            pass
        return False
    said = tc.explain(op, *args, **options)
    layouts = [(a.shape, a.strides, a.dtype) if isinstance(a, np.ndarray) else a for a in (*args, options["out"])]
    assert variants.get(said.op, said.variant) == said.variant, f"{layouts} {options}"
    return bool(variants)


@pytest.mark.parametrize("place", DEVICES)
@pytest.mark.parametrize("name", sorted(tc.ops()))
def test_random_calls(name: str, place: str) -> None:
    """Of every operator, in random sizes, dtypes, layouts and options, with and without out= and variant=."""
    generator, function, answered = Generator(SEEDS[place]), tc.ops()[name].function, 0
    wanted = CALLS if place == "cpu" else CALLS // 4
    variants = [None] * 4 + [v.name for v in tc.ops()[name].variants if (v.device == "cpu") == (place == "cpu")]
    for _ in range(40 * wanted):
        if answered == wanted:
            break
        args, options = generator.call(name)
        options |= {"device": place, "variant": generator.random.choice(variants)}
        try:
            found = function(*args, **options | {"variant": None})
        except tc.errors.Error:
            continue
        if not (found[0] if isinstance(found, tuple) else found).size:
            continue  # nothing runs
        options["out"] = out_of(generator, found)
        answered += agree(function, args, options)
    assert answered >= wanted // 10
