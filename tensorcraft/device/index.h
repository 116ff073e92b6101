// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft::kernel {

// The type that counts the elements of a problem: 32 bits if they suffice, for cheaper divisions.
template <bool wide>
using Count = Select<wide, int64_t, uint32_t>;

// The place along an axis of `size` that an index means, which counts from the end if it is
// negative; -1 outside.
TC_HOST_DEVICE constexpr int64_t position(int64_t index, int64_t size) {
  const int64_t at = index < 0 ? index + size : index;
  return at >= 0 && at < size ? at : -1;
}

// Element i of contiguous integers: int64_t if `wide`, else int32_t.
TC_HOST_DEVICE int64_t integer_at(const void* integers, int64_t i, int32_t wide) {
  if (wide) return static_cast<const int64_t*>(integers)[i];
  return static_cast<const int32_t*>(integers)[i];
}

TC_HOST_DEVICE constexpr int clamped(int64_t x, int low, int high) {
  return x < low ? low : x < high ? int(x) : high;
}

}  // namespace tensorcraft::kernel
