# SPDX-License-Identifier: Apache-2.0
"""Weights that are packed once: into 4 bits, or into the order in which convolutions read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NoReturn

from . import _ops
from . import _tensorcraft as native
from ._dtypes import dtype_of
from ._tensor import asarray
from ._tensorcraft import DType, Tensor
from .errors import TensorCraftTypeError, TensorCraftValueError, Unsupported

__all__ = [
    "PackedConvWeight",
    "PackedWeight",
    "pack_conv_weight",
    "pack_weight",
    "pack_weight_from_awq",
    "pack_weight_from_gptq",
]

Format = Literal["int4", "mxfp4", "nvfp4"]
Layout = Literal["nchw", "nhwc"]


class PackedWeight:
    """A matrix (k, n) of 4 bits an element, the second operand of products: `x @ w` or `tc.gemm(x, w)` with x (..., k).

    pack_weight() makes one. The constructor takes what another program has packed, as `tc.packed_gemm` takes it: codes
    (n, k / 2) uint8 in the order of device/pack4.h, scales (n, k / group), perhaps zeros, and of nvfp4 tensor_scale.
    """

    __slots__ = ("codes", "scales", "tensor_scale", "zeros")
    __array_ufunc__ = None  # NumPy leaves x @ w to us
    codes: Tensor
    """(n, k / 2), two a byte."""
    scales: Tensor
    """(n, k / group)."""
    zeros: Tensor | None
    """Of int4, like scales: uint8, the codes that mean 0, or of the dtype of scales, what code 0 means; None: 8."""
    tensor_scale: float
    """Of nvfp4, a factor of every weight."""

    def __init__(self, codes: Tensor, scales: Tensor, zeros: Tensor | None = None, tensor_scale: float = 1.0) -> None:
        self.codes, self.scales, self.zeros, self.tensor_scale = codes, scales, zeros, tensor_scale

    @property
    def shape(self) -> tuple[int, int]:
        """(k, n)."""
        return 2 * self.codes.shape[1], self.codes.shape[0]

    @property
    def group(self) -> int:
        """How many neighbours along k share a scale."""
        return self.shape[0] // self.scales.shape[1]

    @property
    def format(self) -> Format:
        """What the codes are."""
        if self.scales.dtype == DType.uint8:
            return "mxfp4"
        return "nvfp4" if self.scales.dtype == DType.float8_e4m3fn else "int4"

    @property
    def nbytes(self) -> int:
        """Of codes, scales and zeros."""
        return self.codes.nbytes + self.scales.nbytes + (self.zeros.nbytes if self.zeros is not None else 0)

    @property
    def device(self) -> str:
        """The device, as text."""
        return self.codes.device

    def matmul(
        self, x: Any, /, *, bias: Any = None, out: Any = None, stream: Any = None, variant: Any = None,
        device: str | None = None,
    ) -> Any:  # fmt: skip
        """x (..., k) times the weight, plus bias (n,): (..., n), dtype of x, as `tc.packed_gemm`.

        x: an array of float32, float16 or bfloat16; TypeError for a list or a number, which has no dtype to compute in.
        """
        if isinstance(x, type) or not hasattr(x, "shape") or not hasattr(x, "reshape"):
            raise TensorCraftTypeError(
                f"PackedWeight.matmul: x must be an array of float32, float16 or bfloat16, got {type(x).__name__}; "
                "tc.asarray(x, dtype=tc.float32) makes one"
            )
        shape = tuple(x.shape)
        y = self._product(_ops.packed_gemm, x, bias=bias, out=out, stream=stream, variant=variant, device=device)
        return y if len(shape) == 2 else y.reshape((*shape[:-1], self.shape[1]))

    def _product(self, call: Callable[..., Any], x: Any, *, out: Any, **options: Any) -> Any:
        """`call` with packed_gemm's arguments: x has two axes, and so has the result."""
        shape = tuple(x.shape)
        if len(shape) != 2:
            if out is not None:
                raise TensorCraftValueError(f"PackedWeight.matmul: out needs x of two axes, got shape {shape}")
            x = x.reshape((-1, shape[-1]) if shape else (1, 1))
        return call(
            x, self.codes, self.scales, zeros=self.zeros, tensor_scale=self.tensor_scale, out=out, **options
        )

    def __rmatmul__(self, x: Any) -> Any:
        return self.matmul(x)

    def unpack(self, dtype: Any = DType.float32) -> Tensor:
        """Its elements, (k, n), computed on the host."""
        return native.unpack_weight(self.codes, self.scales, self.zeros, self.tensor_scale, dtype)

    def __array__(self, *args: Any, **options: Any) -> NoReturn:
        raise TensorCraftTypeError("PackedWeight: NumPy has no arrays of 4 bits; unpack() gives its elements")

    def __repr__(self) -> str:
        k, n = self.shape
        return f"PackedWeight(({k}, {n}), format={self.format!r}, group={self.group}, device={self.device!r})"


