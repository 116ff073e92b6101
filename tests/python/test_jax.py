# SPDX-License-Identifier: Apache-2.0
"""Every operator as one of JAX: values, shapes while JAX traces, and what is refused."""

import inspect
import os
import subprocess
import sys

import numpy as np
import pytest
from valid_calls import CALLS, valid_call

import tensorcraft as tc

jax = pytest.importorskip("jax", reason="jax is not installed")
tcj = pytest.importorskip("tensorcraft.jax")
_jax_operators = pytest.importorskip("tensorcraft._jax_operators")
jnp = jax.numpy
# Their valid calls leave a GPU a choice: two tokens of one slot, and starts that leave elements out.
OPEN_ON_GPU = {"append_kv", "csr_transpose"}
DEVICE = "cuda:0" if jax.default_backend() == "gpu" and "cuda:0" in tc.devices() else "cpu"
NAMES = [name for name in CALLS if DEVICE == "cpu" or name not in OPEN_ON_GPU]


def converted(value, convert):
    if isinstance(value, (tuple, list)) and any(isinstance(v, (np.ndarray, tc.Tensor, jax.Array)) for v in value):
        return tuple(converted(v, convert) for v in value)
    return convert(value) if isinstance(value, (np.ndarray, tc.Tensor, jax.Array)) else value


def expected(name, arrays, options):
    """What the direct call returns, as NumPy's arrays."""
    place = (lambda a: tc.asarray(a.copy(), device=DEVICE)) if DEVICE != "cpu" else np.copy
    arrays, options = converted(tuple(arrays), place), {k: converted(v, place) for k, v in options.items()}
    return flat(getattr(tc, name)(*arrays, **options))


def flat(value):
    return [np.asarray(v) for v in (value if isinstance(value, (tuple, list)) else [value])]


def equal(got, wanted):
    for one, other in zip(flat(got), wanted, strict=True):
        if other.dtype == np.int64 and not jax.config.jax_enable_x64:
            other = other.astype(np.int32)
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_array_equal(one, other)


def wide(name):
    """JAX with whole numbers of 64 bits if the call has some, as some operators take no others."""
    arrays, options = valid_call(name)
    has_some = any(getattr(v, "dtype", None) == np.int64 for v in [*arrays, *options.values()])
    return jax.enable_x64(has_some) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64(has_some)


def jax_call(name):
    arrays, options = valid_call(name)
    return converted(tuple(arrays), jnp.asarray), {k: converted(v, jnp.asarray) for k, v in options.items()}


def traced(name):
    """The call as a function of its arrays alone, and these."""
    arrays, options = jax_call(name)
    given = {k: v for k, v in options.items() if isinstance(v, jax.Array)}
    rest = {k: v for k, v in options.items() if k not in given}
    places = [i for i, v in enumerate(arrays) if isinstance(v, jax.Array)]

    def function(chosen, named):
        all_arrays = list(arrays)
        for i, array in zip(places, chosen):
            all_arrays[i] = array
        return getattr(tcj, name)(*all_arrays, **named, **rest)

    return function, [arrays[i] for i in places], given


@pytest.mark.parametrize("name", NAMES)
def test_a_call_computes_what_the_direct_call_computes(name):
    with wide(name):
        arrays, options = jax_call(name)
        equal(getattr(tcj, name)(*arrays, **options), expected(name, *valid_call(name)))


@pytest.mark.parametrize("name", NAMES)
def test_it_does_under_jit_with_the_shapes_that_are_known_before(name):
    with wide(name):
        function, arrays, named = traced(name)
        shapes = jax.eval_shape(function, arrays, named)
        got = jax.jit(function)(arrays, named)
        assert jax.tree.map(lambda s: (s.shape, s.dtype), shapes) == jax.tree.map(lambda a: (a.shape, a.dtype), got)
        equal(got, expected(name, *valid_call(name)))
        assert type(got) is type(function(arrays, named))


def test_it_computes_where_jit_is_disabled():
    x = np.float32([[1, 2, 3]])
    with jax.disable_jit():
        for function in (tcj.softmax, jax.jit(tcj.softmax)):
            equal(function(jnp.asarray(x)), expected("softmax", [x], {}))


@pytest.mark.parametrize("jit", [False, True])
def test_a_nan_is_an_error_where_jax_is_told_to_look_for_them(jit):
    function = jax.jit(tcj.softmax) if jit else tcj.softmax
    with jax.debug_nans(True):
        equal(function(jnp.float32([[1, 2]])), expected("softmax", [np.float32([[1, 2]])], {}))
        with pytest.raises(FloatingPointError, match="tensorcraft"):
            function(jnp.float32([[jnp.inf, 2]]))


