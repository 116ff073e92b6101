# SPDX-License-Identifier: Apache-2.0
"""The MiniLM example against an independent forward pass in double precision."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "examples" / "sentence_search")]
tc = pytest.importorskip("tensorcraft")
import minilm
from reference_minilm import Reference, mixed_sentences

# A folder with the weights where the package is not installed.
MODEL = Path(os.environ["TC_TEST_MODEL"]) if "TC_TEST_MODEL" in os.environ else minilm.packaged_model()
DEVICES = ["cpu", "cuda:0"] if "cuda:0" in tc.devices() else ["cpu"]
WORDS = (Path(minilm.__file__).parent / "lines.txt").read_text().split()


@pytest.fixture(scope="module")
def sentences():
    return mixed_sentences(WORDS)


@pytest.fixture(scope="module")
def expected(sentences):
    tokenizer = minilm.load_tokenizer(MODEL / "tokenizer.json")
    reference = Reference(MODEL)
    ids = [tokenizer.encode(s).ids for s in sentences]
    assert max(map(len, ids)) == minilm.MAX_TOKENS
    return np.stack([reference.encode(i) for i in ids])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("batch_size", [1, 7, 32, 64])
def test_float32_embeddings_match_double_precision(sentences, expected, batch_size, device):
    got = minilm.MiniLM(MODEL, device=device).encode(sentences, batch_size=batch_size)
    assert got.dtype == np.float32 and got.shape == (50, 384)
    assert np.abs(got - expected).max() <= 2e-6


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype, cosine", [("float16", 0.99999), ("bfloat16", 0.9995)])
def test_half_precision_embeddings_keep_their_direction(sentences, expected, dtype, cosine, device):
    got = minilm.MiniLM(MODEL, device=device, dtype=getattr(tc, dtype)).encode(sentences)
    assert (got * expected).sum(1).min() >= cosine


def test_no_sentences_give_an_empty_array():
    assert minilm.MiniLM(MODEL, device="cpu").encode([]).shape == (0, 384)


@pytest.mark.parametrize("words", [[b"caf\xe9"], ["plants", "--file", "{not_utf8}"], ["plants", "--device", b"\xe9"]])
def test_what_is_not_utf8_is_one_clear_line(tmp_path, words):
    (tmp_path / "lines.txt").write_bytes(b"caf\xe9\n")
    words = [w.format(not_utf8=tmp_path / "lines.txt") if isinstance(w, str) else w for w in words]
    search = Path(minilm.__file__).with_name("search.py")
    done = subprocess.run(
        [sys.executable, search, "--model", MODEL, "--device", "cpu", *words], capture_output=True, check=False
    )
    last = done.stderr.decode(errors="replace").splitlines()[-1]
    assert done.returncode == 1 and last.startswith("demo: "), last
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("missing", ["tokenizer.json", "model.safetensors"])
def test_a_missing_file_is_named(tmp_path, missing):
    for name in {"tokenizer.json", "model.safetensors"} - {missing}:
        (tmp_path / name).symlink_to((MODEL / name).resolve())
    with pytest.raises(FileNotFoundError, match=missing):
        minilm.MiniLM(tmp_path, device="cpu")
