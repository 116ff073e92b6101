// SPDX-License-Identifier: Apache-2.0
// The product on Hopper: why it cannot run elsewhere, and on such a GPU what it gives.
#include "tensorcraft/kernels/gemm.cuh"

#include <gtest/gtest.h>

#include <cmath>

namespace tensorcraft::kernels {
namespace {

alignas(16) bf16 kMatrix[128 * 128];

// G9: no GPU but sm_90 has the instructions, and nothing else runs instead.
TEST(GemmVersion, WgmmaSaysWhyItCannotRun) {
  namespace g = detail::gemm;
  const auto p = g::contiguous_params(kMatrix, g::kRows, kMatrix, g::kRows, kMatrix, kMatrix, 128,
                                      128, 128, 1, 0);
  const auto refusal = [&](int architecture, const g::Params& call) {
    return g::compiled_persistent(call, {.operand_bytes = 2, .result_bytes = 2},
                                  {.architecture = architecture, .num_sms = 132})
        .refusal;
  };
  EXPECT_EQ(refusal(90, p), "");
  for (const int older : {80, 86, 89}) EXPECT_EQ(refusal(older, p), "needs sm_90");
  for (const int newer : {100, 120}) EXPECT_EQ(refusal(newer, p), "wgmma exists on sm_90 alone");
  auto odd = p;
  odd.k = 0;
  EXPECT_EQ(refusal(90, odd), "k is 0");
  odd = g::contiguous_params(kMatrix, g::kRows, kMatrix, g::kRows, kMatrix, kMatrix, 8, 8, 9, 1, 0);
  EXPECT_EQ(refusal(90, odd), "a line of a does not start at a multiple of 16 bytes");
}

// On a GPU that has it: tails along m, n and k, both ways to C, beta, and small and large tiles.
TEST(GemmVersion, WgmmaIsRightOnHopper) {
  int count = 0, major = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "there is no GPU";
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  if (major != 9) GTEST_SKIP() << "sm_90 alone has wgmma";
  for (const int size : {64, 136, 1032})
    for (const float beta : {0.0f, 1.0f}) {
      const int m = size + 3, n = size, k = size + 8;
      bf16 *a = nullptr, *b = nullptr, *c = nullptr;
      ASSERT_EQ(cudaMallocManaged(&a, size_t(m * k) * 2), cudaSuccess);
      ASSERT_EQ(cudaMallocManaged(&b, size_t(k * n) * 2), cudaSuccess);
      ASSERT_EQ(cudaMallocManaged(&c, size_t(m * n) * 2), cudaSuccess);
      for (int i = 0; i < m * k; ++i) a[i] = bf16(float(i % 5 - 2));
      for (int i = 0; i < k * n; ++i) b[i] = bf16(float(i % 3 - 1));
      for (int i = 0; i < m * n; ++i) c[i] = bf16(beta ? float(i % 7) : NAN);
      EXPECT_EQ(launch_gemm(a, b, c, m, n, k, 1.0f, beta, GemmVersion::WGMMA_TMA), "persistent");
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      for (int i = 0; i < m; i += 7)
        for (int j = 0; j < n; ++j) {
          float sum = beta ? float((i * n + j) % 7) : 0;
          for (int e = 0; e < k; ++e) sum += float(a[i * k + e]) * float(b[e * n + j]);
          ASSERT_EQ(float(c[i * n + j]), float(bf16(sum))) << size << " at " << i << ", " << j;
        }
      cudaFree(a), cudaFree(b), cudaFree(c);
    }
}

}  // namespace
}  // namespace tensorcraft::kernels
