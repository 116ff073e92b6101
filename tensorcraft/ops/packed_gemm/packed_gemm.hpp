// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of packed_gemm() besides the arrays that it needs.
struct PackedGemmOptions {
  // (n, k / group), of int4: uint8, the codes that mean 0; or of the dtype of scales, what code 0
  // means.
  std::optional<TensorView> zeros = {};
  std::optional<TensorView> bias = {};   // (n,), dtype of a
  float tensor_scale = 1;                // of nvfp4: a factor of every weight
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out = a W^T + bias with a: (m, k), float32, float16 or bfloat16, any strides, and W: (n, k) in 4
// bits, its codes: (n, k / 2) uint8, contiguous, two a byte in the order of pack4.h. What a code
// means is said by the dtype of scales: (n, k / group), contiguous:
//   a float of 16 or 32 bits   int4: (code - zero) * scale; zero is 8 without zeros; with zeros of
//                              the dtype of scales code * scale + zero
//   uint8                      mxfp4: e2m1(code) * 2^(scale - 127), group 32 as the format has it
//   float8_e4m3fn              nvfp4: e2m1(code) * scale * tensor_scale, group 16 as the format has
//   it
// k is a multiple of 16, and so is group. out: (m, n), dtype of a. Weights are exact, sums in
// float32. Results repeat to the bit; those of a row are the same beside any others for m up to 8,
// for m from 9 to 16, and for m above, but may differ from one of these to another.
void packed_gemm(const TensorView& out, const TensorView& a, const TensorView& codes,
                 const TensorView& scales, const PackedGemmOptions& options = {});
Tensor packed_gemm(const TensorView& a, const TensorView& codes, const TensorView& scales,
                   const PackedGemmOptions& options = {});

}  // namespace tensorcraft
