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


def test_torch_cannot_write_what_is_read_only(device):  # the memory is the host's on each
    del device
    array = np.ones(4, np.float32)
    array.flags.writeable = False
    with pytest.raises(BufferError, match="torch has no such tensors"):
        torch.from_dlpack(tc.asarray(array))
    copied = torch.from_dlpack(tc.asarray(array).copy())
    copied[0] = 99
    assert array[0] == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_norms_and_softmax(device, dtype):
    x, w, b = (randn(*s, device=device, dtype=dtype) for s in [(37, 384), (384,), (384,)])
    close(tc.layer_norm(x, w, b), functional.layer_norm(x, (384,), w, b))
    close(tc.rms_norm(x, w), functional.rms_norm(x, (384,), w, 1e-6))
    close(tc.softmax(x), functional.softmax(x, -1))
    close(tc.softmax(x, axis=0), functional.softmax(x, 0))
    close(tc.l2_normalize(x), functional.normalize(x.float(), dim=-1).to(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_logarithms_and_masks(device, dtype):
    x, added = randn(3, 37, 384, device=device, dtype=dtype), randn(37, 384, device=device, dtype=dtype)
    keep = added > 0
    close(tc.log_softmax(x), functional.log_softmax(x, -1))
    close(tc.logsumexp(x, axis=1, keepdims=True), torch.logsumexp(x, 1, keepdim=True))
    scores = x.float() * 0.125
    close(tc.softmax(x, scale=0.125, mask=keep), functional.softmax(scores.masked_fill(~keep, -torch.inf), -1).to(dtype))
    close(tc.softmax(x, scale=0.125, mask=added), functional.softmax(scores + added.float(), -1).to(dtype))
    special = torch.tensor([[-torch.inf, -torch.inf], [torch.inf, 1], [torch.nan, 1]], device=device, dtype=dtype)
    for ours, theirs in [(tc.softmax, functional.softmax), (tc.log_softmax, functional.log_softmax), (tc.logsumexp, torch.logsumexp)]:
        torch.testing.assert_close(ours(special), theirs(special, -1), equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy(device, dtype, reduction):
    for classes in (10, 1001, 50257):
        x = randn(65, classes, device=device, dtype=dtype)
        targets = (torch.arange(65, device=device) * 31) % classes
        targets[::5] = -100
        expected = functional.cross_entropy(x.float(), targets, reduction=reduction)
        close(tc.cross_entropy(x, targets, reduction=reduction), expected)
        got, lse = tc.cross_entropy(x, targets.int(), reduction=reduction, return_lse=True)
        close(got, expected)
        close(lse, torch.logsumexp(x.float(), -1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_norms_of_channels(device, dtype):
    x, grad = (randn(4, 6, *s, device=device, dtype=dtype) for s in [(5, 7), (5, 7)])
    mean, w, b = (randn(6, device=device, dtype=torch.float32) for _ in range(3))
    var = randn(6, device=device, dtype=torch.float32).abs() + 0.5
    close(tc.batch_norm(x, mean, var, w, b), functional.batch_norm(x.float(), mean, var, w, b).to(dtype))
    close(tc.group_norm(x, 3, w, b), functional.group_norm(x.float(), 3, w, b).to(dtype))
    wide, weight = x.float().requires_grad_(), w.clone().requires_grad_()
    new_mean, new_var = mean.clone(), var.clone()
    expected = functional.batch_norm(wide, new_mean, new_var, weight, b, training=True, momentum=0.3)
    got = tc.batch_norm(x, mean, var, w, b, training=True, momentum=0.3)
    close(got.out, expected.detach().to(dtype))
    close(got.running_mean_out, new_mean)
    close(got.running_var_out, new_var)
    expected.backward(grad.float())
    back = tc.batch_norm_backward(grad, x, w, got.mean, got.rstd)
    close(back.grad_input, wide.grad.to(dtype))
    torch.testing.assert_close(back.grad_weight, weight.grad, rtol=2e-5, atol=2e-4)


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
    side.wait_stream(torch.cuda.current_stream())  # or the zeros may come last
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