def test_a_latent_cache_is_a_new_array():
    cache, k, slots = np.zeros((2, 4, 1, 8), np.float32), np.arange(16, dtype=np.float32).reshape(2, 1, 8), np.array([5, 2], np.int32)
    wanted = expected("append_kv", [cache.copy(), None, k, None, slots], {})
    for function in (tcj.append_kv, jax.jit(lambda cache, k, slots: tcj.append_kv(cache, None, k, None, slots))):
        inputs = (cache, None, k, None, slots) if function is tcj.append_kv else (cache, k, slots)
        equal(function(*(x if x is None else jnp.asarray(x) for x in inputs)), wanted)


def test_caches_are_new_arrays_and_may_be_donated():
    def step(k_cache, v_cache, k, slots):
        return tcj.append_kv(k_cache, v_cache, k, k + 1, slots)[:2]

    caches = [np.zeros((2, 4, 2, 8), np.float32) for _ in range(2)]
    k, slots = np.arange(32, dtype=np.float32).reshape(2, 2, 8), np.array([5, 2], np.int32)
    wanted = expected("append_kv", [*caches, k, k + 1, slots], {})
    given = [jnp.asarray(c) for c in caches]
    for function in (step, jax.jit(step)):
        equal(function(*given, k, slots), wanted)
        equal(given, caches)  # JAX changes no array
    equal(jax.jit(step, donate_argnums=(0, 1))(*given, k, slots), wanted)


def test_settings_of_every_kind():
    x, w = (np.random.default_rng(1).standard_normal(s).astype(np.float32) for s in ((2, 3, 8, 8), (4, 3, 3, 3)))
    for padding in (1, (1, 2), ((0, 1), (2, 0)), "same"):
        got = jax.jit(lambda a, b, p=padding: tcj.conv2d(a, b, padding=p))(x, w)
        equal(got, flat(tc.conv2d(x, w, padding=padding)))
    a = x[0, 0, 0]
    for k in (3, 2.5, True, -0.0, 0.0, float("inf")):  # equal numbers of different types are different settings
        got = jax.jit(lambda a, k=k: tcj.elementwise("x * 2 + y * k", x=a, y=a, k=k))(a)
        equal(got, flat(tc.elementwise("x * 2 + y * k", x=a, y=a, k=k)))
    logits, heat = x[0, :, 0], np.array([0.5, 2.0, 1.0], np.float32)
    got = jax.jit(lambda x: tcj.sample(x, temperature=0.7, seed=7))(logits)
    equal(got, flat(tc.sample(logits, temperature=0.7, seed=7)))
    got = jax.jit(lambda x, t: tcj.sample(x, temperature=t, seed=7))(logits, heat)
    equal(got, flat(tc.sample(logits, temperature=heat, seed=7)))
    assert jax.jit(lambda a: tcj.astype(a, jnp.float16))(a).dtype == jnp.float16
    equal(jax.jit(lambda a: tcj.add(a, 1.5))(a), flat(tc.add(a, 1.5)))
    equal(jax.jit(lambda a: tcj.sum(a, axis=()))(a), flat(tc.sum(a, axis=())))


def test_equal_numbers_of_different_types_are_different_settings():
    count = jnp.arange(4)
    results = [tcj.elementwise("x + k", x=count, k=k) for k in (1, 1.0)]
    assert [r.dtype for r in results] == [np.asarray(tc.elementwise("x + k", x=np.arange(4, dtype=np.int32), k=k)).dtype for k in (1, 1.0)]


def test_what_is_not_computed_is_refused():
    x = jnp.ones((3, 8))
    with pytest.raises(tc.Unsupported, match=r"softmax: an array requires gradients.*stop_gradient"):
        jax.grad(lambda a: tcj.softmax(a).sum())(x)
    assert jax.grad(lambda a: (tcj.softmax(jax.lax.stop_gradient(a)) * a).sum())(x).shape == x.shape
    with pytest.raises(tc.Unsupported, match=r"softmax: jax.vmap cannot map it.*jax.lax.map"):
        jax.jit(jax.vmap(tcj.softmax))(x)
    equal(jax.lax.map(tcj.softmax, x), [tc.softmax(np.asarray(x))])
    for keyword in ({"out": x}, {"stream": 1}, {"device": "cpu"}):
        with pytest.raises(tc.Unsupported, match=f"softmax: {next(iter(keyword))} cannot be given"):
            tcj.softmax(x, **keyword)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, lambda f: lambda *a: jax.eval_shape(f, *a)])
