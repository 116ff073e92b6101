// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/attention/attention.hpp"

#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/ops/permute/permute.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;
using test::values;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor random_tensor(const Dims& shape, unsigned seed) {
  Tensor t(DType::float32, shape);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < t.size(); ++i) t.data_as<float>()[i] = normal(random);
  return t;
}

Tensor lengths_of(const std::vector<int32_t>& values) {
  Tensor t(DType::int32, {int64_t(values.size())});
  std::copy(values.begin(), values.end(), t.data_as<int32_t>());
  return t;
}

// A copy with two axes exchanged.
Tensor exchanged(const Tensor& t, int a, int b) {
  const TensorView from = t.view().transpose(a, b);
  Tensor to(t.dtype(), from.shape());
  const auto& s = from.shape();
  int64_t at = 0;
  for (int64_t i = 0; i < s[0]; ++i)
    for (int64_t j = 0; j < s[1]; ++j)
      for (int64_t k = 0; k < s[2]; ++k)
        for (int64_t l = 0; l < s[3]; ++l)
          to.data_as<float>()[at++] = t.data_as<float>()[i * from.stride(0) + j * from.stride(1) +
                                                         k * from.stride(2) + l * from.stride(3)];
  return to;
}

class AttentionOnTheHost : public ::testing::TestWithParam<std::string_view> {};

TEST_P(AttentionOnTheHost, LseIsTheLogarithmOfTheSummedExponentials) {
  const Tensor q = random_tensor({1, 1, 5, 40}, 1), k = random_tensor({1, 1, 300, 40}, 2),
               v = random_tensor({1, 1, 300, 40}, 3);
  const auto result =
      attention(q, k, v, {.scale = 0.3f, .return_lse = true, .variant = GetParam()});
  ASSERT_EQ(result.lse.size(), 5);
  for (int i = 0; i < 5; ++i) {
    double sum = 0;
    for (int j = 0; j < 300; ++j) {
      double score = 0;
      for (int e = 0; e < 40; ++e)
        score += double(q.data_as<float>()[i * 40 + e]) * k.data_as<float>()[j * 40 + e];
      sum += std::exp(0.3f * score);
    }
    EXPECT_NEAR(result.lse.data_as<float>()[i], std::log(sum), 4e-6);
  }
}

TEST_P(AttentionOnTheHost, RowsWithoutAVisibleKeyAreZeroWithAnLseOfMinusInfinity) {
  const Tensor q = random_tensor({2, 1, 4, 32}, 1), k = random_tensor({2, 1, 2, 32}, 2);
  const Tensor lengths = lengths_of({0, 2});
  const auto result = attention(
      q, k, k,
      {.causal = true, .key_lengths = lengths.view(), .return_lse = true, .variant = GetParam()});
  for (int row = 0; row < 8; ++row) {
    const bool sees_none = row < 6;  // batch 0, and the first two queries of batch 1
    EXPECT_EQ(result.lse.data_as<float>()[row] == -kInfinity, sees_none) << row;
    for (int e = 0; e < 32; ++e)
      EXPECT_EQ(result.out.data_as<float>()[row * 32 + e] == 0.0f, sees_none) << row;
  }
}

TEST_P(AttentionOnTheHost, NoKeysAtAllGiveZeros) {
  const Tensor q = random_tensor({1, 2, 3, 8}, 1);
  const Tensor k(DType::float32, {1, 2, 0, 8});
  const auto result = attention(q, k, k, {.return_lse = true, .variant = GetParam()});
  EXPECT_EQ(values(result.out), std::vector<float>(48, 0.0f));
  EXPECT_EQ(values(result.lse), std::vector<float>(6, -kInfinity));
}

