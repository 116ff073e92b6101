// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/permute/join.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;

std::vector<Device> devices_of_the_host() {
  std::vector<Device> all{Device::cpu()};
  if (devices().back() == Device::simt()) all.push_back(Device::simt());
  return all;
}

// start, start + 1, ...
Tensor counted(const Dims& shape, int16_t start, Device device = Device::cpu()) {
  Tensor t(DType::int16, shape, device);
  for (int64_t i = 0; i < t.size(); ++i) t.data_as<int16_t>()[i] = int16_t(start + i);
  return t;
}

std::vector<int> int16s(const Tensor& t) {
  return {t.data_as<int16_t>(), t.data_as<int16_t>() + t.size()};
}

TEST(Concat, JoinsAlongAnyAxis) {
  for (const Device device : devices_of_the_host()) {
    const Tensor a = counted({2, 2}, 0, device), b = counted({2, 1}, 10, device),
                 c = counted({1, 2}, 20, device);
    const std::array wide{a.view(), b.view()}, tall{a.view(), c.view()};
    EXPECT_EQ(int16s(concat(wide, {.axis = 1})), (std::vector{0, 1, 10, 2, 3, 11}));
    EXPECT_EQ(int16s(concat(tall)), (std::vector{0, 1, 2, 3, 20, 21}));
    EXPECT_EQ(int16s(concat(tall, {.axis = -2})), int16s(concat(tall)));
  }
}

TEST(Concat, TakesAnyNumberOfArraysAndEmptyOnes) {
  const Tensor none(DType::int16, {0}), one = counted({1}, 7);
  std::vector<TensorView> all(40, one.view());
  all[3] = none.view();
  const Tensor joined = concat(all);
  EXPECT_EQ(int16s(joined), std::vector<int>(39, 7));
}

TEST(Concat, TakesStridesAndWritesIntoTheCallersMemory) {
  const Tensor a = counted({2, 3}, 0);
  Tensor room = counted({2, 8}, 100);
  const TensorView turned = a.view().transpose(0, 1);
  const std::array parts{turned.slice(0, 0, 2), turned.slice(0, 2, 3)};
  const TensorView out = room.view().slice(1, 0, 6, 2).transpose(0, 1);
  concat(out, parts);
  EXPECT_EQ(int16s(room), (std::vector{0, 101, 1, 103, 2, 105, 106, 107,  //
                                       3, 109, 4, 111, 5, 113, 114, 115}));
}

TEST(Stack, AddsAnAxis) {
  const Tensor a = counted({2, 2}, 0), b = counted({2, 2}, 10);
  const std::array both{a.view(), b.view()};
  EXPECT_EQ(stack(both).shape(), (Dims{2, 2, 2}));
  EXPECT_EQ(int16s(stack(both)), (std::vector{0, 1, 2, 3, 10, 11, 12, 13}));
  EXPECT_EQ(int16s(stack(both, {.axis = -1})), (std::vector{0, 10, 1, 11, 2, 12, 3, 13}));
}

TEST(Split, GivesViews) {
  const Tensor x = counted({6, 2}, 0);
  const auto thirds = split(x, 3);
  ASSERT_EQ(thirds.size(), 3u);
  EXPECT_EQ(thirds[1].shape(), (Dims{2, 2}));
  EXPECT_EQ(thirds[1].data(), x.data_as<int16_t>() + 4);
  const std::array<int64_t, 3> cuts{1, 4, 9};
  const auto parts = split(x, cuts);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[1].shape(0), 3);
  EXPECT_EQ(parts[3].shape(0), 0);
  EXPECT_EQ(int16s(concat(parts)), int16s(x));
}

TEST(Join, RefusesWhatDoesNotFitBeforeItWrites) {
  Tensor x = counted({4, 3}, 0);
  const Tensor narrow = counted({1, 2}, 0), number(DType::int16, {}), other(DType::int8, {1, 3});
  const TensorView top = x.view().slice(0, 0, 2), rest = x.view().slice(0, 2, 4);
  expect_error(ErrorKind::value, [] { concat({}); }, "concat: arrays: expected at least one");
  expect_error(
      ErrorKind::axis, [&] { concat(std::array{number.view()}); },
      "concat: arrays[0]: expected at least 1 dimension; stack() adds one");
  expect_error(
      ErrorKind::type, [&] { concat(std::array{top, other.view()}); },
      "concat: arrays[1]: Dtype value [int8] not in the allowed options: [int16]"
      "; tc.astype(arrays[1], tc.int16) converts it");
  EXPECT_THROW(concat(std::array{top, narrow.view()}), Error);
  EXPECT_THROW(stack(std::array{top, narrow.view()}), Error);
  expect_error(
      ErrorKind::value, [&] { concat(x, std::array{rest, top}); },
      "concat: out overlaps the memory of arrays[0]; give it memory of its own");
  EXPECT_EQ(int16s(x), int16s(counted({4, 3}, 0)));
  expect_error(
      ErrorKind::value, [&] { split(x, 3); },
      "split: sections must divide axis 0 with size 4, got 3");
}

}  // namespace
}  // namespace tensorcraft
