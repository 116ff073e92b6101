// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft::kernel {

// What counts the elements of a problem: 32 bits if they suffice, for cheaper divisions.
template <bool wide>
using Count = Select<wide, int64_t, uint32_t>;

// The place along an axis of `size` that an index means, which counts from the end if it is
// negative; -1 outside.
TC_HOST_DEVICE constexpr int64_t position(int64_t index, int64_t size) {
  const int64_t at = index < 0 ? index + size : index;
  return at >= 0 && at < size ? at : -1;
}

}  // namespace tensorcraft::kernel