TEST_P(AttentionOnTheHost, SharedKeyHeadsEqualRepeatedKeyHeads) {
  const Tensor q = random_tensor({2, 6, 33, 16}, 1), k = random_tensor({2, 2, 50, 16}, 2),
               v = random_tensor({2, 2, 50, 16}, 3);
  const auto repeated = [](const Tensor& t) {
    Tensor to(DType::float32, {2, 6, 50, 16});
    for (int b = 0; b < 2; ++b)
      for (int h = 0; h < 6; ++h)
        std::copy_n(t.data_as<float>() + (b * 2 + h / 3) * 800, 800,
                    to.data_as<float>() + (b * 6 + h) * 800);
    return to;
  };
  const AttentionOptions options{.variant = GetParam()};
  EXPECT_EQ(values(attention(q, k, v, options).out),
            values(attention(q, repeated(k), repeated(v), options).out));
}

TEST_P(AttentionOnTheHost, SequenceFirstEqualsHeadsFirstPermuted) {
  const Tensor q = random_tensor({2, 40, 4, 16}, 1), k = random_tensor({2, 70, 2, 16}, 2),
               v = random_tensor({2, 70, 2, 16}, 3);
  const auto sequence_first =
      attention(q, k, v, {.causal = true, .layout = AttentionLayout::bshd, .variant = GetParam()});
  const auto heads_first =
      attention(exchanged(q, 1, 2), exchanged(k, 1, 2), exchanged(v, 1, 2),
                {.causal = true, .layout = AttentionLayout::bhsd, .variant = GetParam()});
  EXPECT_EQ(values(sequence_first.out), values(exchanged(heads_first.out, 1, 2)));
}

TEST_P(AttentionOnTheHost, ANanInAQueryStaysInItsRow) {
  const Tensor q = random_tensor({1, 1, 4, 16}, 1), k = random_tensor({1, 1, 9, 16}, 2);
  q.data_as<float>()[2 * 16 + 3] = kNan;
  const auto result = attention(q, k, k, {.return_lse = true, .variant = GetParam()});
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(std::isnan(result.out.data_as<float>()[i * 16]), i == 2);
    EXPECT_EQ(std::isnan(result.lse.data_as<float>()[i]), i == 2);
  }
}

TEST_P(AttentionOnTheHost, ANanInAVisibleKeyReachesTheRowsThatSeeIt) {
  const Tensor q = random_tensor({1, 1, 4, 16}, 1), k = random_tensor({1, 1, 4, 16}, 2),
               v = random_tensor({1, 1, 4, 16}, 3);
  k.data_as<float>()[2 * 16] = kNan;
  const auto result =
      attention(q, k, v, {.causal = true, .return_lse = true, .variant = GetParam()});
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(std::isnan(result.out.data_as<float>()[i * 16]), i >= 2);
    EXPECT_EQ(std::isnan(result.lse.data_as<float>()[i]), i >= 2);
  }
}

TEST_P(AttentionOnTheHost, WhatLiesBehindTheKeyLengthHasNoEffect) {
  const Tensor q = random_tensor({1, 2, 3, 16}, 1), k = random_tensor({1, 2, 9, 16}, 2),
               v = random_tensor({1, 2, 9, 16}, 3);
  const Tensor lengths = lengths_of({5});
  const AttentionOptions options{.key_lengths = lengths.view(), .variant = GetParam()};
  const auto expected = values(attention(q, k, v, options).out);
  for (int h = 0; h < 2; ++h)
    for (int i = 5 * 16; i < 9 * 16; ++i)
      k.data_as<float>()[h * 144 + i] = v.data_as<float>()[h * 144 + i] = kNan;
  EXPECT_EQ(values(attention(q, k, v, options).out), expected);
}

INSTANTIATE_TEST_SUITE_P(Variants, AttentionOnTheHost, ::testing::Values("cpu", "reference"),
                         [](const auto& info) { return std::string(info.param); });

