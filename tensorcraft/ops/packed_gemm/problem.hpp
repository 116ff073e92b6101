// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/packed_gemm/params.h"

#include <optional>

namespace tensorcraft::kernel::packed_gemm {

struct Problem {  // a checked call
  TensorView out, a, codes, scales;
  std::optional<TensorView> zeros, bias;
  float tensor_scale;
  // Do zeros say what code 0 means, and not which code means 0?
  bool has_offsets() const { return zeros && zeros->dtype() != DType::uint8; }
};

// Do scales of this dtype belong to int4?
constexpr bool is_int4_scale(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

Params params(const Problem& q);

// `count` rows of W from `first` on, as float: k each. scales: the dtype.
void unpack_rows(const Params& p, DType scales, int64_t first, int64_t count, float* to);

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::packed_gemm