# Options of tc.gemm that packed_gemm has, or that allow a less exact product than it computes.
_TAKEN = ("bias", "accumulation", "precision", "allow_tf32")


def product(
    a: Any, w: PackedWeight, options: dict[str, Any], out: Any, stream: Any, variant: Any, device: str | None,
    call: Callable[..., Any] | None = None,
) -> Any:  # fmt: skip
    """What tc.gemm(a, w) calls, or `call` with packed_gemm's arguments."""
    for name, value in options.items():
        is_default = value is None or value is False or (name == "alpha" and value == 1)
        if is_default or name in _TAKEN or (name == "operands" and not value):
            continue
        if name == "out_dtype" and native.to_dtype(value) == dtype_of(a):
            continue
        raise Unsupported(
            f"gemm: {name}: a product with a PackedWeight takes bias, out, stream and variant, got {name}={value!r}; "
            "compute it by another call, or give b.unpack() in place of b"
        )
    if isinstance(a, list | tuple):
        a = asarray(a, dtype=DType.float32, device=w.device)
    common = {"bias": options["bias"], "out": out, "stream": stream, "variant": variant, "device": device}
    return w._product(call, a, **common) if call else w.matmul(a, **common)


def pack_weight(
    w: Any, /, *, format: Format = "int4", group: int | None = None, zero_points: bool | Literal["float"] = False
) -> PackedWeight:
    """Packs a weight (k, n) into 4 bits an element, once; the result is where w is.

    format: "int4": (code - 8) * scale, the scale amax / 7 of `group` neighbours along k (128); "mxfp4": e2m1 times a
    power of two of 32; "nvfp4": e2m1 times a float8_e4m3fn scale of 16 and a scale of all. Codes are rounded to nearest
    even. It computes on the host and waits.

    zero_points: of int4, for weights that lie to one side of 0. True: (code - zero) * scale with scale (max - min) / 15 and
    zero -min / scale of the group and 0, a byte more a group. "float": code * scale + zero with a float zero point, the
    minimum of the group, both float16, or float32 if float16 moved an element by more than 1/16 of a step. Weights that
    have 16 levels a group already, as GGUF's Q4_1, keep them.

    Raises ValueError: k is no multiple of the group, an element is not finite, or the format has another group or no
    zero points.
    """
    codes, scales, zeros, tensor_scale = native.pack_weight(w, format, group, zero_points)
    return PackedWeight(codes, scales, zeros, tensor_scale)


def pack_weight_from_gptq(
    qweight: Any, qzeros: Any, scales: Any, g_idx: Any = None, *, group: int | None = None, zeros_minus_one: bool = True
) -> PackedWeight:
    """A weight of 4 bits (k, n) from a checkpoint in the form that GPTQ programs write; the result is where qweight is.

    qweight: int32 (k / 8, n), a word has 8 neighbours along k, lowest bits first. qzeros: int32 (groups, n / 8), a word has
    the zero points of 8 columns, lowest bits first. scales: (groups, n), float16, bfloat16 or float32. Weights are
    (code - zero) * scale, and nothing is rounded. zeros is None if all zero points are 8.

    g_idx: int32 (k,), the group of each row. group: what the checkpoint's configuration says, checked against scales; -1 is
    one group for a column.
    zeros_minus_one: the first format ("gptq") stores zero points less 1, so a stored 15 is 16; "gptq_v2" does not.

    Raises ValueError: shapes do not fit each other or 4 bits, or the group is no multiple of 16. NotImplementedError: rows
    are in the order of activations (desc_act), so those of a group are no neighbours.
    """
    parts = native.pack_weight_from_gptq(qweight, qzeros, scales, g_idx, group, bool(zeros_minus_one))
    return PackedWeight(*parts)


