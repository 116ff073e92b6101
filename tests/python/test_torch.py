# SPDX-License-Identifier: Apache-2.0
"""torch as a second reference, and as the framework whose tensors, streams and memory are used in place."""

import numpy as np
import pytest

import tensorcraft as tc

torch = pytest.importorskip("torch")
functional = torch.nn.functional
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() and "cuda:0" in tc.devices() else ["cpu"]
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
# One rounding to the dtype on each side, and float32 sums in another order.
TOLERANCE = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}

pytestmark = [pytest.mark.parametrize("device", DEVICES)]


def close(got, expected):
    assert isinstance(got, torch.Tensor) and got.device == expected.device and got.dtype == expected.dtype
    limit = TOLERANCE[got.dtype]
    torch.testing.assert_close(got, expected, rtol=limit, atol=limit)


def randn(*shape, device, dtype):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(device, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_norms_and_softmax(device, dtype):
    x, w, b = (randn(*s, device=device, dtype=dtype) for s in [(37, 384), (384,), (384,)])
    close(tc.layer_norm(x, w, b), functional.layer_norm(x, (384,), w, b))
    close(tc.rms_norm(x, w), functional.rms_norm(x, (384,), w, 1e-6))
    close(tc.softmax(x), functional.softmax(x, -1))
    close(tc.softmax(x, axis=0), functional.softmax(x, 0))
    close(tc.l2_normalize(x), functional.normalize(x.float(), dim=-1).to(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_linear_with_activation(device, dtype, activation):
    x, w, b = (randn(*s, device=device, dtype=dtype) for s in [(65, 96), (130, 96), (130,)])
    expected = getattr(functional, activation)(x.float() @ w.float().T + b.float()).to(dtype)
    got = tc.gemm(x, w, transpose_b=True, bias=b, activation=activation)
    assert (got.float() - expected.float()).norm() <= TOLERANCE[dtype] * expected.float().norm()


@pytest.mark.parametrize("dtype", DTYPES)
def test_activations(device, dtype):
    x = randn(1000, device=device, dtype=dtype)
    close(tc.gelu(x), functional.gelu(x))
    close(tc.gelu(x, approximate="tanh"), functional.gelu(x, approximate="tanh"))
    close(tc.silu(x), functional.silu(x))
    close(tc.leaky_relu(x, alpha=0.1), functional.leaky_relu(x, 0.1))
    close(tc.elu(x), functional.elu(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("causal", [False, True])
def test_attention(device, dtype, causal):
    q, k, v = (randn(2, 4, 33, 64, device=device, dtype=dtype) for _ in range(3))
    expected = functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=causal)
    close(tc.attention(q, k, v, causal=causal), expected.to(dtype))


def test_embedding_and_dtypes(device):
    table = randn(50, 16, device=device, dtype=torch.float32)
    ids = torch.tensor([[0, 49], [7, 7]], device=device)
    close(tc.embedding(ids, table), functional.embedding(ids, table))
    assert torch.equal(tc.astype(table, tc.bfloat16), table.bfloat16())


def test_views_are_used_in_place(device):
    x = randn(6, 8, device=device, dtype=torch.float32)
    close(tc.add(x.T, x.T[:, :1]), x.T + x.T[:, :1])
    out = torch.empty(8, 6, device=device).T
    assert tc.copy(x, out=out) is out and torch.equal(out, x)
    assert tc.asarray(x).data_ptr == x.data_ptr()


def test_work_follows_the_current_torch_stream(device):
    if device == "cpu":
        pytest.skip("a CPU has no streams")
    side = torch.cuda.Stream()
    x = torch.zeros(1 << 22, device=device)
    with torch.cuda.stream(side):
        for _ in range(200):  # long enough that an unordered reader would see old values
            x += 1
        y = tc.add(x, x)
    side.synchronize()
    assert torch.equal(y, torch.full_like(x, 400))


def test_results_of_torch_tensors_are_torch_memory(device):
    x = randn(4, 4, device=device, dtype=torch.float32)
    y = tc.relu(x)
    del x
    assert y.untyped_storage().nbytes() >= 64
    assert np.isfinite(y.cpu().numpy()).all()
