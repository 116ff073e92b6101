// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#if !TC_PTX
#include "tensorcraft/device/host.h"
#endif

namespace tensorcraft {

// The one shared-memory struct of a kernel, of a size known at compile time (up to 48 KiB). S must
// be a type of the kernel's own file: two calls with one S give the same memory.
template <class S>
TC_DEVICE S& static_shared() {
#if TC_PTX
  __shared__ S s;
  return s;
#else
  static const char key = 0;
  return *static_cast<S*>(simt::static_shared(&key, sizeof(S), alignof(S)));
#endif
}

// Such a struct in the dynamic shared memory that the launch asks for (sizeof(S) bytes at least),
// at a 1024-byte boundary as the swizzled layouts need.
template <class S>
TC_DEVICE S& dynamic_shared() {
  static_assert(alignof(S) <= 1024, "dynamic shared memory is aligned to 1024 bytes");
#if TC_PTX
  extern __shared__ __align__(1024) unsigned char tc_dynamic_shared[];
  return *reinterpret_cast<S*>(tc_dynamic_shared);
#else
  return *static_cast<S*>(simt::dynamic_shared(sizeof(S)));
#endif
}

}  // namespace tensorcraft
