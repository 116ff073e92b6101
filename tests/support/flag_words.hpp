// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/cuda/memory.hpp"

#include <algorithm>
#include <cstdint>

namespace tensorcraft::test {

inline TensorView flag_at(int32_t* at, Device device = Device::cpu()) {
  return {at, DType::int32, {1}, device};
}

// A flag and a result in page-locked memory, and work that copies one to the other.
struct Words {
  Words() : all(static_cast<int32_t*>(cuda::allocate_pinned(64))) { std::fill_n(all, 16, 0); }
  ~Words() { cuda::deallocate_pinned(all); }
  TensorView flag() const { return flag_at(all); }
  int32_t* all;
};

}  // namespace tensorcraft::test
