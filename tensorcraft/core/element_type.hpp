// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/float8.cuh"

namespace tensorcraft {

// Calls f with a null pointer of the element type of `dtype`.
template <class F>
auto with_element_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float32:
      return f(static_cast<float*>(nullptr));
    case DType::float16:
      return f(static_cast<f16*>(nullptr));
    case DType::bfloat16:
      return f(static_cast<bf16*>(nullptr));
    case DType::float8_e4m3fn:
      return f(static_cast<e4m3*>(nullptr));
    case DType::float8_e5m2:
      return f(static_cast<e5m2*>(nullptr));
    case DType::int8:
      return f(static_cast<int8_t*>(nullptr));
    case DType::int16:
      return f(static_cast<int16_t*>(nullptr));
    case DType::int32:
      return f(static_cast<int32_t*>(nullptr));
    case DType::int64:
      return f(static_cast<int64_t*>(nullptr));
    case DType::uint8:
      return f(static_cast<uint8_t*>(nullptr));
    case DType::bool_:
      return f(static_cast<bool*>(nullptr));
  }
  fail(ErrorKind::internal, "dtype ", int(dtype), " is not known");
}

}  // namespace tensorcraft
