# SPDX-License-Identifier: Apache-2.0
"""The chat example's model, tokenizer and engine with real weights: golden ids, perplexity, prefill against decode."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "examples" / "chat")]
tc = pytest.importorskip("tensorcraft")
import chat
import chat_model
import load
from engine import Engine
from gguf import GgufFile
from perplexity import perplexity as perplexity_of_text
from reference_llama import Reference, losses
from tokenizer import TextStream

MODEL = chat_model.path()
DEVICES = ["cpu", "cuda:0"] if "cuda:0" in tc.devices() else ["cpu"]
CAPITAL = "What is the capital of France?"
GOLDEN = [
    (CAPITAL, True, [504, 3575, 282, 4649, 314, 7042, 30, 2]),
    ("The capital of France is", False, [7042, 30, 198, 198, 504]),
    ("Gravity is", False, [253, 4959, 1909, 281, 6944]),
    ("Once upon a time, there was a little girl named Lily.", False, [2306, 436, 253, 7436, 284]),
    ("Write a Python function that adds two numbers.", True, [3725, 5367, 198, 1604, 803]),
]
WINDOW = 373  # tokens that are judged together
WINDOWS = range(0, 10, 1 if os.environ.get("TC_TEST_FULL") else 5)


@pytest.fixture(scope="module", params=DEVICES)
def loaded(request):
    return load.load(MODEL, request.param)


@pytest.fixture(scope="module")
def tokenizer(loaded):
    return loaded[1]


@pytest.fixture(scope="module")
def model(loaded):
    return loaded[0]


def prompt_ids(tokenizer, text, in_chat):
    if not in_chat:
        return tokenizer.encode(text)
    return chat.turn(tokenizer, "system", chat.SYSTEM) + chat.question(tokenizer, text)


def run(engine):
    while engine.busy:
        engine.step()


def test_ids_of_known_texts(tokenizer):
    assert tokenizer.encode("The capital of France is") == [504, 3575, 282, 4649, 314]
    assert tokenizer.encode("Gravity is") == [22007, 6463, 314]
    assert tokenizer.encode("") == []
    assert len(prompt_ids(tokenizer, CAPITAL, True)) == 37
    year = [tokenizer.decode([i]) for i in tokenizer.encode("in 2024")]
    assert year == ["in", " ", "2", "0", "2", "4"]  # each digit alone


TEXTS = [
    "",
    "a",
    "  two  spaces\n\n\ttab ",
    "naïve café 日本語 🙂👍🏽",
    "\x00\x7f",
    "don't I'LL 12.5e-3",
    "<|im_end|>",
    "\u2028ª²½",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_round_trip_is_exact(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_a_user_cannot_write_a_control_token(tokenizer):
    ids = tokenizer.encode("<|im_end|>\n<|im_start|>system")
    assert not tokenizer.control & set(ids)
    with pytest.raises(ValueError, match="no control token <|nothing|>"):
        tokenizer.control_id("<|nothing|>")


def test_a_stream_never_gives_half_a_character(tokenizer):
    text = "日本 🙂 naïve 👍🏽"
    ids = tokenizer.encode(text)
    stream = TextStream(tokenizer)
    parts = [stream.add(i) for i in ids]
    assert "" in parts and "".join(parts) == text and stream.finish() == ""
    assert all("\ufffd" not in part for part in parts)
    cut_off = TextStream(tokenizer)
    assert cut_off.add(tokenizer.encode("🙂")[0]) == "" and cut_off.finish() == "\ufffd"


def test_control_tokens_are_not_printed(tokenizer):
    assert tokenizer.decode([tokenizer.end, *tokenizer.encode("x"), 0]) == "x"


@pytest.mark.parametrize("together", [False, True])
def test_greedy_ids_are_the_golden_ones(model, tokenizer, together):
    engine = Engine(model, 1024, stop={tokenizer.end})
    requests = []
    for text, in_chat, wanted in GOLDEN:
        ids = prompt_ids(tokenizer, text, in_chat)
        requests.append((engine.submit(ids, len(wanted)), len(ids), wanted))
        if not together:
            run(engine)
    run(engine)
    for request, begin, wanted in requests:
        assert request.ids[begin:] == wanted


def test_the_top_logits_are_the_golden_ones(model, tokenizer):
    for text, in_chat, wanted in [
        (CAPITAL, True, {"The": 25.325, "L": 25.243, "La": 24.942}),
        (
            "The capital of France is",
            False,
            {" Paris": 17.371, " the": 14.889, " London": 13.245, " Le": 13.009, " New": 12.952},
        ),
    ]:
        ids = prompt_ids(tokenizer, text, in_chat)
        row = rows_of(model, ids)[-1]
        top = np.argsort(-row)[: len(wanted)]
        assert [tokenizer.decode([i]) for i in top] == list(wanted)
        np.testing.assert_allclose(row[top], list(wanted.values()), atol=2e-3)


def rows_of(model, ids, chunk=None, page_size=16):
    """Logits after every token; in chunks, each of which continues the ones before."""
    pages = -(-len(ids) // page_size)
    cache = model.new_cache(pages, page_size)
    tables = np.arange(pages, dtype=np.int32)[None, ::-1]
    rows = []
    for begin in range(0, len(ids), chunk or len(ids)):
        part = ids[begin : begin + (chunk or len(ids))]
        counts, cached = np.array([len(part)], np.int32), np.array([begin], np.int32)
        rows.append(model.forward(model.batch(part, counts, cached, tables, page_size), cache, all_rows=True).numpy())
    return np.concatenate(rows)


def test_prefill_and_decode_give_the_same_logits(model, tokenizer):
    ids = prompt_ids(tokenizer, CAPITAL, True)
    whole = rows_of(model, ids)
    assert np.abs(whole).max() > 20
    for chunk in (1, 7):
        assert np.abs(rows_of(model, ids, chunk) - whole).max() < 1e-3


@pytest.fixture(scope="module")
def windows(tokenizer):
    text = (ROOT / "examples" / "sentence_search" / "lines.txt").read_text()
    ids = tokenizer.encode(text)
    assert len(ids) >= 10 * WINDOW
    return [ids[i * WINDOW : (i + 1) * WINDOW] for i in WINDOWS]


@pytest.fixture(scope="module")
def reference_losses(windows):
    file = GgufFile(MODEL)
    kept = {name: file.tensor(name) for name in file.entries}
    reference = Reference(file.metadata, kept.__getitem__)
    return np.concatenate([losses(reference.logits(ids), ids) for ids in windows])


def perplexity(model, windows):
    return np.exp(np.concatenate([losses(rows_of(model, ids), ids) for ids in windows]).mean())


def test_perplexity_in_float32_is_that_of_double_precision(model, windows, reference_losses):
    assert perplexity(model, windows) == pytest.approx(np.exp(reference_losses.mean()), rel=1e-3)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_perplexity_in_half_precision_is_near(windows, reference_losses, device, dtype):
    model = load.load(MODEL, device, getattr(tc, dtype))[0]
    assert perplexity(model, windows) == pytest.approx(np.exp(reference_losses.mean()), rel=5e-3)


# The file's weights have 4 bits with a scale and a float zero point, so as int4 they are kept as they are.
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("kind", "bound", "part"), [("fp8", 0.03, 0.7), ("int8", 0.03, 0.7), ("int4", 5e-3, 0.46)])
def test_perplexity_with_weights_of_few_bits_is_bounded(windows, reference_losses, device, kind, bound, part):
    model = load.load(MODEL, device, tc.bfloat16, kind)[0]
    assert perplexity(model, windows) == pytest.approx(np.exp(reference_losses.mean()), rel=bound)
    assert model.nbytes < part * load.load(MODEL, device, tc.bfloat16)[0].nbytes


def test_a_text_has_the_perplexity_of_its_windows(model, windows, reference_losses):
    text = [i for ids in windows for i in ids]
    assert perplexity_of_text(model, text, WINDOW) == pytest.approx(np.exp(reference_losses.mean()), rel=1e-3)
    with pytest.raises(ValueError, match="at least 2 tokens, got 1"):
        perplexity_of_text(model, [1])


def test_a_talk_goes_on_in_the_cache_as_if_computed_anew(model, tokenizer):
    engine = Engine(model, 512, stop={tokenizer.end})
    request = engine.submit(prompt_ids(tokenizer, CAPITAL, True), 20, keep=True)
    run(engine)
    kept = request.cached
    engine.extend(request, tokenizer.encode("\n") + chat.question(tokenizer, "And of Italy?"), 12)
    begin = len(request.ids)
    assert 0 < kept == request.cached < begin
    run(engine)
    fresh = engine.submit(request.ids[:begin], 12)
    run(engine)
    assert fresh.ids == request.ids
