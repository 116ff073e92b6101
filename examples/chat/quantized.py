# SPDX-License-Identifier: Apache-2.0
"""Weights of 8 and 4 bits, which a product takes as they are."""

from typing import Literal

import numpy as np

import tensorcraft as tc

Kind = Literal["fp8", "int8", "int4"]
CODES: dict[str, tc.DType] = {"fp8": tc.float8_e4m3fn, "int8": tc.int8}


class WeightOfBytes:
    """A matrix (n, k) in 8 bits with a scale for each row; what it multiplies becomes 8 bits on the way, by row too.

    The steps of int8 are as wide for small numbers as for the largest of the row. So 64 neighbours are mixed first, which
    spreads a large one over all of them: (x H) (w H)' = x w' for any H whose columns are unit vectors across each other.
    """

    def __init__(self, weight: tc.Tensor, dtype: tc.DType) -> None:
        self.mixer = mixer(weight) if dtype == tc.int8 else None
        self.codes, scales = tc.quantize(self.mixed(weight), dtype=dtype, scheme="token")
        self.scales = scales.reshape((-1,))
        self.nbytes = self.codes.nbytes + self.scales.nbytes

    def mixed(self, x: tc.Tensor, batch_invariant: bool = False) -> tc.Tensor:
        if self.mixer is None:
            return x
        rows = x.reshape((-1, self.mixer.shape[0]))
        return tc.gemm(rows, self.mixer.astype(x.dtype), batch_invariant=batch_invariant).reshape(x.shape)

    def matmul(self, x: tc.Tensor, gated: Literal["silu"] | None = None, batch_invariant: bool = False) -> tc.Tensor:
        """x times the matrix's transpose, in the dtype of x: sums of codes, times both scales."""
        codes, scales = tc.quantize(self.mixed(x, batch_invariant), dtype=self.codes.dtype, scheme="token")
        return tc.gemm(codes, self.codes, transpose_b=True, a_scale=scales, b_scale=self.scales, gated=gated,
                       out_dtype=x.dtype, batch_invariant=batch_invariant)  # fmt: skip


def mixer(weight: tc.Tensor) -> tc.Tensor:
    """Hadamard's matrix, of the largest power of two up to 64 that divides k: a sum of all with as many signs as not."""
    k = weight.shape[1]
    signs = np.ones((1, 1), np.float32)
    while len(signs) < 64 and k % (2 * len(signs)) == 0:
        signs = np.block([[signs, signs], [signs, -signs]])
    return tc.asarray(signs / np.sqrt(len(signs), dtype=np.float32), device=weight.device)


class WeightOfNibbles:
    """A matrix (n, k) in 4 bits with a scale and a float zero point for 32 neighbours, as the package's file has it."""

    def __init__(self, weight: tc.Tensor) -> None:
        self.packed = tc.pack_weight(weight.T, group=32, zero_points="float")
        self.nbytes = self.packed.nbytes

    def matmul(self, x: tc.Tensor, gated: Literal["silu"] | None = None, batch_invariant: bool = False) -> tc.Tensor:
        """x times the matrix's transpose. A row's bits are the same beside any others among up to 8, 9 to 16 or more rows,
        and not from one of these to another, whatever batch_invariant says."""
        y: tc.Tensor = self.packed.matmul(x)
        return tc.silu_and_mul(y) if gated else y


def takes_bits(name: str, kind: Kind, layers: int) -> bool:
    """Is this weight a matrix of a layer that `kind` makes small? Rounding to 8 bits harms the layers at either end most,
    so a tenth of them there stays as it is; 4 bits round nothing that a file has in 4."""
    if not name.startswith("layers.") or name.endswith("norm"):
        return False
    ends = 0 if kind == "int4" else layers // 10
    return ends <= int(name.split(".")[1]) < layers - ends


def quantized(weight: tc.Tensor, kind: Kind) -> WeightOfBytes | WeightOfNibbles:
    return WeightOfNibbles(weight) if kind == "int4" else WeightOfBytes(weight, CODES[kind])
