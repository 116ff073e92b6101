// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft::ptx {

#if TC_PTX
// cvta.to.shared: the 32-bit shared-memory address of a generic pointer into shared memory.
TC_DEVICE uint32_t cvta_to_shared(const void* pointer) {
  return uint32_t(__cvta_generic_to_shared(pointer));
}
#endif

}  // namespace tensorcraft::ptx
