// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/device/output_type.h"

namespace tensorcraft::op {

// What a kernel whose own results are `own` is told of the dtype of out.
constexpr OutputType output_type(DType out, DType own) {
  if (out == own) return OutputType::own;
  switch (out) {
    case DType::float32:
      return OutputType::float32;
    case DType::float16:
      return OutputType::float16;
    case DType::bfloat16:
      return OutputType::bfloat16;
    default:
      break;
  }
  switch (dtype_bytes(out)) {
    case 1:
      return OutputType::bits8;
    case 2:
      return OutputType::bits16;
    case 4:
      return OutputType::bits32;
    default:
      return OutputType::bits64;
  }
}

}  // namespace tensorcraft::op
