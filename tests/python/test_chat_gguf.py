# SPDX-License-Identifier: Apache-2.0
"""The chat example's GGUF reader against files that a writer of the tests makes."""

import struct
import sys
from pathlib import Path

import gguf_writer as writer
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "chat"))
from gguf import GgufError, GgufFile

SHAPES = {"F32": (3, 5), "F16": (7,), "BF16": (2, 1, 3), "Q8_0": (3, 64), "Q4_1": (5, 32)}
METADATA = {
    "an.int": 7,
    "below": -3,
    "real": 0.5,
    "yes": True,
    "word": "naïve",
    "words": ["a", "Ġb"],
    "list": [1, 2, 3],
}


def small_file(folder, **options):
    rng = np.random.default_rng(0)
    tensors, numbers = {}, {}
    for kind, shape in SHAPES.items():
        raw, numbers[kind] = writer.encode(kind, rng, shape)
        tensors[kind] = kind, shape, raw
    return writer.write(folder / "small.gguf", METADATA, tensors, **options), numbers


@pytest.mark.parametrize("version", [2, 3])
def test_metadata_and_tensors_of_every_encoding_are_read(tmp_path, version):
    path, numbers = small_file(tmp_path, version=version)
    file = GgufFile(path)
    assert file.metadata == METADATA
    assert list(file.entries) == list(SHAPES)
    for name, wanted in numbers.items():
        got = file.tensor(name)
        assert got.dtype == np.float32 and got.shape == SHAPES[name]
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6, err_msg=name)


def test_the_alignment_is_the_files(tmp_path):
    raw, numbers = writer.encode("F32", np.random.default_rng(1), (9,))
    path = writer.write(
        tmp_path / "a.gguf",
        {"general.alignment": 256},
        {"x": ("F32", (9,), raw), "y": ("F32", (9,), raw)},
        alignment=256,
    )
    np.testing.assert_array_equal(GgufFile(path).tensor("y"), numbers)


def test_a_file_cut_off_anywhere_is_refused(tmp_path):
    path, _ = small_file(tmp_path)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(GgufError, match="cut off|is empty"):
            GgufFile(path)


def test_a_damaged_file_is_refused_or_read(tmp_path):
    """Whatever byte is wrong: a typed error, no crash, no allocation beyond the file."""
    path, _ = small_file(tmp_path)
    whole = bytearray(path.read_bytes())
    for at in range(700):
        for value in (0, 9, 255):
            path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            try:
                file = GgufFile(path)
                for name in file.entries:
                    file.tensor(name)
            except GgufError:
                pass


@pytest.mark.parametrize(
    ("options", "said"),
    [({"magic": b"GGML"}, "begins with b'GGML'"), ({"version": 1}, "version is 1"), ({"version": 4}, "version is 4")],
)
def test_another_format_is_named(tmp_path, options, said):
    path, _ = small_file(tmp_path, **options)
    with pytest.raises(GgufError, match=said):
        GgufFile(path)


@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        ((12, (32,), b""), "tensor w is of type 12; this reader takes F32"),
        (("Q8_0", (3, 31), bytes(200)), r"shape \(3, 31\) is no whole number of Q8_0 blocks"),
        (("Q4_1", (), bytes(200)), r"shape \(\) is no whole number of Q4_1 blocks"),
    ],
)
def test_a_tensor_that_cannot_be_read_is_named(tmp_path, tensor, said):
    path = writer.write(tmp_path / "w.gguf", {}, {"w": tensor})
    with pytest.raises(GgufError, match=said):
        GgufFile(path)


def test_an_absent_file_or_tensor_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.gguf"):
        GgufFile(tmp_path / "nowhere.gguf")
    path, _ = small_file(tmp_path)
    with pytest.raises(GgufError, match="no tensor lost"):
        GgufFile(path).tensor("lost")


def test_a_text_that_is_not_utf8_and_a_list_of_lists_are_refused(tmp_path):
    path = writer.write(tmp_path / "t.gguf", {"key": b"\xff\xfe"}, {})
    with pytest.raises(GgufError, match="not UTF-8"):
        GgufFile(path)
    nested = writer.text("key") + struct.pack("<IIQIQ", 9, 9, 1, 4, 0)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + nested + bytes(64))
    with pytest.raises(GgufError, match="type 9 in an array"):
        GgufFile(path)
