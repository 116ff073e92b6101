// SPDX-License-Identifier: Apache-2.0
// The host half of the launchers from the installed headers alone: nothing here needs the library.
#include "tensorcraft/cuda/kernel_config.hpp"
#include "tensorcraft/kernels/arguments.hpp"
#include "tensorcraft/ops/gemm/plan.h"
#include "tensorcraft/ops/attention/plan.h"
#include "tensorcraft/ops/cumulative_sum/plan.h"
#include "tensorcraft/ops/elementwise/plan.h"
#include "tensorcraft/ops/embedding/plan.h"
#include "tensorcraft/ops/gather/plan.h"
#include "tensorcraft/ops/l2_normalize/plan.h"
#include "tensorcraft/ops/masked_mean/plan.h"
#include "tensorcraft/ops/norm/plan.h"
#include "tensorcraft/ops/pad/plan.h"
#include "tensorcraft/ops/permute/plan.h"
#include "tensorcraft/ops/scatter/plan.h"
#include "tensorcraft/ops/softmax/plan.h"
#include "tensorcraft/ops/topk/plan.h"

#include <string_view>

int main() {
  namespace k = tensorcraft::kernel;
  alignas(16) static float row[1024];
  const auto params = k::softmax::contiguous_params(row, row, 1, 1024);
  const k::softmax::Choice held = k::softmax::in_registers(params, {.element_bytes = 4}, {});
  if (held.start.config.vector != 4) return 1;
  try {
    tensorcraft::kernels::validate_alignment<float, 4>(row + 1);
    return 1;
  } catch (const std::invalid_argument& error) {
    return error.what() == std::string_view("Pointer not aligned for vectorized access") ? 0 : 1;
  }
}
