# SPDX-License-Identifier: Apache-2.0
"""The chat example's model and engine with small random weights: double precision, batching, pages, wrong arguments."""

import json
import os
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "examples" / "chat")]
tc = pytest.importorskip("tensorcraft")
import export
import gguf_writer as writer
import load
import sampling
from decoder import Decoder
from engine import Engine
from gguf import GgufFile
from llama import Llama
from quantized import CODES, quantized, takes_bits
from reference_llama import Reference
from sampling import Sampling
from tokenizer import Tokenizer

VOCABULARY, HIDDEN, HEADS, HEADS_K, FEED_FORWARD, LAYERS, CONTEXT = 96, 64, 4, 2, 96, 2, 160
METADATA = {
    "general.architecture": "llama",
    "llama.block_count": LAYERS,
    "llama.embedding_length": HIDDEN,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": HEADS_K,
    "llama.context_length": CONTEXT,
    "llama.rope.freq_base": 1000.0,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}
DEVICES = ["cpu", "cuda:0"] if "cuda:0" in tc.devices() else ["cpu"]


def tensors():
    keys = HEADS_K * HIDDEN // HEADS
    shapes = {"token_embd": (VOCABULARY, HIDDEN), "output_norm": (HIDDEN,)}
    for layer in range(LAYERS):
        shapes |= {
            f"blk.{layer}.{name}": shape
            for name, shape in {
                "attn_norm": (HIDDEN,),
                "ffn_norm": (HIDDEN,),
                "attn_q": (HIDDEN, HIDDEN),
                "attn_k": (keys, HIDDEN),
                "attn_v": (keys, HIDDEN),
                "attn_output": (HIDDEN, HIDDEN),
                "ffn_gate": (FEED_FORWARD, HIDDEN),
                "ffn_up": (FEED_FORWARD, HIDDEN),
                "ffn_down": (HIDDEN, FEED_FORWARD),
            }.items()
        }
    rng = np.random.default_rng(3)
    return {
        f"{name}.weight": ("F32", s, rng.standard_normal(s).astype(np.float32) / s[-1] ** 0.25)
        for name, s in shapes.items()
    }


