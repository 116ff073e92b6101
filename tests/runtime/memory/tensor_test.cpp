// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/tensor.hpp"

#include "tests/support/expect_error.hpp"

#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

int64_t live_blocks() { return allocator(Device::cpu()).statistics().live_blocks; }

Tensor counting(const Dims& shape) {
  Tensor tensor(DType::float32, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.data_as<float>()[i] = float(i);
  return tensor;
}

TEST(Tensor, ReturnsItsMemory) {
  const int64_t before = live_blocks();
  {
    const Tensor tensor(DType::float16, {3, 5});
    EXPECT_EQ(tensor.nbytes(), 30u);
    EXPECT_EQ(live_blocks(), before + 1);
  }
  EXPECT_EQ(live_blocks(), before);
}

TEST(Tensor, IsEmptyOnceItWasMovedFrom) {
  Tensor from = counting({2, 3});
  const void* data = from.data();
  const Tensor to = std::move(from);
  EXPECT_EQ(to.data(), data);
  EXPECT_EQ(from.data(), nullptr);  // NOLINT(bugprone-use-after-move): what is tested
  EXPECT_EQ(from.shape(), Dims{0});
}

TEST(Tensor, AssignmentEmptiesTheSourceAndReturnsTheOldMemory) {
  const int64_t before = live_blocks();
  Tensor from = counting({2, 3}), to = counting({4});
  const void* data = from.data();
  to = std::move(from);
  EXPECT_EQ(to.data(), data);
  EXPECT_EQ(to.shape(), (Dims{2, 3}));
  EXPECT_EQ(from.size(), 0);  // NOLINT(bugprone-use-after-move): what is tested
  EXPECT_EQ(from.data(), nullptr);
  EXPECT_EQ(live_blocks(), before + 1);
}

TEST(Tensor, CopiesItsBytesFromAndToTheHost) {
  const std::vector<float> given{1, 2, 3, 4};
  Tensor tensor(DType::float32, {2, 2});
  tensor.copy_from_host(given.data(), 16);
  std::vector<float> got(4);
  tensor.to(Device::cpu()).copy_to_host(got.data(), 16);
  EXPECT_EQ(got, given);
  test::expect_error(
      ErrorKind::value, [&] { tensor.copy_from_host(given.data(), 12); },
      "copy_from_host: 12 bytes were given for a tensor of 16");
  test::expect_error(
      ErrorKind::value, [&] { tensor.copy_to_host(got.data(), 20); },
      "copy_to_host: room for 20 bytes was given, the tensor has 16");
}

TEST(Tensor, RefusesMoreBytesThanCanBeCounted) {
  const int64_t many = std::numeric_limits<int64_t>::max() / 2;
  EXPECT_THROW(Tensor(DType::int64, {many}), Error);
  EXPECT_THROW(Tensor(DType::float32, {-1}), Error);
}

TEST(CopyBytes, RefusesAnotherDtypeSizeOrStride) {
  const Tensor a = counting({2, 3}), b = counting({6});
  const Tensor half(DType::float16, {6}), shorter(DType::float32, {5});
  copy_bytes(b, a, {});
  for (const Tensor* to : {&half, &shorter}) EXPECT_THROW(copy_bytes(*to, a, {}), Error);
  EXPECT_THROW(copy_bytes(b, a.view().transpose(0, 1), {}), Error);
}

}  // namespace
}  // namespace tensorcraft