// Every variant of the host and the emulator, with a dtype that it takes.
class AttentionEverywhere : public ::testing::Test {
 protected:
  struct Place {
    std::string_view variant;
    Device device;
    DType dtype;
  };
  static bool needs_16_bits(std::string_view variant) {
    return variant != "tiled" && variant != "naive" && variant != "cpu" && variant != "reference";
  }
  static std::vector<Place> all_places() {
    const bool has_simt = devices().back() == Device::simt();
    std::vector<Place> all;
    for (const auto& v : find_operator("attention").description().variants)
      for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
        if (needs_16_bits(v.name) && dtype == DType::float32) continue;
        if (v.device == DeviceType::cpu)
          all.push_back({v.name, Device::cpu(), dtype});
        else if (has_simt)
          all.push_back({v.name, Device::simt(), dtype});
      }
    return all;
  }
  static Tensor moved(const Tensor& t, const Place& to) {
    return astype(t, {.dtype = to.dtype}).to(to.device);
  }
  static std::vector<float> floats(const Tensor& t) {
    return values(astype(t.to(Device::cpu()), {.dtype = DType::float32}));
  }
  // The results on the host as float32.
  struct Floats {
    std::vector<float> out, lse;
  };
  static Floats run(const Place& place, const Tensor& q, const Tensor& k, const Tensor& v,
                    AttentionOptions options) {
    options.return_lse = true;
    options.variant = place.variant;
    std::optional<Tensor> lengths;
    if (options.key_lengths)
      options.key_lengths = lengths.emplace(copy(*options.key_lengths).to(place.device)).view();
    const AttentionResult r = attention(moved(q, place), moved(k, place), moved(v, place), options);
    return {floats(r.out), floats(r.lse)};
  }
};

TEST_F(AttentionEverywhere, TheLargestScoreMeetsItselfAtAnySize) {
  const Tensor v = random_tensor({1, 1, 3, 64}, 3);
  for (const Place& place : all_places()) {
    const auto rounded = floats(moved(v, place));
    for (const float size : {2e4f, 6e4f, 1e9f, 1e18f}) {
      if (place.dtype == DType::float16 && size > 65504) continue;
      const auto constant = [&](int rows) {
        Tensor t(DType::float32, {1, 1, rows, 64});
        std::fill_n(t.data_as<float>(), t.size(), size);
        return t;
      };
      for (const bool causal : {false, true}) {
        const Floats r = run(place, constant(2), constant(3), v, {.causal = causal});
        for (int i = 0; i < 2; ++i) {
          const int keys = causal ? i + 2 : 3;
          EXPECT_NEAR(r.lse[size_t(i)] / (8 * double(size) * size), 1, 0.02) << place.variant;
          for (int e = 0; e < 64; ++e) {
            float mean = 0;
            for (int j = 0; j < keys; ++j) mean += rounded[size_t(j * 64 + e)] / float(keys);
            ASSERT_NEAR(r.out[size_t(i * 64 + e)], mean, 0.02)
                << place.variant << ' ' << place.dtype << ' ' << size << " causal " << causal;
          }
        }
      }
    }
  }
}

// Keys whose scores are far apart, in all orders: only the largest count, whatever came before.
TEST_F(AttentionEverywhere, LargeAndSmallScoresFollowEachOther) {
  constexpr int kKeys = 200;
  const Tensor v = random_tensor({1, 1, kKeys, 64}, 3);
  Tensor q(DType::float32, {1, 1, 1, 64});
  std::fill_n(q.data_as<float>(), 64, 64.0f);
  for (const Place& place : all_places()) {
    const auto rounded = floats(moved(v, place));
    for (const int largest : {0, 70, kKeys - 2})
      for (const float step : {1.0f, 300.0f}) {
        Tensor k(DType::float32, {1, 1, kKeys, 64});
        for (int j = 0; j < kKeys; ++j)  // two keys are the largest; the others are far below
          std::fill_n(k.data_as<float>() + j * 64, 64,
                      j / 2 == largest / 2 ? 2 * step : step * float(j % 3 - 1));
        const Floats r = run(place, q, k, v, {});
        EXPECT_NEAR(r.lse[0] / (512 * 2 * double(step)), 1, 0.01);
        for (int e = 0; e < 64; ++e) {
          const float mean =
              (rounded[size_t(largest * 64 + e)] + rounded[size_t(largest * 64 + 64 + e)]) / 2;
          ASSERT_NEAR(r.out[size_t(e)], mean, 0.02)
              << place.variant << ' ' << place.dtype << ' ' << largest << ' ' << step;
        }
      }
  }
}