def write(folder, metadata=METADATA, **changes):
    all_tensors = {name: (kind, shape, numbers.tobytes()) for name, (kind, shape, numbers) in tensors().items()}
    return writer.write(folder / "small.gguf", metadata, {**all_tensors, **changes})


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return GgufFile(write(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def reference(file):
    return Reference(file.metadata, file.tensor)


@pytest.fixture(scope="module", params=DEVICES)
def model(request, file):
    return small(file, request.param)


def small(file, device, **options):
    config = load.read_config(file)
    return Llama(config, load.read_weights(file, config), device, **options)


def prompt(length, seed=0):
    return np.random.default_rng(seed).integers(0, VOCABULARY, length).tolist()


def run(engine):
    steps = 0
    while engine.busy:
        engine.step()
        steps += 1
    return steps


def test_logits_are_those_of_double_precision_in_any_chunks_and_pages(model, reference):
    ids = prompt(83)
    wanted = reference.logits(ids)
    assert np.abs(wanted).max() > 3
    for chunk, page_size in ((83, 16), (1, 16), (10, 1), (32, 128)):
        pages = np.random.default_rng(chunk).permutation(90)[None].astype(np.int32)
        cache = model.new_cache(90, page_size)
        for k, v in cache:
            k[...] = v[...] = np.nan  # what no token has written must not count
        for begin in range(0, 83, chunk):
            part = ids[begin : begin + chunk]
            batch = model.batch(part, np.array([len(part)]), np.array([begin]), pages, page_size)
            got = model.forward(batch, cache, all_rows=True).numpy()
            np.testing.assert_allclose(got, wanted[begin : begin + chunk], rtol=1e-4, atol=1e-4)


def test_greedy_tokens_are_those_of_double_precision(model, reference):
    engine = Engine(model, CONTEXT, chunk=16)
    request = engine.submit(prompt(37), 20)
    run(engine)
    assert len(request.ids) == 57
    wanted = reference.logits(request.ids).argmax(-1)
    assert request.ids[37:] == wanted[36:-1].tolist()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("gated", [None, "silu"])
@pytest.mark.parametrize("kind", ["fp8", "int8", "int4"])
def test_weights_of_few_bits_multiply_as_their_numbers_say(kind, gated, device):
    rng = np.random.default_rng(9)
    raw = rng.standard_normal((96, 64)).astype(np.float32) * np.logspace(-3, 2, 96, dtype=np.float32)[:, None]
    raw[5] = 0
    weight = quantized(tc.asarray(raw, device=device), kind)
    for rows in (1, 3, 40):
        x = tc.asarray(rng.standard_normal((rows, 64)).astype(np.float32), device=device).astype(tc.bfloat16)
        if kind == "int4":
            numbers, seen = weight.packed.unpack().numpy().T, x.astype(tc.float32).numpy()
            assert weight.nbytes == 96 * (32 + 2 * 2 * 2)
        else:
            numbers = weight.codes.astype(tc.float32).numpy() * weight.scales.numpy()[:, None]
            codes, scales = tc.quantize(weight.mixed(x), dtype=CODES[kind], scheme="token")
            seen = codes.astype(tc.float32).numpy() * scales.numpy()
            assert weight.nbytes == 96 * (64 + 4)
        wanted = seen.astype(np.float64) @ numbers.astype(np.float64).T
        exact = x.astype(tc.float32).numpy().astype(np.float64) @ raw.T
        assert np.linalg.norm(wanted - exact) < {"fp8": 0.06, "int8": 0.02, "int4": 0.15}[kind] * np.linalg.norm(exact)
        magnitude = np.abs(seen).astype(np.float64) @ np.abs(numbers.T)
        if gated:
            gates, wanted = np.split(wanted, 2, axis=1)
            wanted = wanted * gates / (1 + np.exp(-gates))
            magnitude = (magnitude[:, :48] + 1) * magnitude[:, 48:]
        got = weight.matmul(x, gated)
        assert got.dtype == tc.bfloat16
        assert (np.abs(got.astype(tc.float32).numpy() - wanted) <= 2**-8 * (np.abs(wanted) + magnitude / 8)).all()


def test_eight_bits_leave_a_tenth_of_the_layers_at_either_end():
    names = [f"layers.{layer}.{name}" for layer in range(30) for name in ("qkv", "attention_norm")]
    assert [n for n in names if takes_bits(n, "int4", 30)] == names[::2]
    assert [n for n in names if takes_bits(n, "fp8", 30)] == names[6:54:2]
    assert takes_bits("layers.1.down", "int8", 2) and not takes_bits("embedding", "int8", 2)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("kind", "bound"), [("fp8", 0.18), ("int8", 0.04), ("int4", 0.3)])
def test_logits_with_weights_of_few_bits_are_near_those_of_double_precision(file, reference, kind, bound, device):
    model, ids = small(file, device, dtype=tc.bfloat16, kind=kind), prompt(83)
    assert model.nbytes < small(file, device, dtype=tc.bfloat16).nbytes
    batch = model.batch(ids, np.array([83]), np.array([0]), np.arange(6, dtype=np.int32)[None], 16)
    got, wanted = model.forward(batch, model.new_cache(6, 16), all_rows=True).numpy(), reference.logits(ids)
    assert np.linalg.norm(got - wanted) < bound * np.linalg.norm(wanted)


@pytest.mark.parametrize("kind", ["fp8", "int8", "int4"])
def test_weights_of_few_bits_answer_alone_as_among_others(file, kind):
    model = small(file, "cpu", kind=kind)
    together = Engine(model, 4 * CONTEXT, max_batch=5, chunk=8)
    requests = [together.submit(ids, 10) for ids in ragged(6)]
    run(together)
    for request, ids in zip(requests, ragged(6), strict=True):
        alone = Engine(model, CONTEXT, chunk=8)
        other = alone.submit(ids, 10)
        run(alone)
        assert request.ids == other.ids


def ragged(count):
    return [prompt(1 + 7 * i % 40, seed=i) for i in range(count)]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_request_gives_the_same_alone_and_among_others(model, temperature):
    """More of them than run at once, in fewer pages than all need."""
    kind = Sampling(temperature, top_p=0.9)
    together = Engine(model, 4 * CONTEXT, max_batch=5, chunk=8, sampling=kind)
    requests = [together.submit(ids, 10 + i % 7, seed=i) for i, ids in enumerate(ragged(16))]
    run(together)
    for i, ids in enumerate(ragged(16)):
        alone = Engine(model, CONTEXT, chunk=8, sampling=kind)
        request = alone.submit(ids, 10 + i % 7, seed=i)
        run(alone)
        assert requests[i].ids == request.ids and len(request.ids) == len(ids) + 10 + i % 7


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [None, "fp8", "int8"])
def test_batch_invariant_logits_have_the_same_bits_in_any_company(file, device, kind):
    model = small(file, device, dtype=tc.bfloat16, batch_invariant=True, kind=kind)
    drawn = []

    def logits_of_first(count):
        engine = Engine(model, 40 * 32, chunk=8, max_batch=32, graph=False)  # logits are read at each step
        requests = [engine.submit(ids, 12) for ids in ragged(32)[:count]]
        seen, forward = [], model.forward

        def watch(batch, cache):
            logits = forward(batch, cache)
            if requests[0] in engine.running:
                seen.append(logits.numpy()[0])
            return logits

        model.forward = watch
        run(engine)
        del model.forward
        drawn.append(requests[0].ids)
        return seen

    alone, among = logits_of_first(1), logits_of_first(32)
    assert drawn[0] == drawn[1] and len(alone) == 12
    for row in alone:
        assert any(np.array_equal(row, other) for other in among)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("rows", [3, 5])
