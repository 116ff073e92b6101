// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/core/layout.hpp"

#include <array>
#include <cstdint>
#include <vector>

// What products have to cover, as data: benchmarks and tests walk over it.
namespace tensorcraft {

// What a product is part of. Gradients are out of scope.
enum class ComputeMode {
  STANDARD_DENSE,
  MOE_GROUPED,
  MASKED_COMPUTATION,
  ATTENTION_KERNELS,
  GRADIENT_COMPUTATION,
};

struct RequirementMatrix {
  std::vector<PrecisionFormat> precisions;
  std::vector<MemoryLayout> layouts;
  std::vector<ComputeMode> modes;
  std::vector<std::array<int64_t, 3>> sizes;  // m, n, k
  std::vector<int> architectures;             // compute capabilities, 90 for 9.0
  double ratio = 0;                           // of the vendor library's speed
};

// Every format, layout and mode, cubes of 64 to 16384, from Ampere to Hopper.
inline RequirementMatrix define_comprehensive_requirements() {
  RequirementMatrix matrix{
      .precisions = {PrecisionFormat::FP8_E4M3, PrecisionFormat::FP8_E5M2, PrecisionFormat::BF16,
                     PrecisionFormat::FP16, PrecisionFormat::FP32},
      .layouts = {MemoryLayout::ROW_COL, MemoryLayout::COL_COL, MemoryLayout::ROW_ROW,
                  MemoryLayout::COL_ROW},
      .modes = {ComputeMode::STANDARD_DENSE, ComputeMode::MOE_GROUPED,
                ComputeMode::MASKED_COMPUTATION, ComputeMode::ATTENTION_KERNELS},
      .sizes = {},
      .architectures = {80, 86, 89, 90},
      .ratio = 0.9};
  for (int64_t size = 64; size <= 16384; size *= 2) matrix.sizes.push_back({size, size, size});
  return matrix;
}

}  // namespace tensorcraft
