// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/tensorcraft.hpp"
#include "tests/ops/property.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/tolerance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

// Formulas of single elements, of rows and of moves.
namespace tensorcraft::test {
namespace {

using Floats = std::vector<float>;

class PropertyOfRows : public Property {};
INSTANTIATE_TEST_SUITE_P(Variants, PropertyOfRows, ::testing::ValuesIn(rows_of_properties()),
                         name_of_rows);

TEST_P(PropertyOfRows, AdditionIsExact) {
  for_many_cases([&](Random& random) {
    const int64_t n = between(random, 1, 5000);
    const Tensor a = normal_tensor({n}, random, 100), b = normal_tensor({n}, random);
    const Floats x = values(a), y = values(b),
                 sum = values(add(a, b, {.variant = GetParam().variant}));
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(sum[i], x[i] + y[i]) << i;
  });
}

// The formulas in double.
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double gelu_tanh_of(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

TEST_P(PropertyOfRows, ActivationsFollowTheirFormulas) {
  for_many_cases([&](Random& random) {
    const DType dtype = any_float(random);
    const Tensor x =
        astype(test::normal_tensor({between(random, 1, 500)}, random, 0, 4), {.dtype = dtype})
            .to(device_);
    const std::vector<double> in = doubles(x);
    const float alpha = real_between(random, 0.01f, 2);
    const auto check = [&](const Tensor& y, auto&& formula, const char* name) {
      const std::vector<double> out = doubles(y);
      std::vector<double> expected(in.size());
      std::transform(in.begin(), in.end(), expected.begin(), formula);
      const auto n = int64_t(in.size());
      const double rounding = 2e-6 + 1.01 * unit_roundoff(dtype);
      for (const ToleranceConfig allowed :
           {ToleranceConfig{rounding, 1e-6}, ToleranceConfig::of(dtype)}) {
        const Comparison c = compare(out.data(), expected.data(), n, allowed);
        ASSERT_TRUE(bool(c)) << name << in[size_t(c.index)] << ", " << dtype << ": " << c;
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

TEST_P(PropertyOfRows, SoftmaxIsADistributionByItsFormula) {
  for_many_cases([&](Random& random) {
    const int64_t rows = between(random, 1, 5), cols = between(random, 1, 1500);
    const Tensor x = normal_tensor({rows, cols}, random, 5);
    const Floats in = values(x), out = values(softmax(x, {.variant = GetParam().variant}));
    for (int64_t row = 0; row < rows; ++row) {
      const auto at = [&](const Floats& from, int64_t i) { return from[size_t(row * cols + i)]; };
      double top = -std::numeric_limits<double>::infinity(), sum = 0, total = 0;
      for (int64_t i = 0; i < cols; ++i) top = std::max(top, double(at(in, i)));
      for (int64_t i = 0; i < cols; ++i) sum += std::exp(double(at(in, i)) - top);
      for (int64_t i = 0; i < cols; ++i) {
        ASSERT_GE(at(out, i), 0.0f);
        ASSERT_NEAR(at(out, i), std::exp(double(at(in, i)) - top) / sum, 2e-6);
        total += at(out, i);
      }
      ASSERT_NEAR(total, 1, 1e-5) << rows << " x " << cols;
    }
  });
}

// The statistics of a row, in double.
struct Statistics {
  double mean = 0, variance = 0;
};
template <class Element>  // element(i)
Statistics statistics_of(int64_t n, Element&& element) {
  Statistics s;
  for (int64_t i = 0; i < n; ++i) s.mean += element(i) / double(n);
  for (int64_t i = 0; i < n; ++i) s.variance += std::pow(element(i) - s.mean, 2) / double(n);
  return s;
}

TEST_P(PropertyOfRows, LayerNormGivesRowsMeanZeroAndVarianceOne) {
  for_many_cases([&](Random& random) {
    const int64_t rows = between(random, 1, 5), cols = between(random, 32, 2000);
    const Tensor x = normal_tensor({rows, cols}, random, real_between(random, 0.5f, 10),
                                   real_between(random, -100, 100));
    const Floats y = values(layer_norm(x, {.variant = GetParam().variant}).out);
    for (int64_t row = 0; row < rows; ++row) {
      const Statistics s =
          statistics_of(cols, [&](int64_t i) { return double(y[size_t(row * cols + i)]); });
      ASSERT_NEAR(s.mean, 0, 1e-5) << rows << " x " << cols << ", row " << row;
      ASSERT_NEAR(s.variance, 1, 1e-3) << rows << " x " << cols << ", row " << row;
    }
  });
}

TEST_P(PropertyOfRows, LayerNormFollowsItsFormulaForAnyWeightAndBias) {
  for_many_cases([&](Random& random) {
    const int64_t rows = between(random, 1, 4), cols = between(random, 1, 300);
    const Tensor x = normal_tensor({rows, cols}, random), weight = normal_tensor({cols}, random),
                 bias = normal_tensor({cols}, random);
    const float eps = random() % 2 ? 1e-5f : 0.3f;
    const Floats in = values(x), w = values(weight), b = values(bias),
                 y = values(layer_norm(x, {.weight = weight.view(),
                                           .bias = bias.view(),
                                           .eps = eps,
                                           .variant = GetParam().variant})
                                .out);
    for (int64_t row = 0; row < rows; ++row) {
      const auto element = [&](int64_t i) { return double(in[size_t(row * cols + i)]); };
      const Statistics s = statistics_of(cols, element);
      for (int64_t i = 0; i < cols; ++i)
        ASSERT_NEAR(y[size_t(row * cols + i)],
                    (element(i) - s.mean) / std::sqrt(s.variance + double(eps)) * w[size_t(i)] +
                        b[size_t(i)],
                    2e-5)
            << row << ", " << i;
    }
  });
}

TEST_P(PropertyOfRows, RmsNormDividesByTheRootOfTheMeanSquare) {
  for_many_cases([&](Random& random) {
    const int64_t rows = between(random, 1, 4), cols = between(random, 1, 2000);
    const Tensor x = normal_tensor({rows, cols}, random, 2, 0.5f),
                 weight = normal_tensor({cols}, random, 2, 0.5f);
    const float eps = random() % 2 ? 1e-6f : 0.3f;
    const Floats
        in = values(x),
        w = values(weight),
        y = values(
            rms_norm(x, {.weight = weight.view(), .eps = eps, .variant = GetParam().variant}).out);
    for (int64_t row = 0; row < rows; ++row) {
      const auto element = [&](int64_t i) { return double(in[size_t(row * cols + i)]); };
      double squares = 0;
      for (int64_t i = 0; i < cols; ++i) squares += element(i) * element(i);
      const double rms = std::sqrt(squares / double(cols) + double(eps));
      for (int64_t i = 0; i < cols; ++i) {
        const double expected = element(i) / rms * w[size_t(i)];
        ASSERT_NEAR(y[size_t(row * cols + i)], expected, 1e-5 + 1e-5 * std::abs(expected));
      }
    }
  });
}

TEST_P(PropertyOfRows, BatchNormNormalisesEachChannelOverImagesAndPlaces) {
  for_many_cases([&](Random& random) {
    const int64_t images = between(random, 2, 6), channels = between(random, 1, 5),
                  places = between(random, 2, 12) * between(random, 2, 12);
    const Tensor x = normal_tensor({images, channels, places}, random, 3, 20),
                 weight = normal_tensor({channels}, random),
                 bias = normal_tensor({channels}, random);
    const auto trained = [&](const BatchNormOptions& options) {
      return values(batch_norm(x, options).out);
    };
    const Floats in = values(x), w = values(weight), b = values(bias),
                 y = trained({.training = true, .variant = GetParam().variant}),
                 scaled = trained({.weight = weight.view(),
                                   .bias = bias.view(),
                                   .training = true,
                                   .variant = GetParam().variant});
    for (int64_t c = 0; c < channels; ++c) {
      const auto place = [&](int64_t i) {
        return size_t((i / places * channels + c) * places + i % places);
      };
      const int64_t count = images * places;
      const Statistics out = statistics_of(count, [&](int64_t i) { return double(y[place(i)]); });
      ASSERT_NEAR(out.mean, 0, 1e-5);
      ASSERT_NEAR(out.variance, 1, 1e-3);
      const Statistics s = statistics_of(count, [&](int64_t i) { return double(in[place(i)]); });
      for (int64_t i = 0; i < count; ++i) {
        const double expected =
            (in[place(i)] - s.mean) / std::sqrt(s.variance + 1e-5) * w[size_t(c)] + b[size_t(c)];
        ASSERT_NEAR(scaled[place(i)], expected, 5e-5) << "channel " << c;
      }
    }
  });
}

// Bits move, so any of them may stand in an element.
TEST_P(PropertyOfRows, TransposedTwiceIsTheSameBits) {
  for_many_cases([&](Random& random) {
    const DType all[] = {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn,
                         DType::int8,    DType::int16,   DType::int32,    DType::int64};
    const DType dtype = all[random() % std::size(all)];
    if (!has_kernels_of(dtype)) return;
    Dims shape = {between(random, 1, 70), between(random, 1, 70)};
    if (random() % 2) shape = {between(random, 1, 4), shape[0], shape[1]};
    Tensor x(dtype, shape);
    std::vector<std::byte> bits(x.nbytes());
    for (std::byte& b : bits) b = std::byte(random());
    x.copy_from_host(bits.data(), bits.size());
    const MoveOptions by{.variant = GetParam().variant};
    ASSERT_EQ(bytes_of(transpose(transpose(x.to(device_), by), by)), bits)
        << to_string(dtype) << ' ' << x.size();
  });
}

TEST_P(PropertyOfRows, RopeTurnsPairsByTheirAnglesComputedOrCached) {
  for_many_cases([&](Random& random) {
    const int64_t seq = between(random, 1, 4), heads = between(random, 1, 3),
                  half = between(random, 1, 40), dim = 2 * half, longest = 200,
                  start = between(random, 0, longest - seq);
    const auto style = random() % 2 ? RopeStyle::Half : RopeStyle::Interleaved;
    const Tensor x = normal_tensor({2, seq, heads, dim}, random);
    const auto angle = [&](int64_t position, int64_t pair) {
      return double(position) * std::pow(1e4, -double(pair) / double(half));
    };
    Tensor cos(DType::float32, {longest, half}), sin(DType::float32, {longest, half});
    for (int64_t i = 0; i < cos.size(); ++i) {
      cos.data_as<float>()[i] = float(std::cos(angle(i / half, i % half)));
      sin.data_as<float>()[i] = float(std::sin(angle(i / half, i % half)));
    }
    cos = cos.to(device_), sin = sin.to(device_);
    RopeOptions options{.start_pos = start, .style = style, .variant = GetParam().variant};
    if (random() % 2) options.cos = cos, options.sin = sin;
    const Floats in = values(x), out = values(rope(x, options).out);
    for (int64_t pair = 0; pair < x.size() / 2; ++pair) {
      const int64_t head = pair / half, i = pair % half, token = head / heads % seq;
      const int64_t first = head * dim + (style == RopeStyle::Half ? i : 2 * i),
                    second = first + (style == RopeStyle::Half ? half : 1);
      const double a = in[size_t(first)], b = in[size_t(second)], turn = angle(start + token, i);
      ASSERT_NEAR(out[size_t(first)], a * std::cos(turn) - b * std::sin(turn), 2e-5);
      ASSERT_NEAR(out[size_t(second)], a * std::sin(turn) + b * std::cos(turn), 2e-5);
      const double length = a * a + b * b;
      ASSERT_NEAR(
          std::pow(double(out[size_t(first)]), 2) + std::pow(double(out[size_t(second)]), 2),
          length, 1e-5 * (1 + length));
    }
  });
}

TEST_P(PropertyOfRows, AFusedNormEqualsItsOperatorsInTurn) {
  for_many_cases([&](Random& random) {
    const Dims shape = {between(random, 1, 4), between(random, 1, 300)};
    const auto v = GetParam().variant;
    const Tensor x = normal_tensor(shape, random), residual = normal_tensor(shape, random);
    const Tensor sum = add(x, residual);
    const auto fused =
        layer_norm(x, {.residual = residual.view(), .activation = Activation::gelu, .variant = v});
    expect_close(fused.out, gelu(layer_norm(sum, {.variant = v}).out), 1e-5, 2e-5);
    expect_close(rms_norm(x, {.residual = residual.view(), .variant = v}).out,
                 rms_norm(sum, {.variant = v}).out, 1e-5, 1e-5);
  });
}

}  // namespace
}  // namespace tensorcraft::test
