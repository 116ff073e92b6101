// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/moe_combine/problem.hpp"

#include "tensorcraft/ops/moe_combine/00_naive.cuh"
#include "tensorcraft/ops/moe_combine/01_rows.cuh"

namespace tensorcraft::kernel::moe_combine {

simt::OperatorInstances instances() {
  return {{"naive", simt::list<Naive, simt::kDefaultConfig<Config>>(simt::Floats{})},
          {"rows", simt::list<Rows, simt::kDefaultConfig<Config>>(simt::Floats{})}};
}

}  // namespace tensorcraft::kernel::moe_combine