def test_a_decoder_goes_on_by_itself_and_its_empty_rows_write_nothing(model, reference, rows, temperature):
    """Three requests with other histories, over shuffled pages; nothing is told between the steps."""
    kind = Sampling(temperature, top_p=0.9)
    prompts = [prompt(n, seed=n) for n in (1, 17, 40)]
    engine = Engine(model, 4 * CONTEXT, page_size=8, sampling=kind)
    wanted = [engine.submit(ids, 13, seed=i) for i, ids in enumerate(prompts)]
    run(engine)
    if temperature == 0:
        for request, ids in zip(wanted, prompts, strict=True):
            exact = reference.logits(request.ids).argmax(-1)
            assert request.ids[len(ids) :] == exact[len(ids) - 1 : -1].tolist()
    pages = np.random.default_rng(1).permutation(40).reshape(4, 10)
    cache = model.new_cache(40, 8)
    for k, v in cache:
        k[...] = v[...] = np.nan
    for ids, own in zip(prompts, pages, strict=False):
        part = model.batch(ids, np.array([len(ids)]), np.array([0]), own[None], 8)
        model.forward(part, cache)
    states = [
        SimpleNamespace(ids=r.ids[: len(ids) + 1], seed=r.seed, pages=own.tolist())
        for r, ids, own in zip(wanted, prompts, pages, strict=False)
    ]
    decoder = Decoder(model, cache, rows, 10, 8, kind, graph=str(model.device) != "cpu")
    decoder.load(states)
    for step in range(12):
        tokens = decoder.step()
        assert len(tokens) == rows
        assert tokens[:3] == [r.ids[len(ids) + 1 + step] for r, ids in zip(wanted, prompts, strict=True)]
    for k, v in cache:
        for pool in (k.numpy(), v.numpy()):
            assert np.isnan(pool[pages[3]]).all()  # nobody's
            for ids, own in zip(prompts, pages, strict=False):
                there = pool[own].swapaxes(1, 2).reshape(80, -1)
                assert not np.isnan(there[: len(ids) + 12]).any() and np.isnan(there[len(ids) + 12 :]).all()


