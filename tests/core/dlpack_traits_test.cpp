// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/dlpack_traits.hpp"

#include "tensorcraft/core/error.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using dlpack::DLDataType;
using dlpack::DLDevice;

static_assert(dtype_trait<uint16_t>::value == DLDataType{dlpack::kDLUInt, 16, 1});
static_assert(dtype_trait<uint32_t>::value == DLDataType{dlpack::kDLUInt, 32, 1});
static_assert(dtype_trait<uint64_t>::value == DLDataType{dlpack::kDLUInt, 64, 1});
static_assert(dtype_trait<double>::value == DLDataType{dlpack::kDLFloat, 64, 1});

template <class T>
concept HasDType = requires { dtype_trait<T>::value; };
static_assert(!HasDType<long double> && !HasDType<void*> && !HasDType<std::string>);

static_assert(device_trait<dlpack::kDLCUDA>::value == DLDevice{dlpack::kDLCUDA, kAnyDeviceID});
static_assert(kAnyDeviceID == -1);
static_assert(kDTypeList<float, bf16, int8_t>.size() == 3);
static_assert(kDTypeList<float, bf16>[1] == dtype_trait<bf16>::value);
static_assert(kDeviceList<dlpack::kDLCPU, dlpack::kDLCUDA>.size() == 2);

template <class T>
void expect_one_dtype(DType dtype, DLDataType expected) {
  EXPECT_EQ(dtype_trait<T>::value, expected);
  EXPECT_EQ(dtype_of<T>(), dtype);
  EXPECT_EQ(to_dlpack(dtype), expected);
  EXPECT_EQ(from_dlpack(expected), dtype);
  EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
  EXPECT_EQ(dtype_bytes(dtype), sizeof(T));
  EXPECT_EQ(dtype_bytes(expected), sizeof(T));
}

TEST(DlpackTraits, AgreeWithTheDtypesOfTheLibrary) {
  expect_one_dtype<float>(DType::float32, {dlpack::kDLFloat, 32, 1});
  expect_one_dtype<f16>(DType::float16, {dlpack::kDLFloat, 16, 1});
  expect_one_dtype<bf16>(DType::bfloat16, {dlpack::kDLBfloat, 16, 1});
  expect_one_dtype<e4m3>(DType::float8_e4m3fn, {dlpack::kDLFloat8_e4m3fn, 8, 1});
  expect_one_dtype<e5m2>(DType::float8_e5m2, {dlpack::kDLFloat8_e5m2, 8, 1});
  expect_one_dtype<int8_t>(DType::int8, {dlpack::kDLInt, 8, 1});
  expect_one_dtype<int16_t>(DType::int16, {dlpack::kDLInt, 16, 1});
  expect_one_dtype<int32_t>(DType::int32, {dlpack::kDLInt, 32, 1});
  expect_one_dtype<int64_t>(DType::int64, {dlpack::kDLInt, 64, 1});
  expect_one_dtype<uint8_t>(DType::uint8, {dlpack::kDLUInt, 8, 1});
  expect_one_dtype<bool>(DType::bool_, {dlpack::kDLBool, 8, 1});
}

TEST(DlpackTraits, NamesEveryDeviceType) {
  const std::vector<std::string_view> names = {
      "cpu",       "cuda",    "cuda_host",    "opencl", "vulkan", "metal",   "vpi",  "rocm",
      "rocm_host", "ext_dev", "cuda_managed", "oneapi", "webgpu", "hexagon", "maia", "trn"};
  std::set<int> codes;
  ASSERT_EQ(names.size(), kDeviceStringMap.size());
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(kDeviceStringMap[i].second, names[i]);
    codes.insert(kDeviceStringMap[i].first);
  }
  EXPECT_EQ(codes.size(), 16u);
}

TEST(DlpackTraits, PrintsDevices) {
  EXPECT_EQ(join(PrintableDevice{{dlpack::kDLCUDA, 0}}), "cuda:0");
  EXPECT_EQ(join(PrintableDevice{{dlpack::kDLCPU, 0}}), "cpu");
  EXPECT_EQ(join(PrintableDevice{device_trait<dlpack::kDLCUDA>::value}), "cuda");
  EXPECT_EQ(join(PrintableDevice{{dlpack::DLDeviceType(99), 0}}), "Unknown device: 99");
}

TEST(DlpackTraits, PrintsSpans) {
  EXPECT_EQ(join(PrintAbleSpan(std::vector<int>{1, 2, 3})), "[1, 2, 3]");
  EXPECT_EQ(join(PrintAbleSpan(std::vector<int>{})), "[]");
}

}  // namespace
}  // namespace tensorcraft
