// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace tensorcraft {

namespace pointer {

// The address that the offsets, in bytes, lead to. Only void pointers are taken, so nobody passes
// a count of elements.
template <std::same_as<void> T, std::integral... Offsets>
T* offset(T* base, Offsets... bytes) {
  return static_cast<std::byte*>(base) + (std::ptrdiff_t(bytes) + ... + 0);
}
template <std::same_as<const void> T, std::integral... Offsets>
T* offset(T* base, Offsets... bytes) {
  return static_cast<const std::byte*>(base) + (std::ptrdiff_t(bytes) + ... + 0);
}

}  // namespace pointer

// Fails with kind value unless VecSize values of T can be accessed at once at this address.
template <class T, int VecSize>
void validate_alignment(const void* address) {
  if (reinterpret_cast<std::uintptr_t>(address) % (sizeof(T) * VecSize) != 0)
    fail(ErrorKind::value, "Pointer not aligned for vectorized access");
}

}  // namespace tensorcraft
