// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"

#include <bit>

namespace tensorcraft::op {

// The integer dtype under which kernels move elements of this size: one kernel serves every dtype
// of 1, 2, 4 or 8 bytes.
constexpr DType moved_as(int bytes) {
  constexpr DType by_size[] = {DType::uint8, DType::int16, DType::int32, DType::int64};
  return by_size[std::countr_zero(unsigned(bytes))];
}

}  // namespace tensorcraft::op
