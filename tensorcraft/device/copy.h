// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel {

// The params of copy.cuh's step.
struct CopyParams {
  const void* from;
  void* to;
  int64_t count;
  RowMap from_map, to_map;
};
struct CopyConfig {
  int threads = 256;
};

}  // namespace tensorcraft::kernel
