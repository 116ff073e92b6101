// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cp_async.cuh"

namespace tensorcraft {

// A ring of stages in shared memory that cp.async fills while a block computes. Commit, wait and
// barrier belong together (a wait covers the copies of its own thread only), so they stand here and
// nowhere else. All threads of the block call
//   fill      kStages - 1 times at first, then once after each `next`
//   next      before they read a stage; it also ends the block's use of the stage before it
//   finish    before shared memory serves another purpose
// If no tile is left, the copy given to `fill` does nothing, and the count stays right.
template <int kStages>
struct CopyRing {
  static_assert(kStages >= 2, "one stage is read while another is filled");
  int to_fill = 0, to_read = 0;

  // copy(stage) starts the calling thread's copies into a stage that is no longer read.
  template <class Copy>
  TC_DEVICE void fill(const Copy& copy) {
    copy(to_fill);
    ptx::cp_async_commit_group();
    to_fill = to_fill + 1 == kStages ? 0 : to_fill + 1;
  }

  // The oldest stage that was filled and not yet returned, complete for every thread.
  TC_DEVICE int next() {
    ptx::cp_async_wait_group<kStages - 2>();
    __syncthreads();
    const int stage = to_read;
    to_read = to_read + 1 == kStages ? 0 : to_read + 1;
    return stage;
  }

  // No copy is in flight and no thread reads a stage.
  TC_DEVICE static void finish() {
    ptx::cp_async_wait_group<0>();
    __syncthreads();
  }
};

}  // namespace tensorcraft
