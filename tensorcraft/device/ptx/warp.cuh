// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#if !TC_PTX
#include "tensorcraft/device/host.h"
#endif

// Instructions of the lanes in `mask`, each of which must execute them with the same mask. Every
// lane of a redux gets the reduction of all values; a sum wraps (sm_80).
namespace tensorcraft::ptx {

// redux.sync.add.s32
TC_DEVICE int32_t redux_sync_add_s32(int32_t x, unsigned mask = 0xffffffffu) {
#if TC_PTX
  int32_t y;
  asm volatile("redux.sync.add.s32 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(mask));
  return y;
#else
  return int32_t(simt::redux(simt::Reduction::add, mask, uint32_t(x)));
#endif
}
// redux.sync.min.s32
TC_DEVICE int32_t redux_sync_min_s32(int32_t x, unsigned mask = 0xffffffffu) {
#if TC_PTX
  int32_t y;
  asm volatile("redux.sync.min.s32 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(mask));
  return y;
#else
  return int32_t(simt::redux(simt::Reduction::min_s32, mask, uint32_t(x)));
#endif
}
// redux.sync.max.s32
TC_DEVICE int32_t redux_sync_max_s32(int32_t x, unsigned mask = 0xffffffffu) {
#if TC_PTX
  int32_t y;
  asm volatile("redux.sync.max.s32 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(mask));
  return y;
#else
  return int32_t(simt::redux(simt::Reduction::max_s32, mask, uint32_t(x)));
#endif
}
// redux.sync.min.u32
TC_DEVICE uint32_t redux_sync_min_u32(uint32_t x, unsigned mask = 0xffffffffu) {
#if TC_PTX
  uint32_t y;
  asm volatile("redux.sync.min.u32 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(mask));
  return y;
#else
  return uint32_t(simt::redux(simt::Reduction::min_u32, mask, uint32_t(x)));
#endif
}
// redux.sync.max.u32
TC_DEVICE uint32_t redux_sync_max_u32(uint32_t x, unsigned mask = 0xffffffffu) {
#if TC_PTX
  uint32_t y;
  asm volatile("redux.sync.max.u32 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(mask));
  return y;
#else
  return uint32_t(simt::redux(simt::Reduction::max_u32, mask, uint32_t(x)));
#endif
}
// redux.sync.and.b32
TC_DEVICE uint32_t redux_sync_and_b32(uint32_t x, unsigned mask = 0xffffffffu) {
#if TC_PTX
  uint32_t y;
  asm volatile("redux.sync.and.b32 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(mask));
  return y;
#else
  return uint32_t(simt::redux(simt::Reduction::bit_and, mask, uint32_t(x)));
#endif
}
// redux.sync.or.b32
TC_DEVICE uint32_t redux_sync_or_b32(uint32_t x, unsigned mask = 0xffffffffu) {
#if TC_PTX
  uint32_t y;
  asm volatile("redux.sync.or.b32 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(mask));
  return y;
#else
  return uint32_t(simt::redux(simt::Reduction::bit_or, mask, uint32_t(x)));
#endif
}
// redux.sync.xor.b32
TC_DEVICE uint32_t redux_sync_xor_b32(uint32_t x, unsigned mask = 0xffffffffu) {
#if TC_PTX
  uint32_t y;
  asm volatile("redux.sync.xor.b32 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(mask));
  return y;
#else
  return uint32_t(simt::redux(simt::Reduction::bit_xor, mask, uint32_t(x)));
#endif
}

// elect.sync: true in one lane of the mask, the lowest (sm_90).
TC_DEVICE bool elect_sync(unsigned mask = 0xffffffffu) {
#if TC_PTX
  uint32_t elected;
  asm volatile("{ .reg .pred p; elect.sync _|p, %1; selp.b32 %0, 1, 0, p; }"
               : "=r"(elected)
               : "r"(mask));
  return elected != 0;
#else
  return simt::elect(mask);
#endif
}

}  // namespace tensorcraft::ptx
