// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/ops/permute/permute.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;
using test::values;

Tensor floats(std::vector<float> values) {
  Tensor t(DType::float32, {int64_t(values.size())});
  t.copy_from_host(values.data(), t.nbytes());
  return t;
}

TEST(Copy, TakesElementsAtAnyAddress) {
  for (const Device device : {Device::cpu(), Device::simt()})
    for (const auto variant : {"", "reference"}) {
      if (device == Device::simt() && *variant) continue;
      std::vector<std::byte> memory(4 * 35 + 1), room(4 * 35 + 3);
      const TensorView x(memory.data() + 1, DType::float32, {5, 7}, {1, 5}, device);
      const TensorView out(room.data() + 3, DType::float32, {5, 7}, device);
      for (int i = 0; i < 35; ++i) {
        const float value = float(i);
        std::memcpy(memory.data() + 1 + 4 * i, &value, 4);
      }
      copy(out, x, {.variant = variant});
      for (int row = 0; row < 5; ++row)
        for (int column = 0; column < 7; ++column) {
          float found = NAN;
          std::memcpy(&found, room.data() + 3 + 4 * (7 * row + column), 4);
          EXPECT_EQ(found, float(5 * column + row));
        }
    }
}

TEST(Copy, KeepsTheBitsOfEveryNan) {
  Tensor x(DType::int16, {65536});
  for (int i = 0; i < 65536; ++i) x.data_as<uint16_t>()[i] = uint16_t(i);
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    const TensorView all(x.data(), dtype, {256, 256});
    const Tensor back = copy(copy(all.transpose(0, 1)).view().transpose(0, 1));
    EXPECT_EQ(values<uint16_t>(back), values<uint16_t>(x)) << dtype;
    EXPECT_EQ(values<uint16_t>(astype(all, {.dtype = dtype})), values<uint16_t>(x)) << dtype;
  }
}

TEST(Copy, TransposesEveryElementSize) {
  for (const DType dtype : {DType::uint8, DType::int16, DType::int32, DType::int64}) {
    Tensor x(DType::int64, {6});
    for (int i = 0; i < 6; ++i) x.data_as<int64_t>()[i] = i;
    const Tensor narrow = astype(x, {.dtype = dtype});
    const Tensor y = copy(narrow.view().reshape({2, 3}).transpose(0, 1));
    EXPECT_EQ(values<int64_t>(astype(y, {.dtype = DType::int64})),
              (std::vector<int64_t>{0, 3, 1, 4, 2, 5}))
        << dtype;
  }
}

TEST(Astype, RoundsToNearestEven) {
  // Half-way between two neighbours: the even one.
  const Tensor x = floats({1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 65519, 65520, 0x1p-25f});
  EXPECT_EQ(values<uint16_t>(astype(x, {.dtype = DType::float16})),
            (std::vector<uint16_t>{0x3c00, 0x3c02, 0x7bff, 0x7c00, 0}));
  const Tensor y = floats({1 + 0x1p-8f, 1 + 3 * 0x1p-8f});
  EXPECT_EQ(values<uint16_t>(astype(y, {.dtype = DType::bfloat16})),
            (std::vector<uint16_t>{0x3f80, 0x3f82}));
}

TEST(Astype, SaturatesFloatsInFloat8AndIntegers) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const Tensor x = floats({1000, -inf, NAN, 2.9f, -2.9f, 3e9f});
  EXPECT_EQ(values<uint8_t>(astype(x, {.dtype = DType::float8_e4m3fn})),
            (std::vector<uint8_t>{0x7e, 0xfe, 0x7f, 0x44, 0xc4, 0x7e}));
  EXPECT_EQ(values<int8_t>(astype(x, {.dtype = DType::int8})),
            (std::vector<int8_t>{127, -128, 0, 2, -2, 127}));
  EXPECT_EQ(values<uint8_t>(astype(x, {.dtype = DType::uint8})),
            (std::vector<uint8_t>{255, 0, 0, 2, 0, 255}));
  constexpr int32_t largest = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(values<int32_t>(astype(x, {.dtype = DType::int32})),
            (std::vector<int32_t>{1000, -largest - 1, 0, 2, -2, largest}));
}

TEST(Astype, KeepsAll64BitsOfIntegersAndTheLowBitsOfNarrowerOnes) {
  Tensor x(DType::int64, {2});
  x.data_as<int64_t>()[0] = (int64_t(1) << 60) + 300;
  x.data_as<int64_t>()[1] = -1;
  EXPECT_EQ(values<int8_t>(astype(x, {.dtype = DType::int8})), (std::vector<int8_t>{44, -1}));
  EXPECT_EQ(values<uint8_t>(astype(x, {.dtype = DType::uint8})), (std::vector<uint8_t>{44, 255}));
  EXPECT_EQ(values<int64_t>(astype(x, {.dtype = DType::int64})), values<int64_t>(x));
}

TEST(Astype, MakesTrueOfEverythingButZero) {
  const Tensor x = floats({0, -0.0f, 0.25f, NAN});
  EXPECT_EQ(values<uint8_t>(astype(x, {.dtype = DType::bool_})),
            (std::vector<uint8_t>{0, 0, 1, 1}));
}

TEST(Astype, TakesItsDtypeByPosition) {
  const auto& option = find_operator("astype").description().options[0];
  EXPECT_EQ(option.name, "dtype");
  EXPECT_TRUE(option.positional);
}

TEST(Fill, WritesOneValueOfAnyDtype) {
  Tensor half(DType::float16, {3}), flags(DType::bool_, {2}), bytes(DType::int8, {2});
  fill(half, half, {.value = 1.5});
  EXPECT_EQ(values<uint16_t>(half), (std::vector<uint16_t>(3, 0x3e00)));
  fill(flags, flags, {.value = 7});
  EXPECT_EQ(values<uint8_t>(flags), (std::vector<uint8_t>{1, 1}));
  fill(bytes, bytes, {.value = -1000});
  EXPECT_EQ(values<int8_t>(bytes), (std::vector<int8_t>{-128, -128}));
}

TEST(Fill, TakesABoolAndRefusesText) {
  const op::Operator& op = find_operator("fill");
  Tensor x(DType::bool_, {1});
  const TensorView view = x;
  const auto call = [&](op::Value value) {
    op.run(std::span(&view, 1), {std::span(&view, 1), std::span(&value, 1)});
  };
  call(true);
  EXPECT_EQ(x.data_as<uint8_t>()[0], 1);
  expect_error(
      ErrorKind::type, [&] { call(std::string_view("x")); },
      "fill: value must be a number, got a string");
}

}  // namespace
}  // namespace tensorcraft