def pack_weight_from_awq(qweight: Any, qzeros: Any, scales: Any, *, group: int | None = None) -> PackedWeight:
    """A weight of 4 bits (k, n) from a checkpoint in the form that AWQ programs write; the result is where qweight is.

    qweight: int32 (k, n / 8), a word has 8 columns, from the lowest bits on 0 2 4 6 1 3 5 7. qzeros: int32 (groups, n / 8),
    likewise. scales: (groups, n), float16, bfloat16 or float32. Weights are (code - zero) * scale, and nothing is rounded.
    zeros is None if all zero points are 8. group: what the checkpoint's configuration says, checked against scales; -1 is one
    group for a column.

    Raises ValueError: shapes do not fit each other or 4 bits, or the group is no multiple of 16.
    """
    return PackedWeight(*native.pack_weight_from_awq(qweight, qzeros, scales, group))


class PackedConvWeight:
    """The filters of a convolution as its fast kernels read them, for `tc.conv2d(x, w)` and what else takes arrays.

    pack_conv_weight() makes one. It has the shape of the filters it was made of, in their layout; in memory the channels of
    a tap lie side by side, and taps and filters have no gaps. `as_layout` is the same memory for calls of the other layout.
    """

    __slots__ = ("layout", "weight")
    weight: Tensor
    """The filters, in the layout."""
    layout: Layout
    """That of the calls which it fits."""

    def __init__(self, weight: Tensor, layout: Layout) -> None:
        self.weight, self.layout = weight, layout

    @property
    def shape(self) -> tuple[int, ...]:
        """(filters, channels / groups, rows, columns), or channels last."""
        return tuple(self.weight.shape)

    @property
    def dtype(self) -> DType:
        """Of the elements."""
        return self.weight.dtype

    @property
    def nbytes(self) -> int:
        """Of the memory."""
        return self.weight.nbytes

    @property
    def device(self) -> str:
        """The device, as text."""
        return self.weight.device

    def as_layout(self, layout: Layout) -> PackedConvWeight:
        """The same filters, in the same memory, for calls of that layout."""
        last = _is_last("PackedConvWeight.as_layout", layout)
        if layout == self.layout:
            return self
        return PackedConvWeight(self.weight.permute_dims((0, 2, 3, 1) if last else (0, 3, 1, 2)), layout)

    @property
    def __tensorcraft_tensor__(self) -> Tensor:
        return self.weight

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.weight.__array__(dtype, copy)

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        return self.weight.__dlpack__(*args, **kwargs)

    def __dlpack_device__(self) -> Any:
        return self.weight.__dlpack_device__()

    def __repr__(self) -> str:
        return (
            f"PackedConvWeight({self.shape}, dtype={self.dtype.name}, layout={self.layout!r}, device={self.device!r})"
        )


def pack_conv_weight(w: Any, /, *, layout: Layout = "nchw") -> PackedConvWeight:
    """Copies the filters of a convolution into the order in which its fast kernels read them, once.

    w is what `tc.conv2d` takes in that layout: (filters, channels / groups, rows, columns), or channels last; the result is
    where `tc.asarray(w)` is, and later changes of w are not seen. Filters of layout "nchw" have no fast kernel on a GPU
    unless they are packed.

    Raises TypeError: the dtype is not float32, float16 or bfloat16. Raises ValueError: another layout, or not 4 axes.
    """
    last = _is_last("pack_conv_weight", layout)
    x = asarray(w)
    if x.dtype not in (DType.float32, DType.float16, DType.bfloat16):
        raise TensorCraftTypeError(f"pack_conv_weight: w: expected float32, float16 or bfloat16, got {x.dtype.name}")
    if x.ndim != 4:
        axes = "filters, rows, columns, channels" if last else "filters, channels, rows, columns"
        raise TensorCraftValueError(f"pack_conv_weight: w: expected 4 axes, {axes}, got shape {tuple(x.shape)}")
    memory = (x if last else x.permute_dims((0, 2, 3, 1))).copy()
    return PackedConvWeight(memory if last else memory.permute_dims((0, 3, 1, 2)), layout)


def _is_last(what: str, layout: str) -> bool:
    if layout not in ("nchw", "nhwc"):
        raise TensorCraftValueError(f"{what}: layout must be one of nchw, nhwc; got {layout}")
    return layout == "nhwc"
