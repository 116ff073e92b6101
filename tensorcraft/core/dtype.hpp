// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dlpack.hpp"

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string_view>

namespace tensorcraft {

// Element types. float8_e4m3fn has no infinity and a largest value of 448.
enum class DType : uint8_t {
  float32,
  float16,
  bfloat16,
  float8_e4m3fn,
  float8_e5m2,
  int8,
  int16,
  int32,
  int64,
  uint8,
  bool_,

  // The names of the hardware documents for the same values.
  FP32 = float32,
  FP16 = float16,
  BF16 = bfloat16,
  FP8_E4M3 = float8_e4m3fn,
  FP8_E5M2 = float8_e5m2,
  INT8 = int8,
};
// How many there are, without the second names.
inline constexpr int kNumDTypes = 11;

// "float32", "bfloat16", ..., "bool": the spelling of every error and of Python.
std::string_view to_string(DType dtype);
// Parses such a name, or one of the short names f32, fp32, f16, fp16, bf16, e4m3, e5m2, i8, i16,
// i32, i64, u8, bool_.
std::optional<DType> parse_dtype(std::string_view name);
std::ostream& operator<<(std::ostream& out, DType dtype);

// Bytes of one element.
constexpr size_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::float32:
    case DType::int32:
      return 4;
    case DType::float16:
    case DType::bfloat16:
    case DType::int16:
      return 2;
    case DType::int64:
      return 8;
    default:
      return 1;
  }
}

// Is it a float, float8 included?
constexpr bool is_floating(DType dtype) { return dtype <= DType::float8_e5m2; }

// DLPack's type, and back; nullopt if the library has no such type (float64, lanes > 1, ...).
dlpack::DLDataType to_dlpack(DType dtype);
std::optional<DType> from_dlpack(dlpack::DLDataType dtype);
// Bytes of one element; fails with kind type for sub-byte types and lanes other than 1.
size_t dtype_bytes(dlpack::DLDataType dtype);
namespace dlpack {
// "float64", "int4x2", ...: any DLPack type as text.
std::ostream& operator<<(std::ostream& out, DLDataType dtype);
}  // namespace dlpack

}  // namespace tensorcraft