// Together causal and key_lengths give causal over the keys in use, one request at a time.
TEST_F(AttentionEverywhere, CausalIsAlignedToTheKeysInUse) {
  const std::vector<int32_t> in_use = {6, 16, 3, 0, 1};
  const Tensor q = random_tensor({5, 2, 4, 64}, 1), k = random_tensor({5, 1, 16, 64}, 2),
               v = random_tensor({5, 1, 16, 64}, 3), lengths = lengths_of(in_use),
               wide = astype(lengths, {DType::int64});
  for (const Place& place : all_places()) {
    const Floats all = run(place, q, k, v, {.causal = true, .key_lengths = lengths.view()});
    EXPECT_EQ(run(place, q, k, v, {.causal = true, .key_lengths = wide.view()}).out, all.out);
    for (size_t b = 0; b < in_use.size(); ++b) {
      const auto of_request = [&](const Tensor& t, int64_t rows) {
        return copy(t.view().slice(0, int64_t(b), int64_t(b) + 1).slice(2, 0, rows));
      };
      const Floats one = run(place, of_request(q, 4), of_request(k, in_use[b]),
                             of_request(v, in_use[b]), {.causal = true});
      for (size_t i = 0; i < one.out.size(); ++i)
        ASSERT_EQ(all.out[b * one.out.size() + i], one.out[i]) << place.variant << ' ' << b;
      for (size_t i = 0; i < one.lse.size(); ++i)
        ASSERT_EQ(all.lse[b * one.lse.size() + i], one.lse[i]) << place.variant << ' ' << b;
    }
  }
}

// More works than the 132 blocks of persistent, several tiles of keys each, by two consumers.
TEST_F(AttentionEverywhere, BlocksThatStayTakeWorkAfterWork) {
  const Tensor q = random_tensor({23, 6, 66, 64}, 1), k = random_tensor({23, 2, 270, 64}, 2),
               v = random_tensor({23, 2, 270, 64}, 3);
  std::vector<int32_t> in_use;
  for (int b = 0; b < 23; ++b) in_use.push_back(b * 13);  // 0 to 286
  const Tensor lengths = lengths_of(in_use);
  const AttentionOptions options{.causal = true, .key_lengths = lengths.view()};
  for (const Place& place : all_places()) {
    if (place.variant != "persistent" || place.dtype != DType::bfloat16) continue;
    const Floats expected = run({"cpu", Device::cpu(), place.dtype}, q, k, v, options);
    const Floats got = run(place, q, k, v, options);
    for (size_t i = 0; i < expected.out.size(); ++i)
      ASSERT_NEAR(got.out[i], expected.out[i], 0.02) << i;
    for (size_t i = 0; i < expected.lse.size(); ++i) {
      if (std::isinf(expected.lse[i]))
        ASSERT_EQ(got.lse[i], expected.lse[i]) << i;
      else
        ASSERT_NEAR(got.lse[i], expected.lse[i], 0.001) << i;
    }
  }
}

// These rungs zero in shared memory what lies behind the keys in use.
TEST_F(AttentionEverywhere, ANanBehindTheKeysInUseOfSeveralTilesHasNoEffect) {
  const Tensor q = random_tensor({1, 1, 70, 64}, 1), k = random_tensor({1, 1, 400, 64}, 2),
               v = random_tensor({1, 1, 400, 64}, 3);
  for (const int32_t keys : {1, 127, 128, 129, 300, 400}) {
    const Tensor lengths = lengths_of({keys});
    Tensor hidden_k = copy(k.view()), hidden_v = copy(v.view());
    std::fill(hidden_k.data_as<float>() + keys * 64, hidden_k.data_as<float>() + 400 * 64, kNan);
    std::fill(hidden_v.data_as<float>() + keys * 64, hidden_v.data_as<float>() + 400 * 64, kNan);
    for (const Place& place : all_places()) {
      if (!needs_16_bits(place.variant) || place.dtype != DType::bfloat16) continue;
      const auto few = copy(q.view().slice(2, 0, 5));
      const AttentionOptions options{.key_lengths = lengths.view()};
      const Floats expected = run(place, few, k, v, options);
      const Floats got = run(place, few, hidden_k, hidden_v, options);
      EXPECT_EQ(got.out, expected.out) << place.variant << ' ' << keys;
      EXPECT_EQ(got.lse, expected.lse) << place.variant << ' ' << keys;
    }
  }
}

