// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/store.cuh"

namespace tensorcraft {

// The bytes that one access moves: 16, 8 or 4 bytes at a multiple of them, read and written once,
// so no cache keeps them for long.
template <int kBytes>
struct Package;
template <>
struct Package<16> {
  ptx::Words4 words;
};
template <>
struct Package<8> {
  ptx::Words2 words;
};
template <>
struct Package<4> {
  uint32_t words;
};
static_assert(sizeof(Package<16>) == 16 && sizeof(Package<8>) == 8 && sizeof(Package<4>) == 4);

template <int kBytes>
TC_DEVICE Package<kBytes> load_package(const void* from) {
  if constexpr (kBytes == 16)
    return {ptx::ld_global_cs_v4(from)};
  else if constexpr (kBytes == 8)
    return {ptx::ld_global_cs_v2(from)};
  else
    return {ptx::ld_global_cs(from)};
}

template <int kBytes>
TC_DEVICE void store_package(void* to, const Package<kBytes>& x) {
  if constexpr (kBytes == 16)
    ptx::st_global_cs_v4(to, x.words);
  else if constexpr (kBytes == 8)
    ptx::st_global_cs_v2(to, x.words);
  else
    ptx::st_global_cs(to, x.words);
}

}  // namespace tensorcraft
