// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/quantize/quantize.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/ops/gemm/gemm.hpp"
#include "tensorcraft/ops/permute/permute.hpp"
#include "tensorcraft/ops/quantize/scale.cuh"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;
using test::normal_tensor;
using test::values;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

std::vector<uint8_t> bytes(const Tensor& t) {
  return {t.data_as<uint8_t>(), t.data_as<uint8_t>() + t.nbytes()};
}

// Any bits: normal, subnormal, infinite and NaN alike.
float any_float(std::mt19937& random) { return bit_cast<float>(uint32_t(random())); }

void expect_codes_of_the_division(float x, float scale) {
  const float exact = x / scale, got = kernel::quantize::ShortDivisor(scale).divide(x);
  ASSERT_EQ(e4m3(got).bits, e4m3(exact).bits) << x << " / " << scale;
  ASSERT_EQ(e5m2(got).bits, e5m2(exact).bits) << x << " / " << scale;
  const auto integer = [](float value) { return to_code<int8_t>(value); };
  ASSERT_EQ(integer(got), integer(exact)) << x << " / " << scale;
}

// Each mantissa of a type, by the scales that put its quotient within two floats of the middle
// between two codes, the place at which a code is decided. All middles are odd numbers times a
// power of two.
void expect_codes_near_every_middle(int mantissa_bits) {
  for (int mantissa = 1 << (mantissa_bits - 1); mantissa < 1 << mantissa_bits; ++mantissa)
    for (int middle = 1; middle < 512; middle += 2) {
      const auto x = float(mantissa);
      float scale = x / float(middle);
      for (int i = 0; i < 2; ++i) scale = std::nextafter(scale, 0.0f);
      for (int i = 0; i < 5; ++i, scale = std::nextafter(scale, kInf))
        for (const float power : {0x1p-7f, 0x1p1f, 0x1p10f, 0x1p17f})
          expect_codes_of_the_division(x, scale * power);
    }
}

TEST(ShortDivisor, GivesTheCodesOfADivision) {
  expect_codes_near_every_middle(8);
  expect_codes_near_every_middle(11);
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 300000; ++i) {
    const float by = any_float(random), x = float(bf16(any_float(random)));
    expect_codes_of_the_division(x, by);
    expect_codes_of_the_division(float(bf16(by * float(random() % 1000))), by);
    expect_codes_of_the_division(float(f16(by * float(random() % 1000))), by);
  }
  for (const float x : {0.0f, -0.0f, 1.0f, kInf, -kInf, kNotANumber, 1e-40f, 3e38f, -3e38f})
    for (const float by :
         {0.0f, -0.0f, 1e-45f, 1e-30f, 1.0f, -3.0f, 1e30f, 3e38f, kInf, -kInf, kNotANumber})
      expect_codes_of_the_division(x, by);
}

// The definition, one element at a time, by the conversions of the library.
template <class Q>
void expect_rule(DType dtype, float largest) {
  std::mt19937 random(7);
  const Tensor x = normal_tensor({40, 384}, random, 0, 2);
  for (const char* variant : {"cpu", "reference"}) {
    const QuantizeResult r =
        quantize(x, {.dtype = dtype, .scheme = QuantizeScheme::token, .variant = variant});
    for (int64_t row = 0; row < 40; ++row) {
      const float* in = x.data_as<float>() + row * 384;
      float amax = 0;
      for (int i = 0; i < 384; ++i) amax = std::max(amax, std::abs(in[i]));
      const float scale = amax / largest;
      ASSERT_EQ(r.scales.data_as<float>()[row], scale);
      for (int i = 0; i < 384; ++i)
        ASSERT_EQ(r.out.data_as<Q>()[row * 384 + i].bits, Q(in[i] / scale).bits) << variant;
    }
  }
}

TEST(Quantize, Float8HasTheBitsOfTheConversionOfXOverScale) {
  expect_rule<e4m3>(DType::float8_e4m3fn, 448);
  expect_rule<e5m2>(DType::float8_e5m2, 57344);
}

