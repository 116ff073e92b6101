// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gated_activation/gated_activation.hpp"

#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;
using test::values;

TEST(GatedActivation, IsTheActivationOfTheFirstHalfTimesTheSecond) {
  Tensor x(DType::float32, {3, 10});
  for (int i = 0; i < 30; ++i) x.data_as<float>()[i] = std::sin(float(i)) * 4;
  const TensorView gate = x.view().slice(1, 0, 5), up = x.view().slice(1, 5, 10);
  for (const char* variant : {"cpu", "reference"}) {
    const auto expect = [&](const Tensor& got, const Tensor& activated) {
      const auto wanted = values(multiply(activated, up)), found = values(got);
      for (size_t i = 0; i < wanted.size(); ++i)
        EXPECT_NEAR(found[i], wanted[i], 1e-5f) << variant << ", element " << i;
    };
    expect(silu_and_mul(x, {.variant = variant}), silu(gate));
    expect(gelu_and_mul(x, {.variant = variant}), gelu(gate));
    const auto tanh = GeluApproximation::tanh;
    expect(gelu_and_mul(x, {.approximate = tanh, .variant = variant}),
           gelu(gate, {.approximate = tanh}));
  }
}

TEST(GatedActivation, KeepsANanOfEitherHalf) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> in = {nan, 1, 2, 1, nan, 2};
  const TensorView x(in.data(), DType::float32, {6});
  for (const char* variant : {"cpu", "reference"}) {
    const Tensor y = silu_and_mul(x, {.variant = variant});
    EXPECT_TRUE(std::isnan(y.data_as<float>()[0]) && std::isnan(y.data_as<float>()[1])) << variant;
    EXPECT_FALSE(std::isnan(y.data_as<float>()[2])) << variant;
  }
}

TEST(GatedActivation, RefusesRowsWithoutTwoHalvesOtherDtypesAndMemoryOfX) {
  Tensor odd(DType::float32, {2, 3}), integers(DType::int32, {2, 4}), x(DType::float32, {2, 4});
  expect_error(
      ErrorKind::value, [&] { silu_and_mul(odd); },
      "silu_and_mul: x: the last axis must have an even length, gates then what they multiply, got "
      "shape [2, 3]");
  expect_error(
      ErrorKind::type, [&] { gelu_and_mul(integers); },
      "gelu_and_mul: x: Dtype value [int32] not in the allowed options: [float32, float16, "
      "bfloat16]"
      "; tc.astype(x, tc.float32) converts it");
  expect_error(
      ErrorKind::value, [&] { silu_and_mul(x.view().slice(1, 0, 2), x); },
      "silu_and_mul: out overlaps the memory of x; give it memory of its own");
}

}  // namespace
}  // namespace tensorcraft
