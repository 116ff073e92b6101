// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/tensorcraft.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

// Properties that hold for any input, each tried on 100 random ones on the CPU and on the SIMT
// device. A failure prints the seed that gives it again.
namespace tensorcraft {
namespace {

using test::at;
using Random = std::mt19937;

int64_t between(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

void expect_same(const Tensor& x, const Tensor& y, double relative, double absolute) {
  ASSERT_EQ(x.size(), y.size());
  for (int64_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(at(x, i), at(y, i), absolute + relative * std::abs(at(y, i))) << "element " << i;
}

// One row of every table, and the row that plain operators are compared by.
struct Rows {
  Device device;
  std::string_view variant, reference;
};

constexpr int kCases = 100;

class Property : public ::testing::TestWithParam<Rows> {
 protected:
  // Runs a check on random cases, and stops at the first that fails.
  void for_many_cases(const std::function<void(Random&)>& check) {
    const unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    for (int i = 0; i < kCases && !HasFatalFailure(); ++i) check(random);
  }
  Tensor normal_tensor(const Dims& shape, Random& random, float deviation = 1) {
    return test::normal_tensor(shape, random, 0, deviation, GetParam().device);
  }
};

std::vector<Rows> rows() {
  std::vector<Rows> all{{Device::cpu(), "cpu", "reference"},
                        {Device::cpu(), "reference", "reference"}};
  if (devices().back() == Device::simt()) {
    all.push_back({Device::simt(), "", "naive"});
    all.push_back({Device::simt(), "naive", "naive"});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Variants, Property, ::testing::ValuesIn(rows()), [](const auto& info) {
  const Rows& r = info.param;
  return join(r.device == Device::simt() ? "simt_" : "", r.variant.empty() ? "best" : r.variant);
});

TEST_P(Property, AdditionIsExact) {
  for_many_cases([&](Random& random) {
    const int64_t n = between(random, 1, 5000);
    const Tensor a = normal_tensor({n}, random, 100), b = normal_tensor({n}, random);
    const Tensor c = add(a, b, {.variant = GetParam().variant});
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(at(c, i), at(a, i) + at(b, i)) << i;
  });
}

// The formulas in double.
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double gelu_tanh_of(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

TEST_P(Property, ActivationsFollowTheirFormulas) {
  for_many_cases([&](Random& random) {
    const int64_t n = between(random, 1, 500);
    const Tensor x = normal_tensor({n}, random, 4);
    const float alpha = std::uniform_real_distribution<float>(0.01f, 2)(random);
    const auto check = [&](const Tensor& y, auto&& formula, const char* name) {
      for (int64_t i = 0; i < n; ++i) {
        const double expected = formula(double(at(x, i)));
        ASSERT_NEAR(at(y, i), expected, 1e-6 + 2e-6 * std::abs(expected)) << name << at(x, i);
      }
    };
    const auto v = GetParam().variant;
    check(relu(x, {.variant = v}), [](double t) { return std::max(t, 0.0); }, "relu ");
    check(silu(x, {.variant = v}), [](double t) { return t * sigmoid_of(t); }, "silu ");
    check(gelu(x, {.approximate = GeluApproximation::tanh, .variant = v}), gelu_tanh_of, "gelu ");
    check(
        leaky_relu(x, {.alpha = alpha, .variant = v}),
        [&](double t) { return t > 0 ? t : double(alpha) * t; }, "leaky_relu ");
    check(
        elu(x, {.alpha = alpha, .variant = v}),
        [&](double t) { return t > 0 ? t : double(alpha) * std::expm1(t); }, "elu ");
    check(
        swish(x, {.beta = alpha, .variant = v}),
        [&](double t) { return t * sigmoid_of(double(alpha) * t); }, "swish ");
  });
}

TEST_P(Property, SoftmaxIsADistributionByItsFormula) {
  for_many_cases([&](Random& random) {
    const int64_t rows = between(random, 1, 5), cols = between(random, 1, 1500);
    const Tensor x = normal_tensor({rows, cols}, random, 5);
    const Tensor y = softmax(x, {.variant = GetParam().variant});
    for (int64_t row = 0; row < rows; ++row) {
      double top = -std::numeric_limits<double>::infinity(), sum = 0, total = 0;
      for (int64_t i = 0; i < cols; ++i) top = std::max(top, double(at(x, row * cols + i)));
      for (int64_t i = 0; i < cols; ++i) sum += std::exp(double(at(x, row * cols + i)) - top);
      for (int64_t i = 0; i < cols; ++i) {
        const float value = at(y, row * cols + i);
        ASSERT_GE(value, 0.0f);
        ASSERT_NEAR(value, std::exp(double(at(x, row * cols + i)) - top) / sum, 2e-6);
        total += value;
      }
      ASSERT_NEAR(total, 1, 1e-5) << rows << " x " << cols;
    }
  });
}

TEST_P(Property, GemmIsAlphaTimesTheProductPlusBetaTimesC) {
  for_many_cases([&](Random& random) {
    const int64_t m = between(random, 1, 40), n = between(random, 1, 40),
                  k = between(random, 1, 60);
    const Tensor a = normal_tensor({m, k}, random), b = normal_tensor({k, n}, random);
    Tensor c = normal_tensor({m, n}, random);
    std::uniform_real_distribution<float> factor(-2, 2);
    const float alpha = factor(random), beta = random() % 4 ? factor(random) : 0.0f;
    if (beta == 0) c.data_as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    const Tensor d =
        gemm(a, b, {.c = c, .alpha = alpha, .beta = beta, .variant = GetParam().variant});
    for (int64_t i = 0; i < m * n; ++i) {
      double product = 0, size = 0;
      for (int64_t e = 0; e < k; ++e) {
        const double term = double(at(a, i / n * k + e)) * at(b, e * n + i % n);
        product += term;
        size += std::abs(term);
      }
      const double expected = double(alpha) * product + (beta == 0 ? 0 : double(beta) * at(c, i));
      ASSERT_NEAR(at(d, i), expected, 1e-6 * (1 + 4 * size)) << m << " x " << n << " x " << k;
    }
  });
}

TEST_P(Property, AFusedEpilogueEqualsItsOperatorsInTurn) {
  for_many_cases([&](Random& random) {
    const int64_t m = between(random, 1, 30), n = between(random, 1, 30),
                  k = between(random, 1, 30);
    const auto v = GetParam().variant;
    const Tensor a = normal_tensor({m, k}, random), b = normal_tensor({k, n}, random),
                 bias = normal_tensor({n}, random);
    const Tensor sum = add(gemm(a, b, {.variant = v}), bias);
    const auto fused = [&](Activation activation) {
      return gemm(a, b, {.bias = bias, .activation = activation, .variant = v});
    };
    expect_same(fused(Activation::none), sum, 1e-5, 1e-5);
    expect_same(fused(Activation::relu), relu(sum), 1e-5, 1e-5);
    expect_same(fused(Activation::gelu), gelu(sum), 1e-5, 1e-5);
    expect_same(fused(Activation::gelu_tanh), gelu(sum, {.approximate = GeluApproximation::tanh}),
                1e-5, 1e-5);
    expect_same(fused(Activation::silu), silu(sum), 1e-5, 1e-5);
  });
}

TEST_P(Property, AttentionIsSoftmaxOfScaledScoresTimesTheValues) {
  for_many_cases([&](Random& random) {
    const int64_t heads = between(random, 1, 3), rows = between(random, 1, 20),
                  keys = between(random, 1, 40), dim = 8 * between(random, 1, 8);
    const Tensor q = normal_tensor({1, heads, rows, dim}, random),
                 k = normal_tensor({1, heads, keys, dim}, random),
                 v = normal_tensor({1, heads, keys, dim}, random);
    const Tensor scores =
        gemm(q, k.view().transpose(2, 3),
             {.alpha = 1 / std::sqrt(float(dim)), .variant = GetParam().reference});
    const Tensor weights = softmax(scores, {.variant = GetParam().reference});
    expect_same(attention(q, k, v, {.variant = GetParam().variant}).out,
                gemm(weights, v, {.variant = GetParam().reference}), 1e-5, 1e-5);
  });
}

// The variants of the CPU that this machine has.
std::vector<std::string_view> host_variants_of_gemm() {
  const Tensor a(DType::float32, {2, 2}), b(DType::float32, {2, 2}), out(DType::float32, {2, 2});
  const std::vector<TensorView> inputs{a, b}, outputs{out};
  const op::Operator& op = find_operator("gemm");
  const std::vector<op::Value> options(op.description().options.size());
  std::vector<std::string_view> names;
  for (const auto& row :
       op.explain(outputs, {inputs, options}, device_info(Device::cpu())).variants)
    if (row.accepted && row.variant.name != "reference") names.push_back(row.variant.name);
  return names;
}

TEST(Variants, AllOfTheHostAgreeOnRandomProducts) {
  const auto variants = host_variants_of_gemm();
  ASSERT_NE(std::ranges::find(variants, "cpu"), variants.end());
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int i = 0; i < 100; ++i) {
    const Tensor a = test::normal_tensor({between(random, 1, 70), between(random, 1, 70)}, random);
    const Tensor b = test::normal_tensor({a.shape(1), between(random, 1, 70)}, random);
    const Tensor expected = gemm(a, b, {.variant = "reference"});
    for (const auto variant : variants)
      expect_same(gemm(a, b, {.variant = variant}), expected, 1e-3, 1e-5);
  }
  if (std::ranges::find(variants, "onednn") == variants.end())
    GTEST_SKIP() << "there is no oneDNN: the others agree";
}

}  // namespace
}  // namespace tensorcraft
