// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/plan.h"

#include <cstdint>
#include <stdexcept>
#include <string>

// What the launchers check of their arguments before they touch the GPU. Plain C++ of the host.
// Every failure is a std::invalid_argument. A size of 0 is no error: a launcher then does nothing.
namespace tensorcraft::kernels {

// Throws unless VecSize values of T can be accessed at once at this address.
template <class T, int VecSize>
void validate_alignment(const void* address) {
  if (reinterpret_cast<uintptr_t>(address) % (sizeof(T) * VecSize) != 0)
    throw std::invalid_argument("Pointer not aligned for vectorized access");
}

// Throws for a negative size, and where even the smallest tiles outnumber the blocks of a grid,
// which are 2^31 - 1.
inline void validate_gemm_dims(int64_t m, int64_t n, int64_t k) {
  if (m < 0 || n < 0 || k < 0) throw std::invalid_argument("GEMM dimensions must be positive");
  const auto& tile = kernel::gemm::kNaiveTiles[0];
  const double tiles = double(div_ceil(m, tile.block_m)) * double(div_ceil(n, tile.block_n));
  if (tiles > double(op::kMaxBlocks))
    throw std::invalid_argument("GEMM dimensions exceed maximum grid size");
}

// A size of a launcher's argument; `name` stands in the message.
inline void validate_size(const char* launcher, const char* name, int64_t size) {
  if (size < 0)
    throw std::invalid_argument(std::string(launcher) + ": " + name +
                                " must not be negative, got " + std::to_string(size));
}

// An array that is read or written.
inline void validate_pointer(const char* launcher, const char* name, const void* address) {
  if (!address) throw std::invalid_argument(std::string(launcher) + ": " + name + " is null");
}

}  // namespace tensorcraft::kernels
