// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/attention/params.h"
#include "tensorcraft/device/key_parts.h"

namespace tensorcraft::kernel::attention {

using namespace attention_tiles;

// The second step of split_kv.
using CombineConfig = tensorcraft::CombineConfig;
// The first step of rungs on wgmma if inputs are float8.
struct TransposeConfig {
  int head_dim = 128;
  int block_n = 128;
  int threads = 128;
};

TC_HOST_DEVICE KeyParts key_parts(const Params& p) {
  return {p.parts, int64_t(p.batch) * p.heads * p.seq_q, p.num_parts, p.v_dim, p.part_run};
}

// Bytes of dynamic shared memory that a rung lays out.
TC_HOST_DEVICE constexpr int tiled_shared_bytes(const Config& c) {
  const int rows = (c.block_m + 2 * c.block_n) * (c.head_dim + 4);
  return 4 * (rows + c.block_m * (c.block_n + 4));
}
// The output leaves from the memory of the queries.
TC_HOST_DEVICE constexpr int query_dim(const Config& c) {
  return c.head_dim > dim_of_values(c) ? c.head_dim : dim_of_values(c);
}
TC_HOST_DEVICE constexpr int tensor_core_shared_bytes(const Config& c) {
  return 2 * (c.block_m * query_dim(c) + 2 * c.block_n * (c.head_dim + dim_of_values(c)));
}

}  // namespace tensorcraft::kernel::attention
