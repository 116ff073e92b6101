// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/plan.h"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

// Checks of the launchers' arguments, made before they touch the GPU. Plain C++ of the host.
// Every failure is a std::invalid_argument. A size of 0 is no error: a launcher then does nothing.
namespace tensorcraft::kernels {
namespace detail {

// The integer type under which kernels move elements: one for every type of a size.
template <size_t bytes>
using Bits = std::conditional_t<
    bytes == 1, uint8_t,
    std::conditional_t<bytes == 2, int16_t, std::conditional_t<bytes == 4, int32_t, int64_t>>>;

}  // namespace detail

// Throws unless VecSize values of T can be accessed at once at this address.
template <class T, int VecSize>
void validate_alignment(const void* address) {
  if (reinterpret_cast<uintptr_t>(address) % (sizeof(T) * VecSize) != 0)
    throw std::invalid_argument("Pointer not aligned for vectorized access");
}

// Throws for a negative size, and if even the smallest tiles outnumber the blocks of a grid, which
// are 2^31 - 1.
inline void validate_gemm_dims(int64_t m, int64_t n, int64_t k) {
  if (m < 0 || n < 0 || k < 0) throw std::invalid_argument("GEMM dimensions must be positive");
  const auto& tile = kernel::gemm::kNaiveTile.block;
  const double tiles = double(div_ceil(m, tile.m)) * double(div_ceil(n, tile.n));
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

// A size and its name in messages.
struct NamedSize {
  // Both.
  const char* name;
  int64_t size;
};
// validate_size() for each.
inline void validate_sizes(const char* launcher, std::initializer_list<NamedSize> sizes) {
  for (const auto& [name, size] : sizes) validate_size(launcher, name, size);
}
// An array and its name in messages.
struct NamedArray {
  // Both.
  const char* name;
  const void* address;
};
// validate_pointer() for each.
inline void validate_arrays(const char* launcher, std::initializer_list<NamedArray> arrays) {
  for (const auto& [name, address] : arrays) validate_pointer(launcher, name, address);
}

// Checks of all norms of rows; false if there is nothing to do.
inline bool validate_norm(const char* launcher, const void* in, const void* out, int64_t rows,
                          int64_t cols, float eps) {
  validate_size(launcher, "rows", rows);
  validate_size(launcher, "cols", cols);
  if (rows == 0 || cols == 0) return false;
  validate_pointer(launcher, "in", in);
  validate_pointer(launcher, "out", out);
  if (!(eps >= 0)) throw std::invalid_argument(std::string(launcher) + ": eps must be at least 0");
  return true;
}

// The divisor of a launcher that stores codes of 8 bits: `scale`, finite and above 0, or, if
// `scales` is not null, what is best for each row, which is stored there.
struct CodeScale {
  float scale = 0;          // of every code
  float* scales = nullptr;  // one a row
};

// Throws unless exactly one of the two is given.
inline void validate_code_scale(const char* launcher, const CodeScale& s) {
  const bool is_scale = s.scale > 0 && s.scale <= std::numeric_limits<float>::max();
  if (s.scales ? s.scale != 0 : !is_scale)
    throw std::invalid_argument(std::string(launcher) +
                                ": give either scale, finite and above 0, or scales");
}

}  // namespace tensorcraft::kernels
