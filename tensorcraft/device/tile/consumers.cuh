// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by kernels whose blocks have warpgroups that multiply, the consumers, and one or two that
// copy.
#include "tensorcraft/device/ptx/barrier.cuh"
#include "tensorcraft/device/ptx/control.cuh"
#include "tensorcraft/device/warpgroup.h"

namespace tensorcraft {

// The warpgroup of a thread, the same number for all threads of a warp to the compiler too.
TC_DEVICE int warpgroup_number() {
  return __shfl_sync(0xffffffffu, int(threadIdx.x) / kWarpgroup, 0);
}

// Barriers of a block: one for each consumer, one where all meet, and one for each to take turns.
inline constexpr int kOneConsumer = 1, kAllConsumers = 4, kTurns = 5;

// Registers of a thread that copies go to those that multiply. Beside one consumer and one producer
// all have enough.
template <int kConsumers, int kProducers = 1>
TC_DEVICE void give_registers() {
  constexpr int kLeast = kProducers == 2 ? 56 : kConsumers == 2 ? 40 : 32;
  if constexpr (kConsumers + kProducers > 2) ptx::setmaxnreg_dec<kLeast>();
}
template <int kConsumers, int kProducers = 1>
TC_DEVICE void take_registers() {
  constexpr int kMost = kConsumers == 3 ? 160 : kProducers == 1 ? 232 : kConsumers == 2 ? 200 : 240;
  if constexpr (kConsumers + kProducers > 2) ptx::setmaxnreg_inc<kMost>();
}

// Whose turn it is: consumer i waits at barrier kTurns + i, where the one before it arrives.
template <int kConsumers>
struct Turns {
  static constexpr int kThreads = 2 * kWarpgroup;
  TC_DEVICE static void wait(int group) { ptx::bar_sync(kTurns + group, kThreads); }
  TC_DEVICE static void pass(int group) {
    ptx::bar_arrive(kTurns + (group + 1 == kConsumers ? 0 : group + 1), kThreads);
  }
};

}  // namespace tensorcraft
