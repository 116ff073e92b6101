// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

struct CUstream_st;

// Both ways to launch a kernel share this: the library's through the driver and the launchers'
// through the runtime. Nothing here needs the library.
namespace tensorcraft {

// A size in three directions.
struct Dim3 {
  // Blocks of a grid, threads of a block, or blocks of a cluster; count() is their number.
  uint32_t x = 1, y = 1, z = 1;
  constexpr uint64_t count() const { return uint64_t(x) * y * z; }
  friend bool operator==(const Dim3&, const Dim3&) = default;
};

// The shape of a block and what goes with it, by the names that launchers use.
struct KernelConfig {
  // 256 threads on the default stream, without dynamic shared memory, unless set.
  uint32_t block_size_x = 256, block_size_y = 1, block_size_z = 1;
  uint32_t shared_memory_bytes = 0;
  CUstream_st* stream = nullptr;
  constexpr Dim3 block() const { return {block_size_x, block_size_y, block_size_z}; }
};

}  // namespace tensorcraft
