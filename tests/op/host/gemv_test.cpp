// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/gemv.hpp"

#include "tensorcraft/op/host/parallel.hpp"
#include "tests/op/host/gemm_problems.hpp"

#include <algorithm>
#include <cmath>

namespace tensorcraft::host {
namespace {

void run_gemv(const GemmCase& c) {
  SCOPED_TRACE(testing::Message() << c.m << " x " << c.n << " x " << c.k
                                  << (c.transpose_a ? " ta" : "") << (c.transpose_b ? " tb" : ""));
  GemmData data(c);
  ASSERT_TRUE(is_gemv(data.problem));
  gemv(data.problem);
  data.check();
}

// A row and a column of D, the matrix by rows and by columns.
void run_each_way(GemmCase c, int64_t length) {
  for (const bool is_row : {true, false})
    for (const bool transposed : {false, true}) {
      c.m = is_row ? 1 : length;
      c.n = is_row ? length : 1;
      (is_row ? c.transpose_b : c.transpose_a) = transposed;
      run_gemv(c);
      c.transpose_a = c.transpose_b = false;
    }
}

TEST(HostGemv, AgreesWithDoubleAroundEveryBlock) {
  for (const int64_t length : {1, 2, 3, 4, 5, 16, 33, 8191, 8193})
    for (const int64_t k : {0, 1, 3, 4, 17, 130}) run_each_way({.k = k}, length);
  for (const int64_t k : {8191, 8192, 8197, 20000}) run_each_way({.k = k}, 5);
}

TEST(HostGemv, ConvertsLowPrecisionInAndOutAndLeavesGapsAlone) {
  for (const DType in : {DType::float16, DType::bfloat16})
    for (const DType out : {DType::float32, in})
      run_each_way({.k = 300, .in = in, .out = out, .bias = true, .gap = 3}, 70);
}

TEST(HostGemv, AppliesTheEpilogueOnceAfterAllOfK) {
  for (const Activation a : {Activation::none, Activation::gelu, Activation::silu})
    run_each_way({.k = 9000, .alpha = 0.5f, .beta = -0.25f, .bias = true, .activation = a}, 9);
}

TEST(HostGemv, TakesAFewRowsWhoseColumnsAreLines) {
  for (int64_t m = 2; m <= kFewRows; ++m)
    for (const int64_t n : {2, 3, 4, 5, 16, 33})
      for (const int64_t k : {2, 17, 130}) run_gemv({.m = m, .n = n, .k = k, .transpose_b = true});
  run_gemv({.m = 3, .n = 8193, .k = 9, .transpose_b = true});
  run_gemv({.m = 5, .n = 6, .k = 8197, .transpose_a = true, .transpose_b = true});
  run_gemv({.m = kFewRows,
            .n = 70,
            .k = 300,
            .transpose_b = true,
            .in = DType::bfloat16,
            .out = DType::bfloat16,
            .alpha = 0.5f,
            .beta = -0.25f,
            .bias = true,
            .activation = Activation::silu,
            .gap = 3});
  EXPECT_FALSE(is_gemv(GemmData({.m = 2, .n = 5, .k = 9}).problem));
  EXPECT_FALSE(is_gemv(GemmData({.m = kFewRows + 1, .n = 5, .k = 9, .transpose_b = true}).problem));
}

TEST(HostGemv, GivesEachOfAFewRowsTheBitsItHasAlone) {
  for (const DType in : {DType::float32, DType::float16}) {
    const GemmData few({.m = kFewRows, .n = 37, .k = 300, .transpose_b = true, .in = in});
    gemv(few.problem);
    const auto together = few.d.read();
    for (int64_t row = 0; row < kFewRows; ++row) {
      GemmProblem one = few.problem;
      one.m = 1;
      one.a.data =
          static_cast<const std::byte*>(one.a.data) + row * one.a.row * int64_t(dtype_bytes(in));
      one.d.data = static_cast<float*>(one.d.data) + row * one.d.row;
      gemv(one);
    }
    const auto alone = few.d.read();
    EXPECT_TRUE(std::equal(alone.begin(), alone.end() - 1, together.begin())) << in;
  }
}

// Whatever m is: one row, several, and more than are taken at once.
TEST(HostGemv, GivesABatchInvariantRowTheBitsItHasAlone) {
  for (const DType in : {DType::float32, DType::bfloat16})
    for (const int64_t n : {1, 37}) {
      GemmData all({.m = 131, .n = n, .k = 300, .transpose_b = true, .in = in, .bias = true});
      all.problem.batch_invariant = true;
      ASSERT_TRUE(is_gemv(all.problem));
      gemv(all.problem);
      all.check();
      const auto together = all.d.read();
      for (const int64_t row : {0, 1, 63, 64, 130}) {
        GemmProblem one = all.problem;
        one.m = 1;
        one.a.data =
            static_cast<const std::byte*>(one.a.data) + row * one.a.row * int64_t(dtype_bytes(in));
        one.d.data = static_cast<float*>(one.d.data) + row * one.d.row;
        std::fill_n(static_cast<float*>(one.d.data), n, std::nanf(""));
        gemv(one);
      }
      const auto alone = all.d.read();
      EXPECT_TRUE(std::equal(alone.begin(), alone.end() - 1, together.begin())) << in;
    }
  GemmData by_rows({.m = 1, .n = 37, .k = 300});
  by_rows.problem.batch_invariant = true;
  EXPECT_FALSE(is_gemv(by_rows.problem));
}

TEST(HostGemv, ReadsAVectorWithAStride) {
  GemmData data({.m = 1, .n = 21, .k = 33, .transpose_a = true, .gap = 2});
  ASSERT_EQ(data.problem.a.column, 3);
  gemv(data.problem);
  data.check();
}

TEST(HostGemv, IsTheSameForAnyNumberOfThreads) {
  for (const bool transposed : {false, true}) {
    std::vector<float> first;
    for (const int threads : {1, 2, 3, 7}) {
      set_num_threads(threads);
      GemmData data({.m = 1, .n = 2000, .k = 3000, .transpose_b = transposed});
      gemv(data.problem);
      if (first.empty()) first = data.d.read();
      // The last element is padding and stays NaN.
      const auto now = data.d.read();
      ASSERT_TRUE(std::equal(now.begin(), now.end() - 1, first.begin())) << threads;
    }
  }
  set_num_threads(0);
}

}  // namespace
}  // namespace tensorcraft::host
