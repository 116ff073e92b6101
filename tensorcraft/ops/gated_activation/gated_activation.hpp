// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/checks/gelu_approximation.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of silu_and_mul() besides the arrays that it needs.
struct SiluAndMulOptions {
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Arguments of gelu_and_mul() besides the arrays that it needs.
struct GeluAndMulOptions {
  GeluApproximation approximate = GeluApproximation::none;  // which formula
  std::string_view variant = {};                            // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out = silu(x[..., :d]) * x[..., d:]. x: shape (..., 2d), any strides; float32, float16 or
// bfloat16; computed in float32 and rounded once. out: (..., d), dtype of x; apart from x.
void silu_and_mul(const TensorView& out, const TensorView& x,
                  const SiluAndMulOptions& options = {});
Tensor silu_and_mul(const TensorView& x, const SiluAndMulOptions& options = {});

// out = gelu(x[..., :d]) * x[..., d:]; otherwise the same.
void gelu_and_mul(const TensorView& out, const TensorView& x,
                  const GeluAndMulOptions& options = {});
Tensor gelu_and_mul(const TensorView& x, const GeluAndMulOptions& options = {});

}  // namespace tensorcraft
