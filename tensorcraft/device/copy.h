// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel {

// What the step of copy.cuh is given.
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
