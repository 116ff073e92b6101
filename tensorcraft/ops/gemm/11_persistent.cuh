// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks stay and take tile after tile; the blocks of a cluster bring shared operands once.
//
// The producer goes on to the next tile while the consumers bring the last one to D, and the copy
// engine stores it while they multiply, so filling the ring and storing cost time once a block
// instead of once a tile. With ping_pong each consumer has a tile of its own: one multiplies while
// the other converts and stores, which hides that too, for half as many sums a tile. In a cluster
// of two, each block brings half of the operand that both read, to both:
//   128 + 256 lines of L2 a step become 128 + 128.
// It demands what wgmma does.
#include "tensorcraft/ops/gemm/parts/schedule.cuh"

namespace tensorcraft::kernel::gemm {

struct Persistent {
  static constexpr bool begins_itself = true;
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const WgmmaParams<C>& p) {
    run_tiles<T, Out, C>(p);
  }
};

// persistent by the name for float operands, which says that the copy engine rounds them.
struct PersistentTf32 {
  static constexpr bool begins_itself = true;
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const WgmmaParams<C>& p) {
    Persistent::run<T, Out, C>(p);
  }
};
// Runs on float operands in two parts.
struct Persistent3xtf32 {
  static constexpr bool begins_itself = true;
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const WgmmaParams<C>& p) {
    static_assert(C.parts == kTf32Parts);
    Persistent::run<T, Out, C>(p);
  }
};

}  // namespace tensorcraft::kernel::gemm