TEST(Quantize, Int8IsWithinHalfAScaleOfXAndSaturates) {
  std::mt19937 random(8);
  for (const bool asymmetric : {false, true})
    for (const auto scheme :
         {QuantizeScheme::tensor, QuantizeScheme::token, QuantizeScheme::block}) {
      const Tensor x = normal_tensor({7, 300}, random, 5, 2);
      const QuantizeResult r =
          quantize(x, {.dtype = DType::int8, .scheme = scheme, .asymmetric = asymmetric});
      DequantizeOptions back{.scheme = scheme};
      if (asymmetric) back.zero_point = r.zero_point.view();
      const auto y = values(dequantize(r.out, r.scales, back)), in = values(x),
                 scales = values(r.scales);
      const float scale = *std::max_element(scales.begin(), scales.end());
      for (size_t i = 0; i < in.size(); ++i) ASSERT_LE(std::abs(y[i] - in[i]), scale * 0.501f);
    }
  std::vector<float> in = {-1000, 1000, 0.4f, 0.5f, 1.5f, -2.5f, kNotANumber, kInf}, scale = {1};
  const QuantizeResult r = quantize(
      TensorView(in.data(), DType::float32, {8}),
      {.dtype = DType::int8, .given_scales = TensorView(scale.data(), DType::float32, {})});
  const std::vector<int8_t> got(r.out.data_as<int8_t>(), r.out.data_as<int8_t>() + 8);
  EXPECT_EQ(got, (std::vector<int8_t>{-128, 127, 0, 0, 2, -2, 0, 127}));
  EXPECT_EQ(r.scales.size(), 0);
}

// Calls f with what each variant of the host and the emulator gives that takes the call.
template <class F>
int for_each_variant(const TensorView& x, QuantizeOptions options, F&& f) {
  int calls = 0;
  for (const auto& v : find_operator("quantize").description().variants) {
    const bool on_host = v.device == DeviceType::cpu;
    if (!on_host && devices().back() != Device::simt()) continue;
    options.variant = v.name;
    std::optional<QuantizeResult> result;
    try {
      result = quantize(copy(x).to(on_host ? Device::cpu() : Device::simt()), options);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::unsupported) << e.what();
      continue;
    }
    SCOPED_TRACE(join(v.name, ' ', x.dtype(), " to ", options.dtype));
    f(*result);
    ++calls;
  }
  return calls;
}

TEST(Quantize, ANanMakesTheScaleOfItsGroupOneAndChangesNoOther) {
  std::vector<float> in(256, 1);
  in[3] = kNotANumber;
  in[4] = 1000;
  in[5] = -kInf;
  const Tensor x = astype(TensorView(in.data(), DType::float32, {1, 256}), {DType::bfloat16});
  for_each_variant(x, {.scheme = QuantizeScheme::block}, [](const QuantizeResult& r) {
    EXPECT_EQ(values(r.scales), (std::vector<float>{1, 1 / 448.0f}));
    const auto codes = values<uint8_t>(r.out);
    EXPECT_EQ(codes[0], 0x38) << "1 is 1";
    EXPECT_EQ(codes[3], 0x7f) << "a NaN";
    EXPECT_EQ(codes[4], 0x7e) << "saturated";
    EXPECT_EQ(codes[5], 0xfe) << "an infinity too";
    for (size_t i = 128; i < 256; ++i) ASSERT_EQ(codes[i], 0x7e);
  });
  for_each_variant(x, {.dtype = DType::int8, .scheme = QuantizeScheme::block},
                   [](const QuantizeResult& r) {
                     const auto codes = values<int8_t>(r.out);
                     EXPECT_EQ(std::vector<int8_t>(codes.begin(), codes.begin() + 6),
                               (std::vector<int8_t>{1, 1, 1, 0, 127, -128}));
                   });
}

TEST(Quantize, ANanOrAnInfinityMakesAnyComputedScaleOne) {
  using enum QuantizeScheme;
  for (const float special : {kNotANumber, kInf, -kInf})
    for (const DType wide : {DType::float32, DType::float16, DType::bfloat16})
      for (const DType narrow : {DType::int8, DType::float8_e4m3fn, DType::float8_e5m2})
        for (const auto scheme : {tensor, token, block})
          for (const bool asymmetric : {false, narrow == DType::int8}) {
            std::vector<float> in(384, 2);
            in[17] = special;
            const Tensor x = astype(TensorView(in.data(), DType::float32, {1, 384}), {wide});
            const QuantizeOptions options{
                .dtype = narrow, .scheme = scheme, .asymmetric = asymmetric};
            std::optional<std::vector<uint8_t>> codes;
            const int calls = for_each_variant(x, options, [&](const QuantizeResult& r) {
              EXPECT_EQ(values(r.scales)[0], 1);
              if (asymmetric) {
                EXPECT_EQ(values<int32_t>(r.zero_point)[0], 0);
              }
              if (!codes) codes = values<uint8_t>(r.out);
              EXPECT_EQ(values<uint8_t>(r.out), *codes);
            });
            EXPECT_GE(calls, devices().back() == Device::simt() ? 3 : 2);
          }
}

