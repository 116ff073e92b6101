// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/layout.hpp"
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/checks/gate.hpp"
#include "tensorcraft/op/checks/named_operand.hpp"
#include "tensorcraft/op/value.hpp"
#include "tensorcraft/ops/gemm/choice/config_plan.h"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// How float32 products are computed. standard: in float32, or in tf32 if allow_tf32 or the
// configuration says so; tf32: operands may be rounded to it, an error of 2^-10 of the sum of
// magnitudes; three_tf32: as three products of tf32 parts, 2^-20.
enum class Precision : int { standard, tf32, three_tf32 };

// Where tensor cores sum products of float8, of which they keep 13 bits. promoted: the sums of 128
// elements along k leave them and are added in float32. fast: all stay there. Products with scales
// by block are promoted.
enum class Accumulation : int { promoted, fast };

// Arguments of gemm() besides the arrays that it needs.
struct GemmOptions {
  std::optional<TensorView> c = {};  // [..., m, n], dtype of the result; batch dimensions broadcast
  float alpha = 1;                   // of the product
  std::optional<float> beta = {};    // 1 if c is given; c is not read if it is 0
  std::optional<TensorView> bias = {};            // [n], or [m, 1]; dtype of a, or of the result
                                                  // if a has 8 bits, float32 if that has too
  Activation activation = Activation::none;       // after the additions
  bool transpose_a = false, transpose_b = false;  // a is [..., k, m], b is [..., n, k]
  // Factors of the product in float32: one number, or one a row, [m, 1], and one a column, [n] or
  // [1, n]. Of float8 also one for 128 elements of a row of a, and one for 128 of a column of b or
  // for squares of 128 x 128: [m, blocks], and [blocks, n] or [blocks, squares]. What has two
  // dimensions lies as its operand does, so beside a transposed one it is transposed, as quantize()
  // gives it for the operand.
  std::optional<TensorView> a_scale = {}, b_scale = {};
  // These values mean 0 in an int8 a or b: int32, in the shapes of scales of rows and columns. The
  // product is that of a - a_zero and b - b_zero.
  std::optional<TensorView> a_zero = {}, b_zero = {};
  Accumulation accumulation = Accumulation::promoted;  // of float8
  Gate gated = Gate::none;  // b is [..., k, 2 n], gates first: gate(left) right of a b
  // Last, an expression of all this, x, and of operands by their names; gemm() with operands sets
  // both.
  std::optional<std::string_view> epilogue = {};
  op::NamedValues operands = {};  // the arrays and numbers that the epilogue names
  // dtype of a (the default), float32, of 16 bits if a is, or of 8 bits; of float8 bfloat16 (the
  // default), float16, float32 or float8; of int8 int32 (the default), one of 16 or 32 bits or int8
  std::optional<DType> out_dtype = {};
  // Factor of a result of 8 bits: one number, float32, read when the kernel runs. What it gives is
  // rounded to nearest even and saturated; a NaN is NaN in float8 and 0 in int8.
  std::optional<TensorView> out_scale = {};
  std::optional<bool> allow_tf32 = {};        // may round float32 operands to tf32; none: as
                                              // the configuration says, else no
  Precision precision = Precision::standard;  // of float32 products
  bool batch_invariant = false;  // a row's bits depend on neither m nor the leading dimensions
  std::optional<GemmConfig> config = {};  // what of the kernel's tile is fixed; on the CPU
                                          // it has no effect
  std::string_view variant = {};          // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};   // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The options of a product whose operands are given as [k, m] or [n, k] if they are columns.
constexpr GemmOptions with_layout(MemoryLayout layout, GemmOptions options = {}) {
  options.transpose_a = layout == MemoryLayout::COL_ROW || layout == MemoryLayout::COL_COL;
  options.transpose_b = layout == MemoryLayout::ROW_COL || layout == MemoryLayout::COL_COL;
  return options;
}

// out = activation(alpha a_scale b_scale a b + beta c + bias) for a [..., m, k] and b [..., k, n]
// of one dtype: float32, float16, bfloat16, float8_e4m3fn, float8_e5m2 or int8. Leading dimensions
// broadcast as in NumPy. Any strides; sizes may be 0, and k = 0 gives activation(beta c + bias).
// Sums are float32, rounded once to the dtype of out; of int8 they are int32, which wraps, and an
// int32 out is those sums alone. Gated, the left half of the columns is activated and multiplies
// the right half, and bias and b_scale by column are [2 n]; a gated product takes no c and no other
// activation. If batch_invariant, the variant, its tile and the order of every sum are the same
// for every m and batch: a row of a gives the same bits in any company, and few rows are slower.
// float32 operands are not rounded unless precision or allow_tf32, given or
// configured. Kinds: type for a dtype, value for a shape, an overlap of out with an input or an
// allow_tf32 that contradicts precision, unsupported for a config that no variant has.
void gemm(const TensorView& out, const TensorView& a, const TensorView& b,
          const GemmOptions& options = {});
Tensor gemm(const TensorView& a, const TensorView& b, const GemmOptions& options = {});

// Likewise with an expression of the finished sum, x, in the language of elementwise():
//   gemm(a, b, "x * s + r", {{"s", s}, {"r", r}}, {.activation = Activation::gelu})
// x is float32, and what the expression gives is rounded once to the dtype of out. Up to seven
// arrays of any dtype broadcast to the shape of out. On a GPU the text is compiled into the kernel.
// Kind value or type with a caret below the column if the text is wrong.
void gemm(const TensorView& out, const TensorView& a, const TensorView& b,
          std::string_view epilogue, NamedOperands operands, const GemmOptions& options = {});
Tensor gemm(const TensorView& a, const TensorView& b, std::string_view epilogue,
            NamedOperands operands, const GemmOptions& options = {});

}  // namespace tensorcraft
