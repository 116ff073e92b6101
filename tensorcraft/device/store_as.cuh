// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/concepts.h"
#include "tensorcraft/device/output_type.h"

namespace tensorcraft {

// A sum or product in another type: of 64 bits, signed or not, rounded once to a float.
template <class To, class V>
TC_DEVICE To converted(V value) {
  if constexpr (FloatingPoint<To> && !FloatingPoint<V>)
    return To(float(int64_t(value)));
  else
    return To(value);
}

// to[at] = value, as the type that is named, which is not `own`. A float goes to floats alone.
template <class V>
TC_DEVICE void store_as(OutputType type, void* to, int64_t at, V value) {
  if (type == OutputType::float32)
    static_cast<float*>(to)[at] = converted<float>(value);
  else if (type == OutputType::float16)
    static_cast<f16*>(to)[at] = converted<f16>(value);
  else if (type == OutputType::bfloat16)
    static_cast<bf16*>(to)[at] = converted<bf16>(value);
  else if constexpr (!FloatingPoint<V>) {
    if (type == OutputType::bits8)
      static_cast<uint8_t*>(to)[at] = uint8_t(value);
    else if (type == OutputType::bits16)
      static_cast<uint16_t*>(to)[at] = uint16_t(value);
    else if (type == OutputType::bits32)
      static_cast<uint32_t*>(to)[at] = uint32_t(value);
    else
      static_cast<uint64_t*>(to)[at] = uint64_t(value);
  }
}

}  // namespace tensorcraft
