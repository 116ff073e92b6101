# SPDX-License-Identifier: Apache-2.0
"""Every operator under torch.ops.tensorcraft: torch's own checks, whole graphs, and the way around them."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
from valid_calls import CALLS, valid_call

import tensorcraft as tc

torch = pytest.importorskip("torch", reason="torch is not installed")
tct = pytest.importorskip("tensorcraft.torch")
_torch_operators = pytest.importorskip("tensorcraft._torch_operators")
Operator, TRACED = _torch_operators.Operator, _torch_operators.TRACED
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() and "cuda:0" in tc.devices() else ["cpu"]
pytestmark = [
    pytest.mark.parametrize("device", DEVICES),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def to_torch(value, device):
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy()).to(device)
    return tuple(to_torch(v, device) for v in value) if isinstance(value, tuple) else value


def torch_call(name, device):
    """The valid call of an operator with tensors of torch; arrays given as lists stay lists."""
    arrays, options = valid_call(name)
    return [to_torch(a, device) for a in arrays], {k: to_torch(v, device) for k, v in options.items()}


def flat(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def equal(got, expected):
    for one, other in zip(flat(got), flat(expected), strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


def recorded_call(name, arrays, options):
    """What a traced call gives to the operator of torch."""
    calls = []

    class Recorder(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.namespace == "tensorcraft":
                calls.append((func, args, kwargs or {}))
            return func(*args, **(kwargs or {}))

    bound = inspect.signature(tc.ops()[name].function).bind(*arrays, **options)
    bound.apply_defaults()
    values = dict(bound.arguments)
    named = [p.name for p in bound.signature.parameters.values() if p.kind is p.VAR_KEYWORD]
    for group in named:
        values.update(values.pop(group))
    with Recorder():
        TRACED[name](**values)
    return calls[-1]


def has_nan(result):
    return any(one.is_floating_point() and bool(one.float().isnan().any()) for one in flat(result))


@pytest.mark.parametrize("name", CALLS)
def test_torch_checks_the_schema_and_the_fake_function(name, device):
    arrays, options = torch_call(name, device)
    if has_nan(getattr(tc, name)(*torch_call(name, device)[0], **options)):  # which torch takes for a difference
        arrays = [torch.ones_like(a) for a in arrays]
    entry, arguments, keywords = recorded_call(name, arrays, options)
    assert set(torch.library.opcheck(entry, arguments, keywords).values()) == {"SUCCESS"}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", CALLS)
def test_a_graph_is_whole_and_computes_the_same(name, backend, device):
    arrays, options = torch_call(name, device)
    function = getattr(tct, name)
    torch._dynamo.reset()
    compiled = torch.compile(lambda *a: function(*a, **options), fullgraph=True, backend=backend)
    got = compiled(*torch_call(name, device)[0])
    equal(got, getattr(tc, name)(*arrays, **options))


@pytest.mark.parametrize("name", CALLS)
def test_what_is_written_in_place_is_what_the_checks_say(name, device):
    """The operator's inputs and the results of a call say it separately."""
    arrays, options = torch_call(name, device)
    operator = Operator(tc.ops()[name])
    places = []

    def infer(*given):
        places.extend(place for *_, place in _torch_operators._infer(*given[:3], given[5]))
        return _torch_operators._fake_call(*given)

    text = _torch_operators._made(operator.kernel_text(), name, _call=infer, _results=_torch_operators._results(operator))
    _, arguments, keywords = recorded_call(name, arrays, options)
    text(*arguments, **keywords)
    assert [place for place in places if place >= 0] == list(range(operator.written))


def test_results_go_into_memory_of_the_caller(device):
    x = torch.randn(5, 64, device=device)
    out = torch.full_like(x, torch.nan)
    torch.ops.tensorcraft.softmax.out(x, out=out)
    equal(out, tc.softmax(x))
    torch.library.opcheck(torch.ops.tensorcraft.softmax.out, (x,), {"out": out})
    compiled = torch.compile(lambda a, b: tct.softmax(a, out=b), fullgraph=True, backend="aot_eager")
    out = torch.full_like(x, torch.nan)
    compiled(x, out)
    equal(out, tc.softmax(x))
    values, indices = torch.full((5, 3), torch.nan, device=device), torch.zeros(5, 3, dtype=torch.int64, device=device)
    torch.ops.tensorcraft.topk.out(x, 3, out=values, out_indices=indices)
    equal((values, indices), tc.topk(x, 3))


