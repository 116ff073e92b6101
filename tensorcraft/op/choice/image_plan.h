// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/window.h"
#include "tensorcraft/op/choice/rung.h"

// How plan headers look at images; host only, like op/choice/rung.h.
namespace tensorcraft::op {

inline bool is_aligned(const void* address, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(address) % uintptr_t(bytes) == 0;
}
// Can one access take `vector` channels of a place, wherever it is? A null image has no places.
inline bool has_channel_vectors(const void* image, const ImageStrides& at, int64_t vector,
                                int element_bytes) {
  return !image || (at.channel == 1 && at.sample % vector == 0 && at.row % vector == 0 &&
                    at.column % vector == 0 && is_aligned(image, vector * element_bytes));
}

}  // namespace tensorcraft::op
