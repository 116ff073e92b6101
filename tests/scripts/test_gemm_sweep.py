# SPDX-License-Identifier: Apache-2.0
"""The sweep of gemm's tiles, as far as it needs no GPU: what it lists, how it chooses, and what the library plans."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import gemm_sweep

LIBRARY = ROOT / "build" / "release" / "benchmarks" / "libgemm_sweep.so"
PRODUCT = gemm_sweep.Product(4096, 4096, 4096, "bfloat16", "NN")


def test_words_of_the_command_line():
    assert gemm_sweep.parse_tile("block_m=128,schedule=ping_pong") == {"block_m": 128, "schedule": "ping_pong"}
    assert gemm_sweep.parse_tile("block_m = 128, a_layout = row_major") == {"block_m": 128, "a_layout": "row_major"}
    assert gemm_sweep.parse_tile(gemm_sweep.text_of({"split": 4, "stages": 3})) == {"split": 4, "stages": 3}
    assert gemm_sweep.parse_only(["block_n=128,256", "schedule=together"]) == {"block_n": {128, 256}, "schedule": {"together"}}
    assert gemm_sweep.parse_shape("4096") == (4096, 4096, 4096)
    assert gemm_sweep.parse_shape("333x4097x1023") == (333, 4097, 1023)
    for call, text in [(gemm_sweep.parse_tile, "block_m"), (gemm_sweep.parse_shape, "4x5"), (lambda t: gemm_sweep.parse_only([t]), "stages")]:
        with pytest.raises(ValueError, match=text):
            call(text)


@pytest.mark.parametrize("variant", sorted(gemm_sweep.TILES))
@pytest.mark.parametrize("element_bytes", [2, 4])
def test_tiles_are_whole_and_fit(variant, element_bytes):
    tiles = gemm_sweep.TILES[variant](element_bytes)
    assert 10 < len(tiles) < 300
    assert len({gemm_sweep.text_of(tile) for tile in tiles}) == len(tiles)
    for tile in tiles:
        assert tile["threads"] % 32 == 0 and tile["threads"] <= 1024 and tile["stages"] >= 3
        panels = tile["stages"] * tile["block_k"] * (tile["block_m"] + tile["block_n"])
        assert panels * (4 if variant == "async" else element_bytes) <= gemm_sweep.SHARED_BYTES
        if "consumers" in tile:
            shared = tile["consumers"] if tile.get("schedule") != "ping_pong" else 1
            assert tile["block_m"] * tile["block_n"] / (128 * shared) <= 160, "sums of a thread"


def test_what_is_asked_for_is_swept():
    only = gemm_sweep.parse_only(["block_m=128", "block_n=128"])
    found = gemm_sweep.candidates(PRODUCT, ["tma", "swizzled"], only, [], shipped=False)
    assert [c.variant for c in found if not c.tile] == ["tma", "swizzled"]  # the shipped ones, always
    assert {(c.tile["block_m"], c.tile["block_n"]) for c in found if c.tile} == {(128, 128)}
    assert [c.name for c in gemm_sweep.candidates(PRODUCT, ["tma"], {}, [], shipped=True)] == ["tma shipped"]
    (_, one) = gemm_sweep.candidates(PRODUCT, ["anything"], {}, [{"split": 2}], shipped=False)
    assert one.name == "anything split=2" and one.row["layout"] == "NN" and not one.row["shipped"]


def test_the_fastest_go_on_after_a_few_rounds():
    calls = dict.fromkeys(["cublas", "shipped", *"abcdef"], 0)

    def timer(name, us):
        def measure():
            calls[name] += 1
            return us

        return measure

    timers = {name: timer(name, float(i)) for i, name in enumerate(reversed(calls))}
    samples = gemm_sweep.rounds(timers, seconds=60, keep=2, always={"cublas", "shipped"})
    assert {name for name, times in samples.items() if len(times) == gemm_sweep.MOST_ROUNDS} == {"cublas", "shipped", "e", "f"}
    assert all(len(samples[name]) == gemm_sweep.FIRST_ROUNDS for name in "abcd")
    assert {name: len(times) for name, times in samples.items()} == calls


def test_a_tolerance_grows_with_the_sum():
    short, long = (gemm_sweep.Product(8, 8, k, "bfloat16", "NN").tolerances() for k in (64, 16384))
    assert short[0] == long[0] == 2.0**-8 and long[1] > short[1]
    tf32 = gemm_sweep.Product(8, 8, 64, "tfloat32", "NN")
    assert tf32.stored_dtype == "float32" and math.isclose(tf32.tolerances()[1], 2.0**-7 * 8)
    assert gemm_sweep.Product(2, 3, 4, "float32", "TN").shapes == ((4, 2), (4, 3))
    assert gemm_sweep.Product(2, 3, 4, "float32", "NT").shapes == ((2, 4), (3, 4))


@pytest.fixture(scope="module")
def library():
    if not LIBRARY.exists():
        pytest.skip("the target gemm_sweep is not built")
    return gemm_sweep.Library(str(LIBRARY), "sm_90a")


def planned(library, variant, product=PRODUCT, **tile):
    handle = library.plan(variant, product.in_c(), [0, 0, 0], tile)
    return gemm_sweep.parse_tile(library.c.gemm_sweep_text(handle).decode())


def test_a_tile_is_planned_by_the_names_of_its_fields(library):
    shipped = planned(library, "tma")
    assert shipped["blocks"] * shipped["block_m"] * shipped["block_n"] == 4096 * 4096 and shipped["cluster"] == 2
    tile = planned(library, "tma", block_m=128, block_n=64, warp_m=64, warp_n=32, threads=128, stages=3, min_blocks=2)
    assert (tile["blocks"], tile["cluster"], tile["min_blocks"]) == (2048, 2, 2)
    assert shipped["shared_bytes"] > tile["shared_bytes"] >= 3 * 64 * (128 + 64) * 2
    same = planned(library, "swizzled", **{k: planned(library, "swizzled")[k] for k in ("block_m", "block_n", "stages")})
    assert same == planned(library, "swizzled")


@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
def test_every_layout_is_planned(library, layout):
    product = gemm_sweep.Product(256, 512, 128, "bfloat16", layout)
    names = {"N": "row_major", "T": "column_major"}
    plan = planned(library, "tma", product, block_m=128, block_n=128, warp_m=64, warp_n=32)
    assert (plan["a_layout"], plan["b_layout"]) == (names[layout[0]], names[layout[1]])


@pytest.mark.parametrize(
    ("variant", "tile", "message"),
    [
        ("tma", {"blockm": 128}, "a Config has no field blockm; there are block_m, block_n"),
        ("tma", {"block_m": "wide"}, 'block_m must be a whole number, got "wide"'),
        ("tma", {"stages": 40}, "bytes of shared memory; a block has"),
        ("nothing", {}, "gemm has no variant nothing"),
        ("async", {}, "async takes float32 operands"),
    ],
)
def test_what_cannot_be_planned_says_why(library, variant, tile, message):
    with pytest.raises(RuntimeError, match=message):
        planned(library, variant, **tile)


def test_what_does_not_compile_is_a_row_with_its_error(library):
    _, found = gemm_sweep.candidates(PRODUCT, ["tma"], {}, [{"stages": 40}], shipped=False)
    gemm_sweep.compile_all(library, PRODUCT, [found])
    assert found.row["tile"] == "stages=40" and "shared memory" in found.row["error"] and not found.call


class Array(np.ndarray):
    """The part of a torch tensor that the sweep uses, in host memory."""

    def to(self, dtype):
        return self.astype(dtype).view(Array)

    def double(self):
        return self.to(np.float64)

    def int(self):
        return self.to(np.int32)

    def fill_(self, value):
        self[...] = value

    def data_ptr(self):
        return self.ctypes.data

    def abs(self):
        return np.abs(self)


class Torch:
    """A torch whose GPU is NumPy; each call takes as long as `us` says of the last one."""

    float32 = np.float32
    us = 0.0

    class backends:
        class cuda:
            class matmul:
                allow_tf32 = False

    class cuda:
        @staticmethod
        def current_stream():
            return type("Stream", (), {"cuda_stream": 7})

    @staticmethod
    def randn(*shape, device):
        return np.random.default_rng(0).standard_normal(shape).view(Array)

    @staticmethod
    def empty(*shape, device, dtype):
        return np.empty(shape, dtype).view(Array)

    @staticmethod
    def matmul(a, b, out):
        Torch.us = 20.0
        np.matmul(a, b, out=out)


class FakeLibrary:
    """Multiplies; the tiles tell how fast and how right."""

    arch = ""

    def __init__(self):
        self.operands, self.plans = None, []

    def plan(self, variant, problem, pointers, tile):
        self.plans.append(tile)
        return len(self.plans) - 1

    def facts(self, handle):
        if self.plans[handle].get("stages") == 40:
            raise RuntimeError("needs too many\n bytes")
        return {**self.plans[handle], "registers": 128}

    def launch(self, handle, stream):
        assert stream == 7
        tile = self.plans[handle]
        if tile.get("stages") == 30:
            raise RuntimeError("refused by the driver")
        Torch.us = 10.0 * tile.get("block_m", 1)
        a, b = self.operands.oriented(0)
        np.matmul(a, b, out=self.operands.out)
        self.operands.out[1, 2] += tile.get("block_n", 0)


@pytest.mark.parametrize("layout", ["NN", "TT"])
def test_tiles_are_held_against_float64_and_timed(monkeypatch, layout):
    monkeypatch.setitem(sys.modules, "torch", Torch)
    library = FakeLibrary()
    made = gemm_sweep.Operands

    def operands(product):
        library.operands = made(product)
        return library.operands

    def timer(call, turn, sets, graph):
        def measure():
            call(next(turn))
            return Torch.us

        return measure

    monkeypatch.setattr(gemm_sweep, "Operands", operands)
    monkeypatch.setattr(gemm_sweep, "gpu_timer", timer)
    tiles = ["block_m=2", "block_m=4", "block_n=5", "stages=30", "stages=40"]
    given = gemm_sweep.parser().parse_args(["l", "o", "--variant", "tma", "--seconds", "0", "--tile", *tiles])
    rows = []
    gemm_sweep.sweep(library, gemm_sweep.Product(5, 7, 6, "float32", layout), given, rows)
    assert [(row["shipped"], row["median_us"], row["ratio"]) for row in rows[:3]] == [(True, 10, 2), (False, 20, 1), (False, 40, 0.5)]
    assert rows[1]["registers"] == 128 and rows[1]["tflops"] == pytest.approx(2e-6 * 5 * 7 * 6 / 20)
    errors = {row["tile"]: row["error"] for row in rows[3:]}
    assert errors["block_n=5"].startswith("1 wrong elements, the first at (1, 2): ")
    assert errors["stages=30"] == "refused by the driver" and errors["stages=40"] == "needs too many bytes"