TEST(Quantize, ARangeThatIsWiderThanTheLargestFloatHasAFiniteScale) {
  using enum QuantizeScheme;
  for (const float high : {3e38f, std::numeric_limits<float>::max()})
    for (const auto scheme : {tensor, token, block})
      for (const bool power_of_two : {false, true}) {
        std::vector<float> in(384, 0);
        in[0] = high;
        in[1] = -high;
        in[2] = high / 2;
        const QuantizeOptions options{.dtype = DType::int8,
                                      .scheme = scheme,
                                      .power_of_two = power_of_two,
                                      .asymmetric = true};
        const TensorView x(in.data(), DType::float32, {1, 384});
        for_each_variant(x, options, [&](const QuantizeResult& r) {
          const float scale = values(r.scales)[0], exact = float(2.0 * high / 255);
          EXPECT_FLOAT_EQ(scale, power_of_two ? std::exp2(std::ceil(std::log2(exact))) : exact);
          const int zero = values<int32_t>(r.zero_point)[0];
          const auto codes = values<int8_t>(r.out);
          for (size_t i = 0; i < 4; ++i)
            EXPECT_NEAR((double(codes[i]) - zero) * scale, double(in[i]), 0.51 * scale);
        });
      }
}

TEST(Quantize, ScalesOfPowersOfTwoAreTheNextOnesUp) {
  std::mt19937 random(9);
  const Tensor x = normal_tensor({20, 128}, random, 0, 2);
  const auto plain = values(quantize(x, {.scheme = QuantizeScheme::token}).scales);
  const auto powers =
      values(quantize(x, {.scheme = QuantizeScheme::token, .power_of_two = true}).scales);
  for (size_t i = 0; i < plain.size(); ++i) {
    int exponent = 0;
    EXPECT_EQ(std::frexp(powers[i], &exponent), 0.5f);
    EXPECT_TRUE(powers[i] >= plain[i] && powers[i] < 2 * plain[i]) << powers[i];
  }
  EXPECT_EQ(kernel::quantize::power_of_two_above(0.25f), 0.25f);
}

TEST(Quantize, ColumnsOfScalesAreTheTransposeOfRowsAndPaddedWithZeros) {
  std::mt19937 random(10);
  const Tensor x = normal_tensor({3, 2, 300}, random, 0, 2);
  for (const char* variant : {"cpu", "reference"}) {
    const QuantizeResult rows = quantize(x, {.scheme = QuantizeScheme::block, .variant = variant});
    const QuantizeResult columns = quantize(x, {.scheme = QuantizeScheme::block,
                                                .scales_layout = ScalesLayout::column,
                                                .variant = variant});
    ASSERT_EQ(rows.scales.shape(), (Dims{3, 2, 3}));
    ASSERT_EQ(columns.scales.shape(), (Dims{3, 8}));
    EXPECT_EQ(bytes(rows.out), bytes(columns.out));
    for (int block = 0; block < 3; ++block)
      for (int row = 0; row < 8; ++row)
        EXPECT_EQ(columns.scales.data_as<float>()[block * 8 + row],
                  row < 6 ? rows.scales.data_as<float>()[row * 3 + block] : 0.0f);
    const auto a = dequantize(rows.out, rows.scales, {.scheme = QuantizeScheme::block}),
               b = dequantize(
                   columns.out, columns.scales,
                   {.scheme = QuantizeScheme::block, .scales_layout = ScalesLayout::column});
    EXPECT_EQ(values(a), values(b));
  }
}

// The only variant of two kernels: its partial results are on the device of x.
TEST(Quantize, TwoLaunchesGiveTheBitsOfOneEveryTime) {
  if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the emulator";
  std::mt19937 random(11);
  for (const bool asymmetric : {false, true}) {
    const Tensor host = normal_tensor({33, 1024}, random, 1, 2), x = host.to(Device::simt());
    const QuantizeOptions options{.dtype = DType::int8, .asymmetric = asymmetric};
    const QuantizeResult expected = quantize(host, options);
    QuantizeOptions forced = options;
    forced.variant = "two_launches";
    for (int i = 0; i < 3; ++i) {
      const QuantizeResult r = quantize(x, forced);
      EXPECT_EQ(bytes(r.out), bytes(expected.out));
      EXPECT_EQ(bytes(r.scales), bytes(expected.scales));
      EXPECT_EQ(bytes(r.zero_point), bytes(expected.zero_point));
    }
  }
}

