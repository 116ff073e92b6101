// SPDX-License-Identifier: Apache-2.0
// Grouped products: what their launchers check without a GPU, and on one what they give.
#include "tensorcraft/kernels/gemm_grouped.cuh"
#include "tensorcraft/kernels/gemm.cuh"
#include "tests/kernels/thrown_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tensorcraft::kernels {
namespace {

float* const kArray = reinterpret_cast<float*>(uintptr_t(256));  // never read
const int32_t* const kSizes = reinterpret_cast<const int32_t*>(kArray);

TEST(GroupedGemm, NothingIsLaunchedForNothing) {
  float* const none = nullptr;
  EXPECT_EQ(launch_grouped_gemm(none, none, none, nullptr, 0, 5, 6, 7), "");
  EXPECT_EQ(execute_grouped(none, none, none, nullptr, 3, 0, 6, 7), "");
  EXPECT_EQ(launch_masked_gemm(none, none, none, nullptr, 3, 5, 0, 7), "");
}

TEST(GroupedGemm, RefusesNegativeSizesAndNull) {
  const auto invalid = [](const auto& call) { return text_of<std::invalid_argument>(call); };
  EXPECT_EQ(invalid([&] { launch_masked_gemm(kArray, kArray, kArray, nullptr, -1, 1, 1, 1); }),
            "Invalid matrix dimensions");
  EXPECT_EQ(
      invalid([&] { launch_grouped_gemm(kArray, kArray, kArray, nullptr, 1, 1 << 30, 1, 1); }),
      "Invalid matrix dimensions");
  EXPECT_EQ(invalid([&] { launch_grouped_gemm(kArray, kArray, kArray, nullptr, 1, 1, 1, 1); }),
            "Null pointer arguments");
}

TEST(GroupedGemm, AManagerNamesTheVariant) {
  struct Manager {
    MoeConfig get_moe_config(int64_t num_experts, int64_t rows, int64_t n, int64_t k) const {
      EXPECT_EQ(num_experts * rows * n * k, 2 * 3 * 5 * 7);
      return {.variant = "persistent"};
    }
  };
  EXPECT_EQ(text_of<std::invalid_argument>(
                [] { schedule_moe_gemm(Manager{}, kArray, kArray, kArray, kSizes, 2, 3, 5, 7); }),
            "launch_grouped_gemm: no variant of this type is named \"persistent\"");
}

TEST(GemmVersion, IsAskedForByAScheduledProduct) {
  struct Manager {
    GemmVersion get_optimal_config(int64_t m, int64_t n, int64_t k) const {
      EXPECT_EQ(m * n * k, 3 * 5 * 7);
      return m < n ? GemmVersion::TensorCore : GemmVersion::WGMMA_TMA;
    }
  };
  const auto refused = [](int64_t m, int64_t n) {
    return text_of<std::runtime_error>(
        [=] { schedule_gemm(Manager{}, kArray, kArray, kArray, m, n, 7); });
  };
  EXPECT_EQ(refused(3, 5), "launch_gemm: tensor_core: needs f16 or bf16; float would be rounded");
  EXPECT_EQ(refused(5, 3), "launch_gemm: persistent: needs f16 or bf16; float would be rounded");
}

// The tile is that of the average group, or of as many rows as the config says.
TEST(GroupedGemm, TheTileIsThatOfTheExpectedRows) {
  namespace g = detail::gemm_grouped;
  const op::Gpu gpu{.architecture = 90, .num_sms = 132};
  const g::GroupedCall call{kArray, kArray,    kArray, nullptr, g::GroupForm::ranges,
                            64,     64 * 2048, 4096,   4096};
  const auto rows_of_tile = [&](g::Given given) {
    return g::compiled_persistent(g::contiguous_params(call), given, gpu).start.config.block_m;
  };
  g::Given given = g::given_of(call, 2);
  EXPECT_EQ(given.expected_rows, 2048);
  EXPECT_EQ(rows_of_tile(given), 128);
  given.expected_rows = 20;
  EXPECT_EQ(rows_of_tile(given), 64);
}

template <class List>
bool is_in(const List& list, const detail::gemm::Start& start) {
  return std::any_of(list.begin(), list.end(), [&](const auto& instance) {
    return is_same_config(start.config, instance.config) && instance.min_blocks == start.min_blocks;
  });
}

TEST(GroupedGemm, EveryProductHasACompiledKernel) {
  namespace g = detail::gemm_grouped;
  const op::Gpu gpu{.architecture = 90, .num_sms = 132};
  for (const auto form : {g::GroupForm::ranges, g::GroupForm::counts})
    for (const int64_t rows : {1, 64, 3000})
      for (const int64_t n : {1, 8, 100, 4096})
        for (const int64_t k : {0, 1, 7, 64, 4096}) {
          const g::GroupedCall call{kArray, kArray, kArray, nullptr, form, 3, rows, n, k};
          SCOPED_TRACE(::testing::Message() << rows << " rows, n " << n << ", k " << k);
          const auto p = g::contiguous_params(call);
          const auto two = g::given_of(call, 2), four = g::given_of(call, 4);
          const auto hopper = g::compiled_persistent(p, two, gpu);
          EXPECT_TRUE(!hopper.refusal.empty() || is_in(g::kPersistentGroups, hopper.start));
          if (k > 7 && n > 7) EXPECT_EQ(hopper.refusal, "");
          EXPECT_TRUE(
              is_in(g::kNaiveGroups, g::compiled_start<float>(g::grouped<g::naive>(p, four, gpu))));
          if (k == 1) continue;  // both layouts at once: naive serves it
          EXPECT_TRUE(is_in(g::kTensorCoreGroups<bf16>,
                            g::compiled_start<bf16>(g::grouped<g::tensor_core>(p, two, gpu))));
          EXPECT_TRUE(
              is_in(g::kAsyncGroups, g::compiled_start<float>(g::grouped<g::async>(p, four, gpu))));
        }
}

// On a GPU: groups that end inside a tile, an empty one, and rows of none, which stay.
TEST(GroupedGemm, IsRightForEveryGroup) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "there is no GPU";
  constexpr int kGroups = 4, kRows = 300, kN = 136, kK = 200;
  constexpr int32_t kOffsets[] = {0, 5, 5, 205, 290};
  bf16 *a = nullptr, *b = nullptr, *d = nullptr;
  int32_t* offsets = nullptr;
  ASSERT_EQ(cudaMallocManaged(&a, kRows * kK * 2), cudaSuccess);
  ASSERT_EQ(cudaMallocManaged(&b, kGroups * kN * kK * 2), cudaSuccess);
  ASSERT_EQ(cudaMallocManaged(&d, kRows * kN * 2), cudaSuccess);
  ASSERT_EQ(cudaMallocManaged(&offsets, sizeof(kOffsets)), cudaSuccess);
  for (int i = 0; i < kRows * kK; ++i) a[i] = bf16(float(i % 5 - 2));
  for (int i = 0; i < kGroups * kN * kK; ++i) b[i] = bf16(float(i % 3 - 1));
  for (int i = 0; i < kRows * kN; ++i) d[i] = bf16(1e6f);
  for (int i = 0; i <= kGroups; ++i) offsets[i] = kOffsets[i];
  EXPECT_NE(launch_grouped_gemm(a, b, d, offsets, kGroups, kRows, kN, kK), "");
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (int row = 0; row < kRows; ++row) {
    int group = 0;
    while (group < kGroups && row >= kOffsets[group + 1]) ++group;
    for (int j = 0; j < kN; ++j) {
      float sum = 0;
      for (int e = 0; group < kGroups && e < kK; ++e)
        sum += float(a[row * kK + e]) * float(b[(group * kN + j) * kK + e]);
      ASSERT_EQ(float(d[row * kN + j]), float(bf16(group < kGroups ? sum : 1e6f)))
          << row << ", " << j;
    }
  }
  cudaFree(a), cudaFree(b), cudaFree(d), cudaFree(offsets);
}

}  // namespace
}  // namespace tensorcraft::kernels