@pytest.mark.skipif("cuda:0" not in tc.devices(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_graph_gives_the_tokens_of_the_calls_in_it(file, dtype, temperature):
    model = small(file, "cuda:0", dtype=getattr(tc, dtype))
    answers = []
    for graph in (False, True):
        engine = Engine(model, 6 * CONTEXT, max_batch=5, chunk=16, sampling=Sampling(temperature, 0.9), graph=graph)
        requests = []
        for i, ids in enumerate(ragged(24)):  # they come and go, so rows are filled and emptied
            requests.append(engine.submit(ids, 5 + i % 13, seed=i))
            if i % 3:
                engine.step()
        run(engine)
        assert engine.graph == graph and any(d.recorded for d in engine.decoders.values()) == graph
        answers.append([r.ids for r in requests])
    assert answers[0] == answers[1]


def test_requests_that_come_and_go_leave_all_pages(model):
    engine = Engine(model, 3 * CONTEXT, chunk=16, max_batch=8)
    requests = []
    for i, ids in enumerate(ragged(64)):
        requests.append(engine.submit(ids, 1 + i % 23))
        if i % 2:
            engine.step()
    engine.release(requests[-1])  # which waits, or runs
    run(engine)
    assert all(request.done and not request.pages for request in requests)
    assert sorted(engine.free) == list(range(engine.pages)) and not engine.running


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_ten_thousand_tokens_over_requests_that_come_and_go_leave_memory_as_it_was(model):
    engine = Engine(model, 8 * CONTEXT, chunk=16, max_batch=8)
    prompts = ragged(64)
    wanted = {}

    def serve(count):
        made = 0
        for turn in range(count):
            i = turn % 64
            request = engine.submit(prompts[i], 110, seed=i)
            while not request.done if turn % 8 == 7 else len(engine.waiting) > 4:
                made += len(engine.step())
            wanted.setdefault(i, []).append(request)
        while engine.busy:
            made += len(engine.step())
        return made

    serve(64)  # after which each kind of call has been made once
    at_begin = resident_bytes()
    assert serve(100) == 100 * 110
    assert sorted(engine.free) == list(range(engine.pages)) and not engine.running
    assert resident_bytes() - at_begin < 4 << 20
    for i, requests in wanted.items():
        assert all(r.ids == requests[0].ids for r in requests)
        assert requests[0].ids[: len(prompts[i])] == prompts[i]


def test_a_request_waits_for_pages_and_keeps_its_turn(model):
    engine = Engine(model, 64, page_size=16)
    first, second, third = (engine.submit(prompt(20), n) for n in (20, 40, 1))
    for step in range(20):
        assert not first.done and len(second.ids) == 20 and third in engine.waiting, step  # third would fit
        engine.step()
    assert first.done
    run(engine)
    assert len(second.ids) == 60 and len(third.ids) == 21


def test_kept_pages_are_the_users_to_release(model):
    engine = Engine(model, 64, page_size=16)
    kept = engine.submit(prompt(20), 20, keep=True)
    with pytest.raises(ValueError, match="the request still runs"):
        engine.extend(kept, [1], 1)
    other = engine.submit(prompt(20), 20)
    with pytest.raises(RuntimeError, match="keep all pages; release one"):
        run(engine)
    engine.release(kept)
    run(engine)
    assert other.ids == kept.ids


def test_a_stop_token_and_the_context_end_a_request(model):
    engine = Engine(model, CONTEXT, chunk=64)
    free = engine.submit(prompt(30), 1000)
    run(engine)
    assert len(free.ids) == CONTEXT
    stop = free.ids[33]
    first = next(i for i in range(30, CONTEXT) if free.ids[i] == stop)
    stopped = Engine(model, CONTEXT, chunk=64, stop={stop})
    request = stopped.submit(prompt(30), 1000)
    run(stopped)
    assert request.ids == free.ids[: first + 1]


def test_wrong_requests_are_refused(model):
    engine = Engine(model, 64)
    for ids, tokens, said in (
        ([], 1, "prompt is empty"),
        ([0, VOCABULARY], 1, r"not in \[0, 96\)"),
        ([-1], 1, r"not in \[0, 96\)"),
        ([1], 0, "max_tokens is 0"),
        (prompt(64), 1, "64 tokens; with an answer it must fit in 64"),
    ):
        with pytest.raises(ValueError, match=said):
            engine.submit(ids, tokens)
    assert not engine.busy
    with pytest.raises(ValueError, match="fit in 160"):
        Engine(model, 1000).submit(prompt(160), 1)


@pytest.mark.parametrize(
    ("metadata", "changes", "said"),
    [
        ({"general.architecture": "qwen2"}, {}, "architecture qwen2; this example runs llama"),
        ({"llama.block_count": None}, {}, "does not say llama.block_count"),
        ({"llama.rope.scaling.type": "yarn"}, {}, "llama.rope.scaling.type is yarn; this example takes none"),
        ({"llama.attention.key_length": 32}, {}, "llama.attention.key_length is 32; this example takes 16"),
        ({}, {"blk.0.attn_q.bias": ("F32", (4,), bytes(16))}, "does not use: blk.0.attn_q.bias"),
        ({"llama.block_count": 3}, {}, "no tensor blk.2.attn_q.weight"),
    ],
)
def test_another_model_is_refused(tmp_path, metadata, changes, said):
    changed = {key: value for key, value in {**METADATA, **metadata}.items() if value is not None}
    with pytest.raises(ValueError, match=said):
        other = GgufFile(write(tmp_path, changed, **changes))
        load.read_weights(other, load.read_config(other))


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({}, "of kind None, split None; this example takes gpt2, split smollm"),
        ({"tokenizer.ggml.model": "llama"}, "of kind llama"),
        ({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm"}, "does not say tokenizer.ggml.tokens"),
    ],
)
def test_another_tokenizer_is_refused(metadata, said):
    with pytest.raises(ValueError, match=said):
        Tokenizer(metadata)


def test_an_output_matrix_of_its_own_is_used(tmp_path, file):
    raw = np.random.default_rng(5).standard_normal((VOCABULARY, HIDDEN)).astype(np.float32)
    path = write(tmp_path, **{"output.weight": ("F32", raw.shape, raw.tobytes())})
    both = [small(f, "cpu") for f in (file, GgufFile(path))]
    assert both[0].weights["output"] is both[0].weights["embedding"]
    np.testing.assert_array_equal(both[1].weights["output"].numpy(), raw)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_exported_model_has_the_weights_and_says_the_dimensions(tmp_path, monkeypatch, file, dtype):
    llama = small(file, "cpu", dtype=getattr(tc, dtype))
    monkeypatch.setattr(export, "load", lambda *_: (llama, SimpleNamespace(end=2)))
    export.export(tmp_path / "small.safetensors", None, dtype)
    weights = tc.load_safetensors(tmp_path / "small.safetensors", "cpu")
    assert set(weights) == set(llama.weights) - {"output"}
    for name, weight in weights.items():
        assert weight.dtype == (tc.float32 if weight.ndim == 1 else getattr(tc, dtype))
        np.testing.assert_array_equal(weight.astype(tc.float32), llama.weights[name].astype(tc.float32))
    size = struct.unpack("<Q", (tmp_path / "small.safetensors").read_bytes()[:8])[0]
    said = json.loads((tmp_path / "small.safetensors").read_bytes()[8 : 8 + size])["__metadata__"]
    wanted = {"layers": LAYERS, "heads": HEADS, "heads_k": HEADS_K, "context": CONTEXT, "end": 2, "rope_base": 1000}
    assert {key: float(said[key]) for key in wanted} == wanted and float(said["eps"]) == pytest.approx(1e-5)


def test_draws_follow_the_distribution_and_the_nucleus():
    logits = np.log([0.5, 0.3, 0.15, 0.05])
    rows = tc.asarray(np.tile(logits.astype(np.float32), (4000, 1)), device="cpu")
    drawn = sampling.draw(rows, Sampling(1.0), [7] * 4000, range(4000))
    share = np.bincount(drawn, minlength=4) / 4000
    np.testing.assert_allclose(share, [0.5, 0.3, 0.15, 0.05], atol=0.03)
    nucleus = sampling.draw(rows, Sampling(1.0, top_p=0.75), [7] * 4000, range(4000))
    assert set(nucleus) == {0, 1}
    assert sampling.draw(rows, Sampling(1.0), [7] * 4000, range(4000)) == drawn
    assert sampling.draw(rows, Sampling(1.0), [8] * 4000, range(4000)) != drawn
    assert set(sampling.draw(rows, Sampling(0.0), [7] * 4000, range(4000))) == {0}
    assert set(sampling.draw(rows, Sampling(1e-3), [7] * 4000, range(4000))) == {0}


@pytest.mark.parametrize("options", [{"temperature": -1}, {"temperature": float("nan")}, {"top_p": 0}, {"top_p": 1.5}])
def test_wrong_sampling_is_refused(options):
    with pytest.raises(ValueError, match=f"sampling: {next(iter(options))} is"):
        Sampling(**options)
