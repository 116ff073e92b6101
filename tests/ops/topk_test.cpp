// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/topk/topk.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;
using test::places;
using test::values;

TEST(Topk, OrdersEqualsByIndexAndNaNFirst) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> numbers = {kNaN, -0.0f, 5, kNaN, 5, 0, 2};
  for (const Device d : places()) {
    Tensor x(DType::float32, {1, 7}, d);
    x.copy_from_host(numbers.data(), x.nbytes());
    for (const char* variant : {"", d == Device::cpu() ? "reference" : "block", "naive"}) {
      if (d == Device::cpu() && variant == std::string_view("naive")) continue;
      const TopkResult r = topk(x, {.k = 7, .variant = variant});
      EXPECT_EQ(values<int64_t>(r.indices), (std::vector<int64_t>{0, 3, 2, 4, 6, 1, 5}))
          << d << ' ' << variant;
      EXPECT_TRUE(std::signbit(values<float>(r.out)[5])) << "the element's own bits";
    }
  }
}

TEST(Topk, RefusesMoreThanThereAre) {
  const Tensor x(DType::float32, {2, 3}), number(DType::float32, {});
  expect_error(
      ErrorKind::value, [&] { topk(x, {.k = 4}); },
      "topk: k must be in [0, 3], at most 64 and the size of axis 1, got 4");
  expect_error(
      ErrorKind::axis, [&] { topk(x, {.axis = 2}); }, "topk: axis must be in [-2, 2), got 2");
  expect_error(
      ErrorKind::axis, [&] { topk(number); }, "topk: x must have an axis, got a single number");
}

TEST(Topk, WritesIndicesOnlyWhereTheyAreWanted) {
  std::vector<float> x = {1, 3, 2}, out(2);
  topk({out.data(), DType::float32, {2}}, {x.data(), DType::float32, {3}}, {.k = 2});
  EXPECT_EQ(out, (std::vector<float>{3, 2}));
}

}  // namespace
}  // namespace tensorcraft
