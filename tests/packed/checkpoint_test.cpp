// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/packed/checkpoint.hpp"

#include "tensorcraft/ops/all.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error_with;
using test::tensor_of;
using test::values;

constexpr int64_t kK = 64, kN = 16, kGroup = 32, kGroups = kK / kGroup;

Tensor cpu_tensor(const std::vector<int32_t>& words, const Dims& shape) {
  return tensor_of<int32_t>(DType::int32, words, shape, Device::cpu());
}

// A weight as such programs have it before they pack.
struct Known {
  std::vector<uint32_t> codes, zeros;  // (k, n), (groups, n)
  std::vector<float> scales;           // (groups, n)
  explicit Known(uint32_t least_zero) {
    std::mt19937 random(4);
    for (int64_t i = 0; i < kK * kN; ++i) codes.push_back(random() % 16);
    for (int64_t i = 0; i < kGroups * kN; ++i) {
      zeros.push_back(least_zero + random() % 16);
      scales.push_back(0.25f * float(1 + random() % 30));
    }
  }
  std::vector<float> weights() const {
    std::vector<float> w;
    for (int64_t i = 0; i < kK * kN; ++i) {
      const auto at = size_t(i / kN / kGroup * kN + i % kN);
      w.push_back((float(codes[size_t(i)]) - float(zeros[at])) * scales[at]);
    }
    return w;
  }
  Tensor scale_tensor() const {
    return tensor_of<float>(DType::float32, scales, {kGroups, kN}, Device::cpu());
  }
};

// 8 neighbours of a row of (rows, n), in this order from the lowest bits on.
Tensor along_n(const std::vector<uint32_t>& codes, int64_t rows,
               const std::array<int64_t, 8>& order, uint32_t less = 0) {
  std::vector<int32_t> words;
  for (int64_t i = 0; i < rows * kN; i += 8) {
    uint32_t word = 0;
    for (size_t j = 0; j < 8; ++j) word |= (codes[size_t(i + order[j])] - less) << 4 * j;
    words.push_back(int32_t(word));
  }
  return cpu_tensor(words, {rows, kN / 8});
}
constexpr std::array<int64_t, 8> kInOrder = {0, 1, 2, 3, 4, 5, 6, 7},
                                 kOfAwq = {0, 2, 4, 6, 1, 3, 5, 7};

Tensor along_k(const std::vector<uint32_t>& codes) {
  std::vector<int32_t> words;
  for (int64_t i = 0; i < kK / 8; ++i)
    for (int64_t column = 0; column < kN; ++column) {
      uint32_t word = 0;
      for (int64_t j = 0; j < 8; ++j) word |= codes[size_t((8 * i + j) * kN + column)] << 4 * j;
      words.push_back(int32_t(word));
    }
  return cpu_tensor(words, {kK / 8, kN});
}

TEST(PackWeightFromGptq, KeepsEveryWeight) {
  for (const uint32_t less : {1u, 0u}) {
    const Known known(less);
    std::vector<int32_t> groups;
    for (int64_t i = 0; i < kK; ++i) groups.push_back(int32_t(i / kGroup));
    const Tensor g_idx = cpu_tensor(groups, {kK});
    const PackedWeight packed = pack_weight_from_gptq(
        along_k(known.codes), along_n(known.zeros, kGroups, kInOrder, less), known.scale_tensor(),
        {.g_idx = g_idx.view(),
         .group = kGroup,
         .zeros = less ? GptqZeros::minus_one : GptqZeros::plain});
    EXPECT_EQ(packed.format(), PackedFormat::int4);
    EXPECT_EQ(packed.group(), kGroup);
    EXPECT_EQ(values(unpack_weight(packed)), known.weights()) << less;
  }
}

TEST(PackWeightFromAwq, KeepsEveryWeight) {
  const Known known(0);
  const PackedWeight packed =
      pack_weight_from_awq(along_n(known.codes, kK, kOfAwq), along_n(known.zeros, kGroups, kOfAwq),
                           known.scale_tensor(), kGroup);
  EXPECT_EQ(values(unpack_weight(packed)), known.weights());
  // As a product has them.
  std::mt19937 random(6);
  const Tensor a = test::normal_tensor({3, kK}, random);
  const Tensor w = tensor_of<float>(DType::float32, known.weights(), {kK, kN}, Device::cpu());
  const std::vector<float> ours = values(packed_gemm(a, packed)),
                           theirs = values(gemm(a, w, {.variant = "reference"}));
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], theirs[i], 1e-3) << i;
}

TEST(PackWeightFromGptq, AllZerosOf8AreNone) {
  Known known(0);
  known.zeros.assign(known.zeros.size(), 8);
  const PackedWeight packed = pack_weight_from_gptq(
      along_k(known.codes), along_n(known.zeros, kGroups, kInOrder, 1), known.scale_tensor());
  EXPECT_FALSE(packed.zeros().has_value());
  EXPECT_EQ(values(unpack_weight(packed)), known.weights());
}

TEST(PackWeightFromGptq, SaysWhatDoesNotFit) {
  const Known known(1);
  const Tensor qweight = along_k(known.codes), qzeros = along_n(known.zeros, kGroups, kInOrder, 1),
               scales = known.scale_tensor();
  const auto refused = [&](ErrorKind kind, const std::string& text, const TensorView& w,
                           const TensorView& z, const TensorView& s, const GptqOptions& o) {
    expect_error_with(kind, text, [&] { pack_weight_from_gptq(w, z, s, o); });
  };
  std::vector<int32_t> order(size_t(kK), 0);
  const Tensor by_activation = cpu_tensor(order, {kK});
  refused(ErrorKind::unsupported, "g_idx: row 32 is of group 0, expected 1", qweight, qzeros,
          scales, {.g_idx = by_activation.view()});
  refused(ErrorKind::value, "group: scales have one row for 32 rows of the weight, got 128",
          qweight, qzeros, scales, {.group = 128});
  refused(ErrorKind::value, "group: scales have one row for 32 rows of the weight, got -1", qweight,
          qzeros, scales, {.group = -1});
  refused(ErrorKind::value, "qzeros: expected n / 8 = 2 words a row", qweight,
          cpu_tensor({0, 0, 0, 0, 0, 0, 0, 0}, {2, 4}), scales, {});
  refused(ErrorKind::value, "qweight: has 8 columns of 4 bits, scales 16",
          cpu_tensor(std::vector<int32_t>(64), {8, 8}), qzeros, scales, {});
  refused(ErrorKind::value, "a multiple of 16, got 2 rows",
          cpu_tensor(std::vector<int32_t>(2 * kN), {2, kN}), qzeros, scales, {});
  refused(ErrorKind::type, "Dtype value [float32]", scales, qzeros, scales, {});
  expect_error_with(ErrorKind::value, "pack_weight_from_awq: qweight: has 128 columns of 4 bits",
                    [&] { pack_weight_from_awq(qweight, qzeros, scales); });
}

}  // namespace
}  // namespace tensorcraft
