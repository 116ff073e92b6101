// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: as many blocks as multiprocessors stay and take work after work. The producer goes
// on to the next queries while consumers finish, and the copy engine stores an output while they
// multiply, so starting, filling the rings and storing cost time once a block:
//   a block a work:  works x (start + first copies + tiles + store)
//   persistent:      start + first copies + works x tiles
// Under a causal limit the work of the last queries is long and that of the first short. Long ones
// come first, and a block that is done takes the next, so at the end only short ones are open.
// A work's requests are looked up once, by the producer, which hands it to the consumers.
// Demands what wgmma does.
#include "tensorcraft/device/attention/persist.cuh"
#include "tensorcraft/ops/attention/params.h"

namespace tensorcraft::kernel::attention {

struct Persistent {
  static constexpr bool begins_itself = true;
  template <class T, Config C>
  TC_DEVICE static void run(const HopperParams& p) {
    persist<T, C>(p, [&](Ring<T, C>& ring, int) { return Producer<T, C>(ring, p); });
  }
};

}  // namespace tensorcraft::kernel::attention