TEST(Quantize, RefusesOptionsThatContradictEachOther) {
  Tensor x(DType::float32, {2, 128}), scale(DType::float32, {}), zero(DType::int32, {}),
      q(DType::int8, {2, 128});
  expect_error(
      ErrorKind::type, [&] { quantize(x, {.dtype = DType::float16}); },
      "quantize: dtype must be float8_e4m3fn, float8_e5m2 or int8, got float16");
  expect_error(
      ErrorKind::value, [&] { quantize(x, {.asymmetric = true}); },
      "quantize: zero_point must not be given for float8; it is for dtype int8");
  expect_error(
      ErrorKind::value,
      [&] { quantize(x, {.dtype = DType::int8, .given_zero_point = zero.view()}); },
      "quantize: zero_point is given without scales; give both");
  expect_error(
      ErrorKind::value, [&] { quantize(x, {.power_of_two = true, .given_scales = scale.view()}); },
      "quantize: takes asymmetric and power_of_two to compute scales; leave them out if scales are "
      "given");
  expect_error(
      ErrorKind::value, [&] { quantize(q, x, {.dtype = DType::int8}); },
      "quantize: give memory for the scales that are computed, and where asymmetric for zero "
      "points");
  expect_error(
      ErrorKind::value,
      [&] {
        quantize(x, {.scheme = QuantizeScheme::block,
                     .block_shape = BlockShape::square,
                     .scales_layout = ScalesLayout::column});
      },
      "quantize: scales_layout column is for blocks of 1x128, not of 128x128");
  Tensor empty(DType::float32, {0, 4});
  expect_error(
      ErrorKind::value, [&] { quantize(empty); },
      "quantize: x: shape [0, 4] has no elements to find a scale of; give scales");
  EXPECT_EQ(quantize(empty, {.scheme = QuantizeScheme::token}).out.size(), 0);
  EXPECT_THROW(quantize(x, {.scheme = QuantizeScheme::token, .given_scales = scale.view()}), Error);
  EXPECT_THROW(dequantize(x, scale), Error);
  EXPECT_THROW(dequantize(q, scale, {.dtype = DType::int8}), Error);
}

// Scales beside an operand as it lies are those of its rows, and the vector of b's columns.
TEST(Quantize, ScalesFitTheProductsOfTheirOperands) {
  for (const DType dtype : {DType::float8_e4m3fn, DType::int8})
    for (const int64_t k : {96, 300}) {
      const QuantizeOptions by_row{.dtype = dtype, .scheme = QuantizeScheme::token};
      const auto a = quantize(normal_tensor({5, k}), by_row);
      const auto b = quantize(normal_tensor({40, k}), by_row);
      const TensorView codes = b.out, scales = b.scales;
      const auto product = [&](const TensorView& of_b, bool transposed, const TensorView& scale) {
        return values(gemm(a.out, of_b,
                           {.transpose_b = transposed,
                            .a_scale = a.scales,
                            .b_scale = scale,
                            .out_dtype = DType::float32}));
      };
      const TensorView column = scales.select(1, 0), turned = codes.transpose(0, 1);
      // Where one block is all of k, its scale may be a factor of the sum's parts.
      const auto expect_near = [](const std::vector<float>& got, const std::vector<float>& wanted) {
        ASSERT_EQ(got.size(), wanted.size());
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_NEAR(got[i], wanted[i], 1e-4 + 1e-5 * std::abs(wanted[i]));
      };
      expect_near(product(codes, true, scales), product(codes, true, column));
      expect_near(product(turned, false, scales.transpose(0, 1)), product(turned, false, column));
    }
}

// A list of one number, as Python gives it, is that number.
TEST(Quantize, OneNumberMayHaveAnAxis) {
  const Tensor x = normal_tensor({4, 8}), scale = normal_tensor({1}), number = normal_tensor({});
  const Tensor same = quantize(x, {.given_scales = number.view()}).out;
  EXPECT_EQ(bytes(quantize(x, {.given_scales = scale.view()}).out), bytes(same));
  EXPECT_EQ(values(dequantize(same, scale)), values(dequantize(same, number)));
}

}  // namespace
}  // namespace tensorcraft
