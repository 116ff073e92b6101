// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/quantize/params.h"

#include <optional>

namespace tensorcraft::kernel::quantize {

// A checked call of quantize or, with x the quantised elements, of dequantize. x and out have an
// axis at least. scales and zero_point are read if `given`, else written.
struct Problem {
  TensorView out, x;
  std::optional<TensorView> scales, zero_point;
  Tiles tiles;
  bool given, asymmetric, power_of_two, whole_tensor;
};

// Host variants.
void cpu(const Problem& problem);
void reference(const Problem& problem);
void dequantize_cpu(const Problem& problem);
void dequantize_reference(const Problem& problem);

}  // namespace tensorcraft::kernel::quantize
