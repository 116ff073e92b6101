// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/packed_gemm/params.h"
#include "tensorcraft/simt/instance.hpp"

#include <optional>

namespace tensorcraft::kernel::packed_gemm {

struct Problem {  // a checked call
  TensorView out, a, codes, scales;
  std::optional<TensorView> zeros, bias;
  float tensor_scale;
};

// Do scales of this dtype belong to int4?
constexpr bool is_int4_scale(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

Params params(const Problem& q);

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

simt::OperatorInstances instances();

}  // namespace tensorcraft::kernel::packed_gemm
