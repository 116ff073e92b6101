// SPDX-License-Identifier: Apache-2.0
// A functor of a launcher's user behind a sum, as kernels/gemm.cuh compiles it into a rung.
#include "tensorcraft/ops/gemm/06_tensor_core.cuh"
#include "tensorcraft/ops/gemm/parts/functor.cuh"
#include "tensorcraft/ops/gemm/00_naive.cuh"
#include "tests/simt/kernels.hpp"

#include <cmath>
#include <vector>

namespace tensorcraft::simt {
namespace {

namespace gemm = kernel::gemm;

constexpr gemm::Config kNaive{.block_m = 32, .block_n = 8, .threads = 256};
constexpr gemm::Config kTensorCore{
    .block_m = 64, .block_n = 64, .block_k = 32, .warp_m = 32, .warp_n = 32, .threads = 128};

// A user's own: the sum scaled by a number of the call, less the place of the output.
struct ScaledLessPlace {
  float scale;
  TC_DEVICE float operator()(float x, int64_t row, int64_t col) const {
    return scale * x - float(row * 100 + col);
  }
};

// The product of small integers, which is exact, by a rung with a functor.
template <class Rung, gemm::Config C, class Functor, class Expected>
void expect_finished(const Functor& functor, int shared_bytes, const Expected& expected) {
  constexpr int m = 37, n = 51, k = 19;
  std::vector<bf16> a(size_t(m * k)), b(size_t(k * n)), d(size_t(m * n), bf16(NAN));
  for (size_t i = 0; i < a.size(); ++i) a[i] = bf16(float(int(i % 5) - 2));
  for (size_t i = 0; i < b.size(); ++i) b[i] = bf16(float(int(i % 3) - 1));
  const auto matrix = [](std::vector<bf16>& data, int columns) {
    return gemm::Matrix{data.data(), columns, 1, {}};
  };
  const gemm::FunctorParams<Functor> p{
      {.m = m, .n = n, .k = k, .a = matrix(a, k), .b = matrix(b, n), .d = matrix(d, n), .alpha = 1},
      functor};
  run({.name = "functor",
       .grid = {uint32_t(div_ceil(m, C.block_m) * div_ceil(n, C.block_n))},
       .block = {uint32_t(C.threads)},
       .shared_bytes = size_t(shared_bytes)},
      [](const void* params) {
        gemm::WithFunctor<Rung, Functor>::template run<bf16, bf16, C>(
            *static_cast<const gemm::FunctorParams<Functor>*>(params));
      },
      &p, {});
  for (int i = 0; i < m * n; ++i) {
    float sum = 0;
    for (int e = 0; e < k; ++e)
      sum += float(a[size_t(i / n * k + e)]) * float(b[size_t(e * n + i % n)]);
    ASSERT_EQ(float(d[size_t(i)]), float(bf16(expected(sum, i / n, i % n)))) << "at " << i;
  }
}

TEST(GemmFunctor, FinishesSumsInEachRung) {
  const auto expected = [](float x, int row, int col) { return 0.5f * x - float(row * 100 + col); };
  expect_finished<gemm::Naive, kNaive>(ScaledLessPlace{0.5f}, 0, expected);
  expect_finished<gemm::TensorCore, kTensorCore>(
      ScaledLessPlace{0.5f}, gemm::tensor_core_shared_bytes(kTensorCore, 2), expected);
}

TEST(GemmFunctor, AddsABiasAndActivates) {
  std::vector<bf16> bias(51);
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = bf16(float(i % 7) - 3);
  expect_finished<gemm::Naive, kNaive>(
      gemm::AddBias<bf16, Activation::relu>{bias.data()}, 0,
      [&](float x, int, int col) { return std::fmax(x + float(bias[size_t(col)]), 0.0f); });
}

}  // namespace
}  // namespace tensorcraft::simt
