// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#if !TC_PTX
#include "tensorcraft/device/host.h"
#endif

namespace tensorcraft::ptx {

// cvta.to.shared: the 32-bit shared-memory address of a generic pointer into shared memory.
TC_DEVICE uint32_t cvta_to_shared(const void* pointer) {
#if TC_PTX
  return uint32_t(__cvta_generic_to_shared(pointer));
#else
  return simt::shared_address(pointer);
#endif
}

}  // namespace tensorcraft::ptx