def test_errors_of_the_checks_come_while_jax_traces(wrap):
    x = jnp.ones((3, 8))
    with pytest.raises(tc.errors.TensorCraftTypeError, match="softmax: x: Dtype value .int32."):
        wrap(tcj.softmax)(jnp.ones((3, 8), jnp.int32))
    with pytest.raises(tc.errors.TensorCraftTypeError, match="softmax: dtype complex64 is not supported"):
        wrap(tcj.softmax)(jnp.ones((3, 8), jnp.complex64))
    with pytest.raises(tc.errors.TensorCraftValueError, match="softmax: axis must be in"):
        wrap(lambda a: tcj.softmax(a, axis=2))(x)
    with pytest.raises(tc.errors.TensorCraftValueError, match="gemm: b: Size mismatch"):
        wrap(tcj.gemm)(x, x)
    with pytest.raises(TypeError, match="topk: k must be"):
        jax.jit(lambda a, k: tcj.topk(a, k))(x, 3)


@pytest.mark.skipif(DEVICE != "cpu", reason="a GPU leaves such a slot out")
def test_an_error_of_the_run_has_the_operators_text():
    cache, k = jnp.zeros((2, 4, 2, 8)), jnp.zeros((1, 2, 8))
    with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT: append_kv: .*99"):
        jax.block_until_ready(jax.jit(tcj.append_kv)(cache, cache, k, k, jnp.array([99])))


def test_signatures_are_those_of_the_operators():
    for name, operator in tc.ops().items():
        given, wanted = inspect.signature(getattr(tcj, name)), inspect.signature(operator.function)
        assert [(p.name, p.kind, p.default) for p in given.parameters.values()] == [
            (p.name, p.kind, p.default) for p in wanted.parameters.values()
        ]
    names = {*tc.ops(), *(alias for operator in tc.ops().values() for alias in operator.aliases)}
    assert set(tcj.__all__) == {*names, *tc._ops.__all__}


def test_a_call_on_each_device_computes_its_part():
    code = """
import jax, numpy as np, tensorcraft as tc, tensorcraft.jax as tcj
mesh, rows = jax.make_mesh((4,), ("rows",)), jax.sharding.PartitionSpec("rows")
step = jax.jit(jax.shard_map(tcj.softmax, mesh=mesh, in_specs=rows, out_specs=rows))
x = np.arange(64, dtype=np.float32).reshape(8, 8) / 9
result = step(jax.device_put(x, jax.sharding.NamedSharding(mesh, rows)))
assert len(result.sharding.device_set) == 4 and np.array_equal(result, tc.softmax(x, device="cpu"))
"""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


@pytest.mark.skipif(DEVICE == "cpu", reason="no GPU that JAX and TensorCraft use")
def test_launches_become_part_of_a_cuda_graph():
    code = """
import jax, numpy as np, tensorcraft as tc, tensorcraft.jax as tcj

def step(t, x, w):
    for _ in range(4):
        x = t.softmax(t.gemm(t.rms_norm(x, w[0]), w))
    return x

w = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
compiled = jax.jit(lambda x, w: step(tcj, x, w))
for i in range(4):
    x = w[:8] + i
    wanted = step(tc, *(tc.asarray(a, device="cuda:0") for a in (x, w)))
    np.testing.assert_allclose(compiled(x, w), np.asarray(wanted), rtol=2e-6)
x, w = jax.numpy.asarray(x), jax.numpy.asarray(w)
with tc.dispatch.record():
    for _ in range(8):
        jax.block_until_ready(compiled(x, w))
    launched = tc.dispatch.stats().launched
print("launches of 8 runs:", launched)
assert launched < 8 * 12
"""
    flags = "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUSTOM_CALL --xla_gpu_graph_min_graph_size=1"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "XLA_FLAGS": flags}, check=True)


def test_an_interface_of_another_version_is_refused_at_import(monkeypatch):
    def register(*_, **__):
        raise RuntimeError("the handler's version is not supported")

    monkeypatch.setattr(jax.ffi, "register_ffi_target", register)
    with pytest.raises(tc.Unsupported, match=r"TensorCraft speaks version 0\.3 of XLA's FFI.*use another version of jax"):
        _jax_operators.register("cpu")


def test_jax_is_imported_only_if_asked():
    code = "import sys, tensorcraft; print('jax' in sys.modules, 'tensorcraft.jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
