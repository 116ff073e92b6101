// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/packed/packed_weight.hpp"

#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error_with;
using test::tensor_of;
using test::values;

Tensor random_weight(int64_t k, int64_t n) {
  std::mt19937 random(3);
  return test::normal_tensor({k, n}, random);
}

TEST(PackWeight, RoundsToTheNearestCode) {
  // One group of 16 along k for each column; the largest is 7, so the scale is 1.
  std::vector<float> w = {7, -7, 0, 0.4f, 0.6f, 1.5f, 2.5f, -0.5f, 3, -3, 6.6f, 0, 0, 0, 0, 0};
  const Tensor one = tensor_of<float>(DType::float32, w, {16, 1}, Device::cpu());
  const PackedWeight packed = pack_weight(one, {.group = 16});
  EXPECT_EQ(packed.format(), PackedFormat::int4);
  EXPECT_EQ(packed.codes().shape(), (Dims{1, 8}));
  EXPECT_EQ(values(unpack_weight(packed)),
            (std::vector<float>{7, -7, 0, 0, 1, 2, 2, 0, 3, -3, 7, 0, 0, 0, 0, 0}));
}

TEST(PackWeight, KeepsEveryValueOfE2m1) {
  std::vector<float> w;
  for (const float value : {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f})
    for (const float sign : {1.0f, -1.0f}) w.push_back(sign * value);
  w.resize(32, 0.0f);
  const Tensor one = tensor_of<float>(DType::float32, w, {32, 1}, Device::cpu());
  for (const PackedFormat format : {PackedFormat::mxfp4, PackedFormat::nvfp4}) {
    const PackedWeight packed = pack_weight(one, {.format = format});
    EXPECT_EQ(packed.format(), format);
    const std::vector<float> back = values(unpack_weight(packed));
    for (size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(back[i], w[i], 1e-6) << i;
  }
  // Halves go to the even code.
  std::vector<float> halves(32, 0.0f);
  halves[0] = 6, halves[1] = 0.25f, halves[2] = 0.75f, halves[3] = 2.5f, halves[4] = -5;
  const Tensor ties = tensor_of<float>(DType::float32, halves, {32, 1}, Device::cpu());
  const auto back = values(unpack_weight(pack_weight(ties, {.format = PackedFormat::mxfp4})));
  EXPECT_EQ((std::vector<float>(back.begin(), back.begin() + 5)),
            (std::vector<float>{6, 0, 1, 2, -4}));
}

TEST(PackWeight, ErrorsAreThoseOfFourBits) {
  const Tensor w = random_weight(256, 24);
  const std::vector<float> from = values(w);
  for (const auto& [format, most] :
       {std::pair(PackedFormat::int4, 0.11), std::pair(PackedFormat::mxfp4, 0.14),
        std::pair(PackedFormat::nvfp4, 0.12)}) {
    const std::vector<float> back = values(unpack_weight(
        pack_weight(w, {.format = format, .group = format == PackedFormat::int4 ? 32 : 0})));
    double difference = 0, norm = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      difference += std::pow(back[i] - from[i], 2);
      norm += std::pow(from[i], 2);
    }
    EXPECT_LT(std::sqrt(difference / norm), most) << to_string(format);
    EXPECT_GT(std::sqrt(difference / norm), 0.02) << to_string(format);
  }
}

