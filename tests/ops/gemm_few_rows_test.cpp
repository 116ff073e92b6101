// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/ops/gemm/gemm.hpp"
#include "tensorcraft/ops/gemm/plan.h"
#include "tests/support/gemm_plans.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

// Products with few rows: what is chosen for them, and on a GPU the sums that conformance is too
// small for.
namespace tensorcraft {
namespace {

using test::explain_on, test::row_of;

// Few rows of A, or columns of B, are a race for bandwidth. The rungs on wgmma win it for what they
// take, and gemv has the rest.
TEST(FewRows, GoToGemv) {
  const auto chosen = [](const char* arch, DType dtype, int64_t m, int64_t n, int64_t k = 4096) {
    return explain_on(arch, dtype, {m, k}, {k, n}, {m, n}).variant;
  };
  for (const char* arch : {"sm_80", "sm_89", "sm_90", "sm_100", "sm_120"}) {
    for (const int64_t m : {1, 2, 3, 4}) {
      for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
        EXPECT_EQ(chosen(arch, dtype, m, 4096), "gemv") << arch << " " << m;
        EXPECT_EQ(chosen(arch, dtype, 4096, m), "gemv") << arch << " " << m;
      }
      EXPECT_EQ(chosen(arch, DType::bfloat16, m, 4097, 4095), "gemv") << arch << " " << m;
    }
    for (const int64_t m : {5, 16, 64}) EXPECT_EQ(chosen(arch, DType::float32, m, 4096), "async");
  }
  const auto wide = explain_on("sm_90", DType::bfloat16, {65, 64}, {64, 96}, {65, 96});
  EXPECT_EQ(row_of(wide, "gemv").reason, "takes up to 4 rows of a, or columns of b");
}

TEST(FewRows, AreGatedIfTheWeightsLieAlongK) {
  using namespace kernel::gemm;
  const Given given{.operand_bytes = 2, .result_bytes = 2, .gated = true};
  const op::Gpu gpu{.architecture = 90, .num_sms = 132};
  Params p{.m = 1, .n = 14336, .k = 4096};
  p.a.row_stride = p.b.col_stride = p.k;
  p.a.col_stride = p.b.row_stride = 1;
  const Choice along = gemv(p, given, gpu);
  EXPECT_EQ(along.refusal, "");
  const Config& c = along.start.config;
  EXPECT_EQ(c.gated, 1);
  EXPECT_EQ(along.start.blocks, p.n / (c.block_n / 2) * c.split);
  EXPECT_FALSE(gemv_preference(p, given, gpu).empty());
  p.b.row_stride = 2 * p.n;
  p.b.col_stride = 1;
  EXPECT_EQ(gemv(p, given, gpu).refusal, "gates rows of a by weights that lie along k");
  EXPECT_TRUE(gemv_preference(p, given, gpu).empty());
}

// The weights stream through all multiprocessors at once: what n alone does not divide, the blocks
// of a cluster and the warps of a block do, and every block has a part of k.
TEST(FewRows, DivideKUntilTheyFillTheGpu) {
  for (const int64_t n : {256, 1024, 4096, 6144, 8192, 14336, 28672})
    for (const int64_t m : {1, 2, 4})
      for (const bool transposed : {false, true}) {
        const int64_t k = 4096, rows = transposed ? n : m, cols = transposed ? m : n;
        const auto e = explain_on("sm_90", DType::bfloat16, {rows, k}, {k, cols}, {rows, cols});
        const op::Plan& plan = *row_of(e, "gemv").plan;
        kernel::gemm::Config c;
        std::memcpy(&c, plan.first().kernel.config.data(), sizeof(c));
        const auto blocks = plan.first().launch.grid.count();
        EXPECT_EQ(c.swap, transposed);
        EXPECT_EQ(plan.first().launch.cluster.count(), unsigned(c.split)) << m << " x " << n;
        EXPECT_EQ(blocks, uint64_t(div_ceil(n, c.block_n) * c.split)) << m << " x " << n;
        EXPECT_LE(64 * c.split, k);
        EXPECT_GE(blocks, n < 1024 ? 32u : 110u) << m << " x " << n;
      }
}

// Integers, so that sums are exact in any order.
Tensor integers(const Dims& shape, DType dtype, int64_t period) {
  Tensor host(dtype, shape);
  const host::Elements elements(host.view());
  for (int64_t i = 0; i < host.size(); ++i) elements.set(i, double(i % period % 5 - 2));
  return host.to(Device::cuda(0));
}

// Every number of tokens, ways to divide k, and lines that end inside a step, against naive, and
// again with the same bits.
class FewRowsOnGpu : public ::testing::TestWithParam<MemoryLayout> {};
TEST_P(FewRowsOnGpu, GiveExactIntegersAgainAndAgain) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  GemmOptions options = with_layout(GetParam(), {.out_dtype = DType::float32});
  const auto check = [&](DType dtype, int64_t m, int64_t n, int64_t k) {
    const Tensor a = integers(options.transpose_a ? Dims{k, m} : Dims{m, k}, dtype, 7919);
    const Tensor b = integers(options.transpose_b ? Dims{n, k} : Dims{k, n}, dtype, 6151);
    options.variant = "naive";
    const auto expected = test::values(gemm(a, b, options));
    options.variant = std::min(m, n) <= 4 ? "gemv" : "";
    for (int repeat = 0; repeat < 3; ++repeat)
      ASSERT_EQ(test::values(gemm(a, b, options)), expected)
          << options.variant << " " << dtype << " " << m << " x " << n << " x " << k;
  };
  for (const int64_t k : {8, 1000, 4104})
    for (const int64_t m : {1, 2, 3, 4, 8, 16, 24, 64})
      for (const int64_t n : {256, 1032})
        for (const DType dtype : {DType::bfloat16, DType::float32}) {
          check(dtype, m, n, k);
          check(dtype, n, m, k);
        }
  for (const int64_t m : {1, 4, 16, 64}) check(DType::bfloat16, m, 4096, 8192);
  check(DType::bfloat16, 3, 4097, 4095);
  check(DType::float16, 1, 333, 8191);
}
INSTANTIATE_TEST_SUITE_P(Layouts, FewRowsOnGpu,
                         ::testing::Values(MemoryLayout::ROW_ROW, MemoryLayout::ROW_COL,
                                           MemoryLayout::COL_ROW, MemoryLayout::COL_COL));

// A warm call has its plan from an earlier one, with other addresses.
TEST(FewRowsOnAGpu, RepeatACallWithOtherMemory) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  for (const int64_t m : {4, 32}) {
    std::vector<Tensor> kept;
    for (int64_t call = 0; call < 4; ++call) {
      kept.push_back(integers({m, 512}, DType::bfloat16, 7919 - call));
      kept.push_back(integers({512, 2048}, DType::bfloat16, 6151 - call));
      const Tensor &a = kept[size_t(2 * call)], &b = kept[size_t(2 * call + 1)];
      const GemmOptions plain{.out_dtype = DType::float32, .variant = "naive"};
      const GemmOptions own{.out_dtype = DType::float32, .variant = m > 4 ? "" : "gemv"};
      EXPECT_EQ(test::values(gemm(a, b, own)), test::values(gemm(a, b, plain)));
    }
  }
}

}  // namespace
}  // namespace tensorcraft