def test_caches_are_written_in_place(device):
    def call(function, k_cache, v_cache):
        k = torch.arange(2 * 2 * 8, device=device, dtype=torch.float32).reshape(2, 2, 8)
        slots = torch.tensor([5, 2], device=device)
        function(k_cache, v_cache, k, k + 1, slots)
        return k_cache * 1

    caches = [torch.zeros(2, 2, 4, 2, 8, device=device) for _ in range(2)]
    plain = call(tc.append_kv, *caches[0])
    compiled = torch.compile(lambda k, v: call(tct.append_kv, k, v), fullgraph=True, backend="aot_eager")
    equal(compiled(*caches[1]), plain)
    equal(caches[1], caches[0])


def test_a_latent_cache_is_written_in_place(device):
    def call(function, cache, q):
        k, slots = torch.arange(2 * 8, device=device, dtype=torch.float32).reshape(2, 1, 8), torch.tensor([5, 2], device=device)
        turns = {"cos": torch.ones(3, 2, device=device), "sin": torch.full((3, 2), 0.5, device=device), "positions": slots * 0}
        function(cache, None, k, None, slots)
        return cache * 1, function(cache, None, k + 1, None, slots, q=q, **turns).q_out

    caches, q = [torch.zeros(2, 4, 1, 8, device=device) for _ in range(2)], torch.ones(2, 3, 8, device=device)
    plain = call(tc.append_kv, caches[0], q)
    compiled = torch.compile(lambda cache, q: call(tct.append_kv, cache, q), fullgraph=True, backend="aot_eager")
    equal(compiled(caches[1], q), plain)
    equal(caches[1], caches[0])


def decode(t, hidden, caches, weights, table, position):
    """A token of a decoder's layer, by the functions of `t`."""
    cos, sin, slot, length = table["cos"], table["sin"], position.to(torch.int64), position + 1
    normed = t.rms_norm(hidden, weights["norm"])
    q, k, v = (t.gemm(normed, weights[name]).reshape(1, -1, 16) for name in "qkv")
    caches_now = t.append_kv(*caches, k, v, slot, q=q, cos=cos, sin=sin, positions=position)
    attended = t.paged_attention(caches_now.q_out, *caches_now[:2], table["blocks"], length)
    hidden = hidden + t.gemm(attended.reshape(1, -1), weights["o"])
    normed = t.rms_norm(hidden, weights["norm"])
    gated = t.elementwise("silu(g) * u", g=t.gemm(normed, weights["gate"]), u=t.gemm(normed, weights["up"]))
    return hidden + t.gemm(gated, weights["down"])


def test_a_decode_step_is_one_graph_for_all_tokens(device):
    torch.manual_seed(1)
    shapes = {"q": (64, 64), "k": (64, 32), "v": (64, 32), "o": (64, 64), "gate": (64, 96), "up": (64, 96), "down": (96, 64)}
    weights = {name: torch.randn(*shape, device=device) / 8 for name, shape in shapes.items()}
    weights["norm"] = torch.ones(64, device=device)
    angles = torch.arange(8.0, device=device)[:, None] / torch.arange(1.0, 9.0, device=device)
    blocks = torch.arange(2, device=device, dtype=torch.int32)[None]
    table = {"cos": angles.cos(), "sin": angles.sin(), "blocks": blocks}
    caches = [[torch.zeros(2, 4, 2, 16, device=device) for _ in range(2)] for _ in range(2)]
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    torch._dynamo.reset()
    step = torch.compile(lambda *given: decode(tct, *given), fullgraph=True, backend=backend)
    whole = torch.compile(lambda *given: decode(tct, *given), fullgraph=True, backend="aot_eager")
    for token in range(6):
        hidden = torch.randn(1, 64, device=device)
        position = torch.tensor([token], device=device, dtype=torch.int32)
        expected = decode(tc, hidden, caches[0], weights, table, position)
        compiled = step if token % 2 else whole
        equal(compiled(hidden, caches[1], weights, table, position), expected)
        equal(caches[1], caches[0])
    assert len(graphs) == 1


