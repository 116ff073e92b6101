// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

#include <algorithm>

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

// The blocks, at most `wanted`, of so many threads that a multiprocessor has room for; all of them
// if it does not say how many threads it takes. 0 leaves the choice to the compiler.
constexpr int blocks_with_room(int wanted, int threads, int threads_per_sm) {
  return threads_per_sm ? std::min(wanted, threads_per_sm / threads) : wanted;
}

// Is a null or other address a multiple of 16?
inline bool is_vector_aligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

}  // namespace tensorcraft::op
