// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/dtype.hpp"

#include "tensorcraft/core/error.hpp"

#include <array>
#include <ostream>

namespace tensorcraft {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  dlpack::DLDataType dl;
};

constexpr std::array<Row, kNumDTypes> kRows = {{
    {DType::float32, "float32", {dlpack::kDLFloat, 32, 1}},
    {DType::float16, "float16", {dlpack::kDLFloat, 16, 1}},
    {DType::bfloat16, "bfloat16", {dlpack::kDLBfloat, 16, 1}},
    {DType::float8_e4m3fn, "float8_e4m3fn", {dlpack::kDLFloat8_e4m3fn, 8, 1}},
    {DType::float8_e5m2, "float8_e5m2", {dlpack::kDLFloat8_e5m2, 8, 1}},
    {DType::int8, "int8", {dlpack::kDLInt, 8, 1}},
    {DType::int16, "int16", {dlpack::kDLInt, 16, 1}},
    {DType::int32, "int32", {dlpack::kDLInt, 32, 1}},
    {DType::int64, "int64", {dlpack::kDLInt, 64, 1}},
    {DType::uint8, "uint8", {dlpack::kDLUInt, 8, 1}},
    {DType::bool_, "bool", {dlpack::kDLBool, 8, 1}},
}};

struct ShortName {
  std::string_view name;
  DType dtype;
};
constexpr std::array<ShortName, 13> kShortNames = {{{"f32", DType::float32},
                                                    {"fp32", DType::float32},
                                                    {"f16", DType::float16},
                                                    {"fp16", DType::float16},
                                                    {"bf16", DType::bfloat16},
                                                    {"e4m3", DType::float8_e4m3fn},
                                                    {"e5m2", DType::float8_e5m2},
                                                    {"i8", DType::int8},
                                                    {"i16", DType::int16},
                                                    {"i32", DType::int32},
                                                    {"i64", DType::int64},
                                                    {"u8", DType::uint8},
                                                    {"bool_", DType::bool_}}};

std::string_view code_name(uint8_t code) {
  switch (code) {
    case dlpack::kDLInt:
      return "int";
    case dlpack::kDLUInt:
      return "uint";
    case dlpack::kDLFloat:
      return "float";
    case dlpack::kDLBfloat:
      return "bfloat";
    case dlpack::kDLComplex:
      return "complex";
    case dlpack::kDLBool:
      return "bool";
    case dlpack::kDLOpaqueHandle:
      return "handle";
    default:
      return "dtype";
  }
}

}  // namespace

std::string_view to_string(DType dtype) {
  const auto i = static_cast<size_t>(dtype);
  return i < kRows.size() ? kRows[i].name : "unknown";
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.dtype;
  for (const auto& [shorter, dtype] : kShortNames)
    if (shorter == name) return dtype;
  return std::nullopt;
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << to_string(dtype); }

dlpack::DLDataType to_dlpack(DType dtype) { return kRows.at(static_cast<size_t>(dtype)).dl; }

std::optional<DType> from_dlpack(dlpack::DLDataType dtype) {
  for (const Row& row : kRows)
    if (row.dl == dtype) return row.dtype;
  return std::nullopt;
}

size_t dtype_bytes(dlpack::DLDataType dtype) {
  if (dtype.lanes != 1)
    fail(ErrorKind::type, "dtype ", dtype, " has lanes; only scalars are accepted");
  if (dtype.bits == 0 || dtype.bits % 8 != 0)
    fail(ErrorKind::type, "dtype ", dtype, " is not a whole number of bytes");
  return dtype.bits / 8;
}

std::ostream& dlpack::operator<<(std::ostream& out, DLDataType dtype) {
  if (const auto known = from_dlpack(dtype)) return out << *known;
  out << code_name(dtype.code);
  if (code_name(dtype.code) == "dtype") out << "(code " << int(dtype.code) << ")";
  out << int(dtype.bits);
  if (dtype.lanes != 1) out << "x" << dtype.lanes;
  return out;
}

}  // namespace tensorcraft
