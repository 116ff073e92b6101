// SPDX-License-Identifier: Apache-2.0
// The 16-wide form in which shared-memory tiles are taught: one output a thread, a block of 256.
// The library's own tile is 32 x 32 (gemm/plan.h), and the conformance test runs that.
#include "tensorcraft/ops/gemm/02_block_tiled.cuh"
#include "tests/simt/kernels.hpp"

#include <random>

namespace tensorcraft::simt {
namespace {

namespace gemm = kernel::gemm;

constexpr gemm::Config kTeaching{.block_m = 16, .block_n = 16, .block_k = 16, .threads = 256};

std::vector<float> random_values(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float& x : values) x = normal(random);
  return values;
}

void expect_product(int m, int n, int k) {
  const auto a = random_values(size_t(m * k), 1), b = random_values(size_t(k * n), 2);
  std::vector<float> d(size_t(m * n), NAN);
  const auto matrix = [](const float* data, int columns) {
    return gemm::Matrix{const_cast<float*>(data), columns, 1, {}};
  };
  const gemm::Params p{.m = m,
                       .n = n,
                       .k = k,
                       .a = matrix(a.data(), k),
                       .b = matrix(b.data(), n),
                       .d = matrix(d.data(), n),
                       .alpha = 1};
  const auto tiles = uint32_t(div_ceil(m, 16) * div_ceil(n, 16));
  run({.name = "block_tiled", .grid = {tiles}, .block = {256}},
      [](const void* params) {
        gemm::BlockTiled::run<float, float, kTeaching>(*static_cast<const gemm::Params*>(params));
      },
      &p, {});
  for (int i = 0; i < m * n; ++i) {
    double sum = 0;
    for (int e = 0; e < k; ++e) sum += double(a[size_t(i / n * k + e)]) * b[size_t(e * n + i % n)];
    ASSERT_NEAR(d[size_t(i)], sum, 1e-5) << m << " x " << n << " x " << k << " at " << i;
  }
}

TEST(BlockTiled, OfWidth16IsRightForOddSizes) {
  expect_product(1, 1, 1);
  expect_product(16, 16, 16);
  expect_product(17, 15, 33);
  expect_product(37, 50, 7);
}

}  // namespace
}  // namespace tensorcraft::simt
