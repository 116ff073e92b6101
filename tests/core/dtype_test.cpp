// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/dtype.hpp"

#include "tensorcraft/core/error.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using dlpack::DLDataType;

TEST(DType, NamesAndDlpackTypesLeadBackToIt) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = DType(i);
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
    EXPECT_EQ(from_dlpack(to_dlpack(dtype)), dtype) << dtype;
    EXPECT_EQ(dtype_bytes(to_dlpack(dtype)), dtype_bytes(dtype)) << dtype;
  }
}

TEST(DType, HasShortNames) {
  EXPECT_EQ(parse_dtype("bf16"), DType::bfloat16);
  for (const char* name : {"f16", "fp16"}) EXPECT_EQ(parse_dtype(name), DType::float16);
  for (const char* name : {"f32", "fp32"}) EXPECT_EQ(parse_dtype(name), DType::float32);
  EXPECT_EQ(parse_dtype("e4m3"), DType::float8_e4m3fn);
  EXPECT_EQ(parse_dtype("i64"), DType::int64);
  EXPECT_EQ(parse_dtype("bool_"), DType::bool_);
}

TEST(DType, KnowsNoOtherName) {
  for (const char* name : {"", "float", "FLOAT32", "float64", "float32 "})
    EXPECT_EQ(parse_dtype(name), std::nullopt) << name;
}

TEST(DType, RefusesWhatHasNoWholeNumberOfBytes) {
  EXPECT_EQ(dtype_bytes(DLDataType{dlpack::kDLFloat, 64, 1}), 8u);
  EXPECT_THROW(dtype_bytes(DLDataType{dlpack::kDLInt, 4, 1}), Error);
  EXPECT_THROW(dtype_bytes(DLDataType{dlpack::kDLFloat, 32, 4}), Error);
  EXPECT_EQ(from_dlpack(DLDataType{dlpack::kDLFloat, 64, 1}), std::nullopt);
  EXPECT_EQ(from_dlpack(DLDataType{dlpack::kDLFloat, 32, 4}), std::nullopt);
  EXPECT_EQ(join(DLDataType{dlpack::kDLInt, 4, 2}), "int4x2");
  EXPECT_EQ(join(DLDataType{dlpack::kDLFloat, 64, 1}), "float64");
}

}  // namespace
}  // namespace tensorcraft
