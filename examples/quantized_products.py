# SPDX-License-Identifier: Apache-2.0
"""A layer of two products in float8 and in int8: quantise, multiply, and how far that is from float32."""

import numpy as np

import tensorcraft as tc

random = np.random.default_rng(0)
x = tc.asarray(random.standard_normal((16, 256), dtype=np.float32))
up, down = (tc.asarray(random.standard_normal(shape, dtype=np.float32) / 16) for shape in ((512, 256), (256, 512)))
exact = tc.gemm(tc.gemm(x, up, transpose_b=True, activation="relu"), down, transpose_b=True)


def error(y: tc.Tensor) -> float:
    """The difference from float32, as a part of its size."""
    return float(np.linalg.norm(np.asarray(y) - np.asarray(exact)) / np.linalg.norm(np.asarray(exact)))


# float8 with one scale each. The hidden layer leaves the first product as float8: its scale is known from a sample.
a, a_scale = tc.quantize(x, scheme="tensor")
b, b_scale = tc.quantize(up, scheme="tensor")
c, c_scale = tc.quantize(down, scheme="tensor")
hidden_scale = tc.quantize(tc.gemm(x, up, transpose_b=True, activation="relu"), scheme="tensor")[1]
hidden = tc.gemm(a, b, transpose_b=True, a_scale=a_scale, b_scale=b_scale, activation="relu",
                 out_dtype=tc.float8_e4m3fn, out_scale=1 / hidden_scale)  # fmt: skip
y = tc.gemm(hidden, c, transpose_b=True, a_scale=hidden_scale, b_scale=c_scale, out_dtype=tc.float32)
print("float8, one scale each:", hidden.dtype, f"{error(y):.3f}")

# int8 with a scale for each row and column, and a zero point for what relu leaves, which has no negative numbers.
a, a_scale = tc.quantize(x, dtype=tc.int8, scheme="token")
b, b_scale = tc.quantize(up, dtype=tc.int8, scheme="token")
c, c_scale = tc.quantize(down, dtype=tc.int8, scheme="token")
wide = tc.gemm(a, b, transpose_b=True, a_scale=a_scale, b_scale=b_scale, activation="relu",
               out_dtype=tc.float32)  # fmt: skip
codes, scale, zero = tc.quantize(wide, dtype=tc.int8, scheme="tensor", asymmetric=True)
y = tc.gemm(codes, c, transpose_b=True, a_scale=scale, a_zero=zero, b_scale=c_scale, out_dtype=tc.float32)
print("int8, rows and columns:", codes.dtype, f"{error(y):.3f}")
sums = tc.gemm(codes, c, transpose_b=True, a_zero=zero)  # exact
print("int8, sums alone:", sums.dtype, int(np.abs(np.asarray(sums)).max()))
