// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gather/gather.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tensorcraft {
namespace {

using test::counting_tensor;
using test::expect_error;
using test::values;

Tensor indices(const Dims& shape, const std::vector<int64_t>& values,
               Device device = Device::cpu()) {
  Tensor t(DType::int64, shape, device);
  for (size_t i = 0; i < values.size(); ++i) t.data_as<int64_t>()[i] = values[i];
  return t;
}

TEST(Take, PutsTheShapeOfTheIndicesInThePlaceOfTheAxis) {
  const Tensor x = counting_tensor({2, 3, 2});
  const Tensor y = take(x, indices({2, 2}, {2, 0, -1, 1}), {.axis = 1});
  EXPECT_EQ(y.shape(), (Dims{2, 2, 2, 2}));
  EXPECT_EQ(values(y), (std::vector<float>{4, 5, 0, 1, 4, 5, 2, 3, 10, 11, 6, 7, 10, 11, 8, 9}));
}

TEST(TakeAlongAxis, HasAnIndexForEachElement) {
  const Tensor x = counting_tensor({2, 3});
  EXPECT_EQ(values(take_along_axis(x, indices({2, 2}, {2, 0, -1, 1}))),
            (std::vector<float>{2, 0, 5, 4}));
  EXPECT_EQ(values(take_along_axis(x, indices({1, 3}, {1, 0, -1}), {.axis = 0})),
            (std::vector<float>{3, 1, 5}));
}

TEST(Take, RefusesAnIndexOutsideTheAxisBeforeItWrites) {
  const Tensor x = counting_tensor({3, 2});
  Tensor out = counting_tensor({2, 2});
  for (const char* variant : {"cpu", "reference"}) {
    expect_error(
        ErrorKind::index,
        [&] { take(out, x, indices({2}, {-3, 3}), {.axis = 0, .variant = variant}); },
        "take: indices: element 1 is 3, expected [-3, 3), the axis of x");
    expect_error(
        ErrorKind::index,
        [&] { take_along_axis(x, indices({3, 1}, {0, 1, -3}), {.variant = variant}); },
        "take_along_axis: indices: element 2 is -3, expected [-2, 2), the axis of x");
  }
  EXPECT_EQ(values(out), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_THROW(take(counting_tensor({0, 2}), indices({1}, {0}), {.axis = 0}), Error);
}

TEST(Take, OnTheKernelsGivesNanOrZeroForSuchAnIndex) {
  if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the emulator";
  const Device simt = Device::simt();
  const Tensor x = counting_tensor({3, 4}, simt), ids = indices({3}, {-4, 2, 3}, simt);
  const TensorView bits(x.data(), DType::int32, {3, 4}, simt);
  for (const char* variant : {"naive", "vectorized"}) {
    const Tensor y = take(x, ids, {.axis = 0, .variant = variant});
    const Tensor z = take(bits, ids, {.axis = 0, .variant = variant});
    for (int i = 0; i < 12; ++i) {
      EXPECT_EQ(std::isnan(y.data_as<float>()[i]), i / 4 != 1) << variant << i;
      EXPECT_EQ(z.data_as<int32_t>()[i] == 0, i / 4 != 1) << variant << i;
    }
  }
}

TEST(Take, NeedsAnAxisAndShapesThatFit) {
  const Tensor x = counting_tensor({3, 2}), one = indices({1}, {0});
  expect_error(
      ErrorKind::value, [&] { take(x, one); }, "take: axis must be given for an x of 2 dimensions");
  expect_error(
      ErrorKind::type, [&] { take(x, x, {.axis = 0}); },
      "take: indices: Dtype value [float32] not in the allowed options: [int32, int64]"
      "; tc.astype(indices, tc.int32) converts it");
  EXPECT_THROW(take(x, indices({1, 1, 1, 1, 1, 1, 1, 1}, {0}), {.axis = 0}), Error);
  EXPECT_THROW(take_along_axis(x, one), Error);
  EXPECT_THROW(take_along_axis(x, indices({2, 1}, {0, 0})), Error);
}

}  // namespace
}  // namespace tensorcraft
