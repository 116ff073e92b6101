// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/params.h"

#include <array>

// What the SIMT device has of rungs with an expression; host only.
namespace tensorcraft::kernel::gemm {

// Any expression, without a gate: what else is done is read, as in gemm_simt.cpp. By row, then by
// column, which serves no bias too.
constexpr std::array<Config, 2> expressions(Config config) {
  config.expression = Expression::interpreted;
  config.has_c = config.has_scales = 1;
  std::array<Config, 2> all{config, config};
  all[0].has_bias = kByRow;
  all[1].has_bias = kByColumn;
  return all;
}

}  // namespace tensorcraft::kernel::gemm
