// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/tensorcraft.hpp"
#include "tests/support/tensors.hpp"
#include "tests/support/tolerance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

// Sequences of 128k tokens, of which no shared memory holds the keys.
namespace tensorcraft::test {
namespace {

constexpr int64_t kTokens = 128 * 1024, kDim = 64;

// One head of bfloat16.
Tensor filled(int64_t tokens, unsigned seed) {
  return normal_tensor({1, 1, tokens, kDim}, DType::bfloat16, seed);
}

// Empty if some rows of attention(q, k, v) are what the formula gives in double.
std::string compare_rows(const Tensor& got, const std::vector<double>& q,
                         const std::vector<double>& k, const std::vector<double>& v, int64_t rows) {
  const auto out = doubles(got);
  std::vector<float> some, expected;
  for (int64_t row = 0; row < rows; row += std::max<int64_t>(1, rows / 6)) {
    std::vector<double> scores(static_cast<size_t>(kTokens)), sums(size_t(kDim), 0.0);
    for (int64_t key = 0; key < kTokens; ++key)
      for (int64_t i = 0; i < kDim; ++i)
        scores[size_t(key)] += q[size_t(row * kDim + i)] * k[size_t(key * kDim + i)] / 8;
    const double top = *std::ranges::max_element(scores);
    double total = 0;
    for (int64_t key = 0; key < kTokens; ++key) {
      const double weight = std::exp(scores[size_t(key)] - top);
      total += weight;
      for (int64_t i = 0; i < kDim; ++i) sums[size_t(i)] += weight * v[size_t(key * kDim + i)];
    }
    for (int64_t i = 0; i < kDim; ++i) {
      some.push_back(float(out[size_t(row * kDim + i)]));
      expected.push_back(float(sums[size_t(i)] / total));
    }
  }
  return compare(some, expected,
                 tolerance(DType::bfloat16, DType::bfloat16, double(kTokens), true));
}

// Three queries on the host, as many as keys on a GPU, and each variant that takes them there.
void expect_right_rows(Device device, int64_t queries) {
  const Tensor q = filled(queries, 1), k = filled(kTokens, 2), v = filled(kTokens, 3);
  const auto qs = doubles(q), ks = doubles(k), vs = doubles(v);
  const Tensor there[] = {q.to(device), k.to(device), v.to(device)};
  int variants = 0;
  for (const op::VariantInfo& row : find_operator("attention").description().variants) {
    if ((row.device == DeviceType::cpu) != (device == Device::cpu())) continue;
    if (row.name == "naive" || row.name == "reference") continue;  // take minutes
    try {
      const AttentionResult r = attention(there[0], there[1], there[2], {.variant = row.name});
      EXPECT_EQ(compare_rows(r.out, qs, ks, vs, queries), "") << row.name << " on " << device;
      ++variants;
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::unsupported) << row.name << ": " << e.what();
    }
  }
  EXPECT_GT(variants, 0);
}

TEST(LongSequences, Of128kTokensAreRightOnTheCpu) { expect_right_rows(Device::cpu(), 3); }

TEST(LongSequences, Of128kTokensAreRightOn_gpu) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "there is no GPU";
  expect_right_rows(Device::cuda(0), kTokens);
}

}  // namespace
}  // namespace tensorcraft::test