// With scores of 0, an output is the mean of the values that are seen.
TEST_F(AttentionEverywhere, FourNewTokensOverSixInUseSeeThreeToSixKeys) {
  Tensor q(DType::float32, {1, 1, 4, 64}), v(DType::float32, {1, 1, 16, 64});
  std::fill_n(q.data_as<float>(), q.size(), 0.0f);
  for (int64_t i = 0; i < v.size(); ++i) v.data_as<float>()[i] = i < 6 * 64 ? float(i / 64) : kNan;
  const Tensor k = random_tensor({1, 1, 16, 64}, 2), lengths = lengths_of({6});
  for (const Place& place : all_places()) {
    const Floats r = run(place, q, k, v, {.causal = true, .key_lengths = lengths.view()});
    for (int i = 0; i < 4; ++i) {
      EXPECT_FLOAT_EQ(r.out[size_t(i) * 64], float(i + 2) / 2) << place.variant;
      EXPECT_NEAR(r.lse[size_t(i)], std::log(i + 3), 1e-6) << place.variant;
    }
  }
}

TEST(Attention, TheCpuRowDoesNotDependOnHowQueriesAreGrouped) {
  const Tensor q = random_tensor({1, 1, 700, 24}, 1), k = random_tensor({1, 1, 1000, 24}, 2),
               v = random_tensor({1, 1, 1000, 24}, 3);
  const auto all = values(attention(q, k, v, {.variant = "cpu"}).out);
  for (const int64_t i : {0, 31, 32, 699}) {
    const TensorView one = q.view().slice(2, i, i + 1);
    const auto row = values(attention(one, k, v, {.variant = "cpu"}).out);
    EXPECT_EQ(row, std::vector<float>(all.begin() + i * 24, all.begin() + (i + 1) * 24)) << i;
  }
}

TEST(Attention, BadArgumentsAreNamedWithTheirValues) {
  const Tensor q(DType::float32, {2, 4, 3, 8}), k(DType::float32, {2, 3, 5, 8});
  const Tensor flat(DType::float32, {3, 8}), wide(DType::float32, {1, 1, 1, 513});
  const Tensor integers(DType::int32, {2, 4, 3, 8}), one_length(DType::int32, {1});
  expect_error(
      ErrorKind::value, [&] { attention(flat, flat, flat); },
      "attention: q: expected 4 dimensions (batch, heads, seq, head_dim), got shape [3, 8]");
  expect_error(
      ErrorKind::value, [&] { attention(q, k, k); },
      "attention: the heads of q must be a multiple of the heads of k, got 4 and 3");
  expect_error(
      ErrorKind::unsupported, [&] { attention(wide, wide, wide); },
      "attention: head_dim must be 1 to 512, got 513");
  expect_error(
      ErrorKind::value, [&] { attention(q, q, q, {.scale = kInfinity}); },
      "attention: scale must be finite, got inf");
  expect_error(
      ErrorKind::type, [&] { attention(integers, integers, integers); },
      "attention: q: Dtype value [int32] not in the allowed options: [float32, float16, "
      "bfloat16, float8_e4m3fn]; tc.astype(q, tc.float32) converts it");
  expect_error(
      ErrorKind::value, [&] { attention(q, q, q, {.key_lengths = one_length.view()}); },
      "attention: key_lengths: Size mismatch for shape#0('batch'): expected 2 but got 1 "
      "(batch is q.shape[0])"
      "; q is [2, 4, 3, 8], key_lengths is [1]");
  EXPECT_THROW(attention(q, q, q.view().slice(3, 0, 8, 2)), Error);
  EXPECT_THROW(
      attention(q.view().transpose(2, 3), q.view().transpose(2, 3), q.view().transpose(2, 3)),
      Error);
}

}  // namespace
}  // namespace tensorcraft