// Weights of one side: a code that means 0 lies at the end, so the other codes are all used.
TEST(PackWeight, ZeroPointsAreNearer) {
  std::vector<float> above(32);
  for (size_t i = 0; i < above.size(); ++i) above[i] = 1 + float(i % 16) / 15;
  const Tensor w = tensor_of<float>(DType::float32, above, {32, 1}, Device::cpu());
  const PackedWeight packed = pack_weight(w, {.group = 32, .zero_points = ZeroPoints::integer});
  EXPECT_EQ(packed.zeros()->to_vector<uint8_t>(), std::vector<uint8_t>{0});
  EXPECT_EQ(packed.nbytes(), size_t(16 + 2 + 1));
  const auto worst = [&](const PackedWeight& of) {
    const std::vector<float> back = values(unpack_weight(of));
    float most = 0;
    for (size_t i = 0; i < above.size(); ++i) most = std::max(most, std::fabs(back[i] - above[i]));
    return most;
  };
  EXPECT_LT(worst(packed), 0.075f);
  EXPECT_GT(worst(pack_weight(w, {.group = 32})), 0.12f);
  for (const std::vector<float>& values_of :
       {std::vector<float>(32, 0), std::vector<float>(32, -15), std::vector<float>(32, 15)}) {
    const Tensor same = tensor_of<float>(DType::float32, values_of, {32, 1}, Device::cpu());
    const PackedWeight kept = pack_weight(same, {.group = 32, .zero_points = ZeroPoints::integer});
    EXPECT_EQ(values(unpack_weight(kept)), values_of);
  }
}

// Sixteen levels from what float16 holds on: the same scales, zeros and weights again.
TEST(PackWeight, FloatZeroPointsKeepLevels) {
  constexpr int64_t kK = 64, kN = 5, kGroup = 32;
  std::mt19937 random(11);
  std::vector<float> w(size_t(kK * kN)), scales, zeros;
  for (int64_t n = 0; n < kN; ++n)
    for (int64_t first = 0; first < kK; first += kGroup) {
      scales.push_back(float(f16(0.01f + float(random() % 100) * 0.003f)));
      zeros.push_back(float(f16(float(random() % 100) * 0.04f - 2)));
      for (int64_t i = 0; i < kGroup; ++i)  // both ends are there
        w[size_t((first + i) * kN + n)] =
            float(i < 2 ? 15 * i : int64_t(random() % 16)) * scales.back() + zeros.back();
    }
  const Tensor from = tensor_of<float>(DType::float32, w, {kK, kN}, Device::cpu());
  const PackedWeight packed =
      pack_weight(from, {.group = kGroup, .zero_points = ZeroPoints::floating});
  EXPECT_EQ(packed.format(), PackedFormat::int4);
  EXPECT_EQ(packed.scales().dtype(), DType::float16);
  EXPECT_EQ(values(astype(packed.scales(), {.dtype = DType::float32})), scales);
  EXPECT_EQ(values(astype(*packed.zeros(), {.dtype = DType::float32})), zeros);
  EXPECT_EQ(values(unpack_weight(packed)), w);
  EXPECT_EQ(packed.nbytes(), size_t(kK * kN / 2 + 2 * 2 * kN * kK / kGroup));
}

// Fewer levels than 16, of a greater distance; and one alone.
TEST(PackWeight, FloatZeroPointsFindFewerLevels) {
  std::vector<float> w(32);
  for (size_t i = 0; i < w.size(); ++i) w[i] = 3 + 0.5f * float(i % 12);
  for (const std::vector<float>& weights : {w, std::vector<float>(32, -0.75f)}) {
    const Tensor from = tensor_of<float>(DType::float32, weights, {32, 1}, Device::cpu());
    EXPECT_EQ(values(unpack_weight(
                  pack_weight(from, {.group = 32, .zero_points = ZeroPoints::floating}))),
              weights);
  }
}

