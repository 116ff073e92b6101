// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

// What the plan headers of operators (ops/<op>/plan.h) are written in. They are plain C++ of the
// host without types of the library: both the library and the launchers of kernels/ choose by them.
namespace tensorcraft::op {

inline constexpr int64_t kMaxBlocks = (int64_t(1) << 31) - 1;  // of a grid

// How a rung is started for one problem: config.threads threads in each of `blocks` blocks.
template <class Config>
struct LaunchPlan {
  Config config;
  int64_t blocks = 0;
  int min_blocks = 1;    // blocks per SM in the launch bounds
  int shared_bytes = 0;  // dynamic shared memory
  int cluster = 1;       // blocks of a cluster
};

// Is a null or other address a multiple of 16?
inline bool is_vector_aligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

}  // namespace tensorcraft::op
