// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"

#include <bit>
#include <vector>

namespace tensorcraft::op {

// The dtypes of an operator that only moves elements.
inline std::vector<DType> moved_dtypes() {
  return {DType::float32,     DType::float16, DType::bfloat16, DType::float8_e4m3fn,
          DType::float8_e5m2, DType::int8,    DType::int16,    DType::int32,
          DType::int64,       DType::uint8,   DType::bool_};
}

// The dtype of kernels that only move elements of this size: one kernel serves every dtype of 1, 2,
// 4 or 8 bytes.
constexpr DType moved_as(int bytes) {
  constexpr DType by_size[] = {DType::uint8, DType::int16, DType::int32, DType::int64};
  return by_size[std::countr_zero(unsigned(bytes))];
}

}  // namespace tensorcraft::op