// A zero point that float16 does not hold is float32: a thousand and a little, and what overflows.
TEST(PackWeight, FloatZeroPointsAreFloat32WhereFloat16IsTooCoarse) {
  for (const float base : {1001.3f, 1e5f, 0.1f}) {
    std::vector<float> w(32);
    for (size_t i = 0; i < w.size(); ++i) w[i] = base + base * 1e-4f * float(i % 16);
    const Tensor from = tensor_of<float>(DType::float32, w, {32, 1}, Device::cpu());
    const PackedWeight packed =
        pack_weight(from, {.group = 32, .zero_points = ZeroPoints::floating});
    EXPECT_EQ(packed.scales().dtype(), DType::float32) << base;
    const std::vector<float> back = values(unpack_weight(packed));
    for (size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(back[i], w[i], base * 1e-6f) << i;
  }
  const Tensor w = random_weight(64, 3);  // any weights: half a step at most
  const std::vector<float> from = values(w),
                           back = values(unpack_weight(
                               pack_weight(w, {.group = 32, .zero_points = ZeroPoints::floating})));
  for (size_t i = 0; i < from.size(); ++i) EXPECT_NEAR(back[i], from[i], 6.0 / 15 / 2);
}

TEST(PackedWeight, ProductsAreThoseOfTheUnpackedWeight) {
  const Tensor w = random_weight(256, 40);
  std::mt19937 random(5);
  const Tensor a = test::normal_tensor({2, 3, 256}, random);
  const Tensor bias = test::normal_tensor({40}, random);
  std::vector<PackedWeight> all;
  for (const PackedFormat format : {PackedFormat::int4, PackedFormat::mxfp4, PackedFormat::nvfp4})
    all.push_back(pack_weight(w, {.format = format}));
  for (const ZeroPoints zeros : {ZeroPoints::integer, ZeroPoints::floating})
    all.push_back(pack_weight(w, {.zero_points = zeros}));
  for (const PackedWeight& packed : all) {
    const std::vector<float> ours = values(packed_gemm(a, packed, bias.view()));
    const std::vector<float> theirs =
        values(gemm(a, unpack_weight(packed), {.bias = bias.view(), .variant = "reference"}));
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], theirs[i], 1e-4) << i;
  }
}

TEST(PackedWeight, ColumnsOfAnotherOrderAreTheSameWeight) {
  const Tensor w = random_weight(64, 8);
  const Tensor turned = copy(w.transpose(0, 1));
  const PackedWeight one = pack_weight(w, {.group = 32}),
                     two = pack_weight(turned.transpose(0, 1), {.group = 32});
  EXPECT_EQ(one.codes().to_vector<uint8_t>(), two.codes().to_vector<uint8_t>());
  EXPECT_EQ(one.nbytes(), size_t(64 * 8 / 2 + 2 * 64 / 32 * 8));
  EXPECT_EQ(one.k(), 64);
  EXPECT_EQ(one.n(), 8);
  EXPECT_EQ(one.group(), 32);
}

TEST(PackWeight, RefusesWhatItCannotPack) {
  const auto refused = [](const Tensor& w, const PackWeightOptions& o, const std::string& text) {
    expect_error_with(ErrorKind::value, text, [&] { pack_weight(w, o); });
  };
  const Tensor w = random_weight(64, 2);
  refused(w, {}, "k must be a multiple of the group, 128, and above 0, got 64");
  refused(w, {.format = PackedFormat::mxfp4, .group = 16}, "mxfp4 has groups of 32, got 16");
  refused(w, {.group = 8}, "group must be a multiple of 16, got 8");
  refused(w, {.format = PackedFormat::mxfp4, .zero_points = ZeroPoints::integer},
          "zero_points: mxfp4 has none");
  refused(Tensor(DType::float32, {64}), {}, "expected a matrix (k, n), got shape [64]");
  Tensor bad = random_weight(32, 2);
  bad.data_as<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  refused(bad, {.group = 32}, "element (2, 1) is nan, expected finite weights");
  expect_error_with(ErrorKind::value, "scales: expected k / group scales a row", [] {
    PackedWeight(Tensor(DType::uint8, {2, 16}), Tensor(DType::float16, {2, 3}));
  });
  const PackedWeight packed = pack_weight(w, {.group = 64});
  expect_error_with(ErrorKind::value, "expected shape (..., 64)",
                    [&] { packed_gemm(random_weight(2, 63), packed); });
}

}  // namespace
}  // namespace tensorcraft
