"""What torch and NumPy compute in the place of each operator: one expression a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# A peer takes the arrays of the call and its options by name, and leaves out what does not apply to it.
PeerCall = Callable[..., Any]


def torch_calls() -> dict[str, PeerCall]:
    import torch
    from torch.nn import functional as f
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def rms_norm(x: Any, weight: Any = None, eps: float = 1e-6, residual: Any = None) -> Any:
        if residual is None:
            return f.rms_norm(x, x.shape[-1:], weight, eps)
        total = x + residual
        return f.rms_norm(total, x.shape[-1:], weight, eps), total

    def layer_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, residual: Any = None, activation: str = "none") -> Any:
        if residual is None:
            normalized = f.layer_norm(x, x.shape[-1:], weight, bias, eps)
            return f.gelu(normalized) if activation == "gelu" else normalized
        total = x + residual
        return f.layer_norm(total, x.shape[-1:], weight, bias, eps), total

    def quantize(x: Any, scheme: str = "tensor", **_: Any) -> Any:
        groups = {"tensor": x.reshape(1, -1), "token": x, "block": x.reshape(-1, 128)}[scheme].float()
        scale = groups.abs().amax(-1, keepdim=True) / 448
        return (groups / scale).to(torch.float8_e4m3fn).reshape(x.shape), scale

    def rope(x: Any, cos: Any = None, sin: Any = None, **_: Any) -> Any:
        tokens, half = x.shape[-3], x.shape[-1] // 2
        if cos is None:
            steps = 10000.0 ** (-torch.arange(half, device=x.device) / half)
            angles = torch.arange(tokens, device=x.device)[:, None] * steps
            cos, sin = angles.cos(), angles.sin()
        cos, sin = cos[:tokens, None], sin[:tokens, None]
        a, b = x[..., :half].float(), x[..., half:].float()
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)

    activations = {
        None: lambda x: x, "relu": f.relu, "silu": f.silu, "gelu": f.gelu,
        "gelu_tanh": lambda x: f.gelu(x, approximate="tanh"),
    }  # fmt: skip

    def gemm(
        a: Any, b: Any, c: Any = None, bias: Any = None, activation: str | None = None, transpose_a: bool = False,
        transpose_b: bool = False, out_dtype: str | None = None, allow_tf32: bool = False, a_scale: Any = None,
        b_scale: Any = None, accumulation: str = "promoted",
    ) -> Any:  # fmt: skip
        torch.backends.cuda.matmul.allow_tf32 = allow_tf32
        a, b = a.mT if transpose_a else a, b.mT if transpose_b else b
        if a.dtype == torch.int8:
            return torch._int_mm(a, b)
        if a.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            dtype = getattr(torch, out_dtype or "bfloat16")
            column = b_scale[None, :] if b_scale.ndim == 1 and b_scale.numel() > 1 else b_scale
            return torch._scaled_mm(
                a, b, scale_a=a_scale, scale_b=column, bias=bias, out_dtype=dtype, use_fast_accum=accumulation == "fast"
            )
        if out_dtype:
            return torch.mm(a, b, out_dtype=getattr(torch, out_dtype))
        product = torch.matmul(a, b) if c is None else torch.addmm(c, a, b)
        return activations[activation](product if bias is None else product + bias)

    def silu_and_mul(x: Any) -> Any:
        gate, up = x.chunk(2, -1)
        return f.silu(gate) * up

    def batch_norm(x: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None) -> Any:
        return f.batch_norm(x, running_mean, running_var, weight, bias)

    def sample(
        logits: Any, temperature: float = 1, top_k: int | None = None, top_p: float = 1, min_p: float = 0
    ) -> Any:
        if temperature == 0:
            return logits.argmax(-1)
        x = logits.float() / temperature
        if top_k is not None:
            x = x.masked_fill(x < x.topk(top_k).values[..., -1:], -torch.inf)
        if top_p < 1:
            ordered, places = x.sort(descending=True)
            p = ordered.softmax(-1)
            x = x.scatter(-1, places, ordered.masked_fill(p.cumsum(-1) - p >= top_p, -torch.inf))
        p = x.softmax(-1)
        if min_p > 0:
            p = p.masked_fill(p < min_p * p.amax(-1, keepdim=True), 0)
        return (p / torch.empty_like(p).exponential_()).argmax(-1)  # multinomial() without a wait

    def moe_router(
        logits: Any, k: int, scoring: str = "softmax", bias: Any = None, groups: int = 1, group_k: int = 1,
        renormalize: bool = False,
    ) -> Any:  # fmt: skip
        x = logits.float()
        scores = {"softmax": lambda: x.softmax(-1), "sigmoid": x.sigmoid, "sqrtsoftplus": lambda: f.softplus(x).sqrt()}[
            scoring
        ]()
        choice = scores if bias is None else scores + bias
        if groups > 1:
            parts = choice.unflatten(-1, (groups, -1))
            best = parts.amax(-1) if bias is None else parts.topk(2, -1).values.sum(-1)
            usable = torch.zeros_like(best, dtype=torch.bool).scatter(-1, best.topk(group_k, -1).indices, True)
            choice = parts.masked_fill(~usable[..., None], -torch.inf).flatten(-2)
        ids = choice.topk(k, -1).indices
        weights = scores.gather(-1, ids)
        return weights / weights.sum(-1, keepdim=True) if renormalize else weights, ids

    def moe_sort(ids: Any, num_experts: int) -> Any:
        sources = ids.flatten().argsort(stable=True)
        row_map = torch.empty_like(sources).scatter(0, sources, torch.arange(sources.numel(), device=ids.device))
        offsets = f.pad(torch.bincount(ids.flatten(), minlength=num_experts).cumsum(0), (1, 0))
        return offsets, row_map.reshape(ids.shape), sources

    def moe_permute(x: Any, ids: Any, num_experts: int) -> Any:
        maps = moe_sort(ids, num_experts)
        return x[maps[2] // ids.shape[1]], *maps

    def moe_combine(y: Any, row_map: Any, weights: Any) -> Any:
        return (y[row_map] * weights[..., None]).sum(1).to(y.dtype)

    def grouped_gemm(a: Any, b: Any, offsets: Any, transpose_b: bool = False) -> Any:
        return torch._grouped_mm(a, b.mT if transpose_b else b, offs=offsets[1:])

    def masked_gemm(a: Any, b: Any, counts: Any, transpose_b: bool = False, **_: Any) -> Any:
        return torch.bmm(a, b.mT if transpose_b else b)  # torch computes all rows

    def attention(q: Any, k: Any, v: Any, causal: bool = False) -> Any:
        # cuDNN's, which is torch's fastest, if it takes the call; left to itself torch may choose another.
        backends = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]
        with sdpa_kernel(backends, set_priority=True):
            return f.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])

    def nchw(x: Any, layout: str) -> Any:
        return x.permute(0, 3, 1, 2) if layout == "nhwc" else x  # of contiguous NHWC: torch's channels_last

    def as_given(y: Any, layout: str) -> Any:
        return y.permute(0, 2, 3, 1) if layout == "nhwc" else y

    def conv2d(
        x: Any, w: Any, bias: Any = None, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1,
        activation: str | None = None, residual: Any = None, layout: str = "nchw", allow_tf32: bool = False,
    ) -> Any:  # fmt: skip
        torch.backends.cudnn.benchmark = True  # cuDNN searches among its kernels
        torch.backends.cudnn.allow_tf32 = allow_tf32
        x, w = nchw(x, layout), nchw(w, layout)
        pairs = [padding] * 2, [stride] * 2, [dilation] * 2
        if activation == "relu" and bias is not None and x.is_cuda:  # cuDNN's fused calls
            if residual is not None:
                added = nchw(residual, layout)
                y = torch.cudnn_convolution_add_relu(x, w, added, 1.0, bias, pairs[1], pairs[0], pairs[2], groups)
            else:
                y = torch.cudnn_convolution_relu(x, w, bias, pairs[1], pairs[0], pairs[2], groups)
            return as_given(y, layout)
        y = f.conv2d(x, w, bias, stride, padding, dilation, groups)
        if residual is not None:
            y = y + nchw(residual, layout)
        more = {"relu6": f.relu6, "hard_swish": f.hardswish}
        return as_given((activations | more)[activation](y), layout)

    def depthwise_conv2d(x: Any, w: Any, layout: str = "nchw", **options: Any) -> Any:
        return conv2d(x, w, groups=x.shape[3 if layout == "nhwc" else 1], layout=layout, **options)

    def max_pool2d(x: Any, window: int = 2, stride: int | None = None, padding: int = 0, layout: str = "nchw") -> Any:
        return as_given(f.max_pool2d(nchw(x, layout), window, stride, padding), layout)

    def avg_pool2d(x: Any, window: int = 2, stride: int | None = None, padding: int = 0, layout: str = "nchw") -> Any:
        return as_given(f.avg_pool2d(nchw(x, layout), window, stride, padding), layout)

    def causal_conv1d(x: Any, w: Any, bias: Any = None, silu: bool = False) -> Any:
        channels, width = w.shape
        y = f.conv1d(f.pad(x.mT, (width - 1, 0)), w[:, None], bias, groups=channels).mT
        return f.silu(y) if silu else y

    return {
        "conv2d": conv2d, "depthwise_conv2d": depthwise_conv2d, "max_pool2d": max_pool2d, "avg_pool2d": avg_pool2d,
        "causal_conv1d": causal_conv1d,
        "silu": f.silu, "gelu": f.gelu, "relu": f.relu, "add": torch.add, "multiply": torch.mul, "exp": torch.exp,
        "silu_and_mul": silu_and_mul, "rms_norm": rms_norm, "layer_norm": layer_norm, "batch_norm": batch_norm,
        "softmax": lambda x, axis=-1: f.softmax(x, axis), "log_softmax": lambda x, axis=-1: f.log_softmax(x, axis),
        "logsumexp": lambda x, axis=-1: torch.logsumexp(x, axis), "l2_normalize": lambda x, axis=-1: f.normalize(x, dim=axis),
        "cross_entropy": lambda logits, targets: f.cross_entropy(logits, targets),
        "transpose": lambda x: x.mT.contiguous(), "sum": lambda x, axis=None: x.sum(axis) if axis is not None else x.sum(),
        "mean": lambda x, axis=None: x.mean(axis) if axis is not None else x.mean(),
        "embedding": lambda ids, table: f.embedding(ids, table), "quantize": quantize, "rope": rope, "gemm": gemm,
        "moe_router": moe_router, "moe_sort": moe_sort, "moe_permute": moe_permute, "moe_combine": moe_combine,
        "grouped_gemm": grouped_gemm, "masked_gemm": masked_gemm, "attention": attention, "sample": sample, "argmax": lambda x, axis=None: x.argmax(axis),
    }  # fmt: skip


def numpy_calls() -> dict[str, PeerCall]:
    import numpy as np

    def softmax(x: Any, axis: int = -1) -> Any:
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    def layer_norm(x: Any, weight: Any = 1, bias: Any = 0, eps: float = 1e-5) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + eps) * weight + bias

    def rms_norm(x: Any, weight: Any = 1, eps: float = 1e-6, residual: Any = 0) -> Any:
        total = x + residual
        return total / np.sqrt((total * total).mean(-1, keepdims=True) + eps) * weight

    def gemm(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
        return np.matmul(a.swapaxes(-1, -2) if transpose_a else a, b.swapaxes(-1, -2) if transpose_b else b)

    return {
        "silu": lambda x: x / (1 + np.exp(-x)), "relu": lambda x: np.maximum(x, 0), "exp": np.exp, "add": np.add,
        "multiply": np.multiply, "softmax": softmax, "layer_norm": layer_norm, "rms_norm": rms_norm, "gemm": gemm,
        "l2_normalize": lambda x, axis=-1: x / np.sqrt((x * x).sum(axis, keepdims=True)),
        "transpose": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)), "sum": lambda x, axis=None: x.sum(axis),
        "mean": lambda x, axis=None: x.mean(axis), "embedding": lambda ids, table: table[ids],
    }  # fmt: skip