def test_words_that_torch_has_no_type_for(device):
    x = torch.randn(2, 3, 8, 8, device=device)
    w = torch.randn(4, 3, 3, 3, device=device)
    for padding in (1, (1, 2), ((0, 1), (2, 0)), "same"):
        compiled = torch.compile(lambda a, b, p=padding: tct.conv2d(a, b, padding=p), fullgraph=True, backend="aot_eager")
        equal(compiled(x, w), tc.conv2d(x, w, padding=padding))
    a = torch.randn(8, device=device)
    graph = torch.compile(lambda a: tct.elementwise("x * 2 + y * k", x=a, y=a, k=3), fullgraph=True, backend="aot_eager")
    equal(graph(a), tc.elementwise("x * 2 + y * k", x=a, y=a, k=3))
    logits = torch.randn(3, 50, device=device)
    heat = torch.tensor([0.5, 1.0, 2.0], device=device)
    for temperature in (0.7, heat):
        graph = torch.compile(lambda x, t=temperature: tct.sample(x, temperature=t, seed=7), fullgraph=True, backend="aot_eager")
        equal(graph(logits), tc.sample(logits, temperature=temperature, seed=7))
    assert torch.compile(lambda x: tct.astype(x, "float16"), fullgraph=True, backend="aot_eager")(a).dtype == torch.float16
    equal(torch.compile(lambda x: tct.add(x, 1.5), fullgraph=True, backend="aot_eager")(a), tc.add(a, 1.5))


def test_a_fake_call_says_what_the_call_would_say(device):
    x = torch.randn(5, 64, device=device)
    with torch._subclasses.fake_tensor.FakeTensorMode() as mode:
        fake = mode.from_tensor(x)
        with pytest.raises(ValueError, match="softmax: axis"):
            torch.ops.tensorcraft.softmax(fake, 2)
        result = torch.ops.tensorcraft.topk(fake, 3)
        assert [tuple(r.shape) for r in result] == [(5, 3)] * 2 and result[1].dtype == torch.int64
        with pytest.raises(ValueError, match="gemm"):
            torch.ops.tensorcraft.gemm(fake, fake)


def test_new_sizes_compile_again(device):
    compiled = torch.compile(lambda a: tct.softmax(a) + 1, fullgraph=True, backend="aot_eager")
    for rows in (3, 4, 5):
        x = torch.randn(rows, 16, device=device)
        equal(compiled(x), tc.softmax(x) + 1)


def test_outside_of_a_graph_it_is_the_plain_function(device):
    x = torch.randn(5, 64, device=device)
    equal(tct.softmax(x, variant="reference" if device == "cpu" else "naive"), tc.softmax(x, variant="reference" if device == "cpu" else "naive"))
    assert isinstance(tct.softmax(x.numpy(force=True)), np.ndarray)
    assert tct.softmax.__doc__ == tc.softmax.__doc__
    names = {*tc.ops(), *(alias for operator in tc.ops().values() for alias in operator.aliases)}
    assert set(tct.__all__) == {*names, *tc._ops.__all__} == {*tc._ops.__all__, "astype", "clip", "matmul"}  # as the stub says


def test_gradients_are_refused_with_a_way_out(device):
    x = torch.randn(3, 8, device=device, requires_grad=True)
    graph = torch.compile(lambda a: tct.softmax(a) * 2, fullgraph=True, backend="aot_eager")
    for call in (tct.softmax, torch.ops.tensorcraft.softmax, graph):
        with pytest.raises(Exception, match=r"softmax: an array requires gradients.*torch\.no_grad\(\)") as raised:
            call(x)
        assert call is graph or raised.type is tc.Unsupported
        assert not call(x.detach()).requires_grad
        with torch.no_grad():
            assert not call(x).requires_grad
        with torch.inference_mode():
            call(x)
    with pytest.raises(tc.Unsupported, match="elementwise: an array requires gradients"):
        tct.elementwise("x + 1", x=x)
    with pytest.raises(tc.Unsupported, match="elementwise: an array requires gradients"):
        torch.ops.tensorcraft.elementwise("x + 1", arrays=[x], names="x")


def test_append_kv_gives_an_empty_tensor_for_queries_that_are_not_given(device):
    arrays, _ = torch_call("append_kv", device)
    assert torch.ops.tensorcraft.append_kv(*arrays).shape == (0,)


def test_signatures_are_those_of_the_operators(device):
    for name, operator in tc.ops().items():
        given, wanted = inspect.signature(getattr(tct, name)), inspect.signature(operator.function)
        assert [(p.name, p.kind, p.default) for p in given.parameters.values()] == [
            (p.name, p.kind, p.default) for p in wanted.parameters.values()
        ]


def test_torch_is_imported_only_if_asked(device):
    code = "import sys, tensorcraft; print('torch' in sys.modules, 'tensorcraft.torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
