// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/norm/norm.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <numeric>
#include <span>
#include <vector>

// A layer norm and the GELU after it, against both in double.
namespace tensorcraft {
namespace {

using test::normal_tensor;

std::vector<double> norm_then_gelu(std::span<const float> x, std::span<const float> weight,
                                   std::span<const float> bias, double eps) {
  std::vector<double> out;
  const size_t cols = weight.size();
  for (size_t row = 0; row < x.size(); row += cols) {
    const auto values = x.subspan(row, cols);
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / double(cols);
    double squares = 0;
    for (const float value : values) squares += (value - mean) * (value - mean);
    const double scale = 1 / std::sqrt(squares / double(cols) + eps);
    for (size_t i = 0; i < cols; ++i) {
      const double y = (values[i] - mean) * scale * weight[i] + bias[i];
      out.push_back(0.5 * y * (1 + std::erf(y / std::sqrt(2.0))));
    }
  }
  return out;
}

TEST(NormActivation, IsLayerNormThenGeluInDouble) {
  const Tensor x = normal_tensor({37, 769}, DType::float32, 1),
               weight = normal_tensor({769}, DType::float32, 2),
               bias = normal_tensor({769}, DType::float32, 3);
  const auto values = x.to_vector<float>(), w = weight.to_vector<float>(),
             b = bias.to_vector<float>();
  const std::vector<double> expected = norm_then_gelu(values, w, b, 1e-5);
  for (const Device device : test::places()) {
    const Tensor in = x.to(device), weights = weight.to(device), biases = bias.to(device);
    const Tensor out =
        layer_norm(in, {.weight = weights, .bias = biases, .activation = Activation::gelu}).out;
    const std::vector<float> got = out.to_vector<float>();
    ASSERT_EQ(got.size(), expected.size());
    EXPECT_TRUE(test::validate_kernel_correctness(got.data(), expected.data(), int64_t(got.size()),
                                                  {.rtol = 1e-4, .atol = 1e-5}, std::cout))
        << device;
  }
}

}  // namespace
}  // namespace tensorcraft
