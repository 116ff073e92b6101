// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/layout.hpp"
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/value.hpp"
#include "tensorcraft/ops/gemm/config_plan.h"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// How float32 products are computed. standard: in float32, or in tf32 if allow_tf32 or the
// configuration says so; tf32: operands may be rounded to it, an error of 2^-10 of the sum of
// magnitudes; three_tf32: as three products of tf32 parts, 2^-20.
enum class Precision : int { standard, tf32, three_tf32 };

// What gemm() takes besides arrays that it needs.
struct GemmOptions {
  std::optional<TensorView> c = {};  // [..., m, n], dtype of the result; batch dimensions broadcast
  float alpha = 1;                   // of the product
  std::optional<float> beta = {};    // 1 if c is given; c is not read if it is 0
  std::optional<TensorView> bias = {};            // [n], dtype of a
  Activation activation = Activation::none;       // applied last
  bool transpose_a = false, transpose_b = false;  // a is [..., k, m], b is [..., n, k]
  std::optional<DType> out_dtype = {};            // dtype of a (the default) or float32
  std::optional<bool> allow_tf32 = {};            // may round float32 operands to tf32; none: as
                                                  // the configuration says, else no
  Precision precision = Precision::standard;      // of float32 products
  std::optional<GemmConfig> config = {};          // what of the kernel's tile is fixed; on the CPU
                                                  // it has no effect
  std::string_view variant = {};                  // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};           // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The options of a product whose operands are given as [k, m] or [n, k] if they are columns.
constexpr GemmOptions with_layout(MemoryLayout layout, GemmOptions options = {}) {
  options.transpose_a = layout == MemoryLayout::COL_ROW || layout == MemoryLayout::COL_COL;
  options.transpose_b = layout == MemoryLayout::ROW_COL || layout == MemoryLayout::COL_COL;
  return options;
}

// out = activation(alpha a b + beta c + bias) for a [..., m, k] and b [..., k, n] of one dtype:
// float32, float16 or bfloat16. Leading dimensions broadcast as in NumPy. Any strides; sizes may be
// 0, and k = 0 gives activation(beta c + bias). Sums are float32, rounded once to the dtype of out.
// float32 operands are not rounded unless precision or allow_tf32, given or configured. Kinds: type
// for a dtype, value for a shape, an overlap of out with an input or an allow_tf32 that contradicts
// precision, unsupported for a config that no variant has.
void gemm(const TensorView& out, const TensorView& a, const TensorView& b,
          const GemmOptions& options = {});
Tensor gemm(const TensorView& a, const TensorView& b, const GemmOptions& options = {});

}  // namespace tensorcraft
