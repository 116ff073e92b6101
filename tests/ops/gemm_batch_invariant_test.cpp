// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/gemm.hpp"
#include "tensorcraft/ops/permute/permute.hpp"
#include "tests/support/gemm_plans.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

// batch_invariant: neither the plan nor the bits of a row depend on the rows beside it.
namespace tensorcraft {
namespace {

using test::explain_on, test::row_of;

// The variant and the whole Config of its kernel.
std::string plan_of(const op::Explanation& e) {
  const auto config = row_of(e, e.variant).plan->main().kernel.config;
  return std::string(e.variant) +
         std::string(reinterpret_cast<const char*>(config.data()), config.size());
}

TEST(BatchInvariant, PlansAlikeForEveryNumberOfRows) {
  const auto explained = [](const char* arch, DType dtype, int64_t batch, int64_t m, int64_t n,
                            int64_t k, bool invariant) {
    return explain_on(arch, dtype, {batch, m, k}, {k, n}, {batch, m, n}, dtype == DType::float32,
                      invariant);
  };
  for (const char* arch : {"sm_80", "sm_90", "sm_90a", "sm_100a", "sm_120"})
    for (const DType dtype : {DType::float32, DType::bfloat16})
      for (const auto& [n, k] :
           {std::pair<int64_t, int64_t>{4096, 4096}, {1024, 16384}, {57, 99}}) {
        const std::string one = plan_of(explained(arch, dtype, 1, 1, n, k, true));
        for (const int64_t m : {2, 3, 16, 64, 100, 333, 1024, 8192}) {
          EXPECT_EQ(plan_of(explained(arch, dtype, 1, m, n, k, true)), one)
              << arch << " " << dtype << " " << m << " x " << n << " x " << k;
          EXPECT_EQ(plan_of(explained(arch, dtype, 300, m, n, k, true)), one) << arch << " " << m;
        }
      }
  const auto variant = [&](int64_t m, bool invariant) {
    return explained("sm_90a", DType::bfloat16, 1, m, 4096, 4096, invariant).variant;
  };
  EXPECT_EQ(variant(1, false), "gemv");
  EXPECT_EQ(variant(1, true), "persistent");
  const auto declined = explained("sm_90a", DType::bfloat16, 1, 1, 4096, 4096, true);
  for (const char* other : {"gemv", "split_k"})
    EXPECT_EQ(row_of(declined, other).reason, "batch_invariant: it sums in an order of its own");
}

// Rows `first` to `last` of a matrix, of which the columns may be lines, in memory of their own.
Tensor rows_of(const Tensor& a, int64_t first, int64_t last, bool transposed, Device device) {
  const TensorView part = a.view().slice(-2, first, last);
  const Tensor copied = copy(transposed ? part.transpose(-2, -1) : part);
  return copied.to(device);
}

void expect_rows(const Tensor& got, const Tensor& all, int64_t first, const std::string& what) {
  const Tensor x = got.to(Device::cpu()), y = all.to(Device::cpu());
  const size_t row = size_t(all.nbytes() / size_t(all.shape()[0]));
  EXPECT_EQ(std::memcmp(x.data(), y.data_as<std::byte>() + size_t(first) * row, x.nbytes()), 0)
      << what;
}

TEST(BatchInvariant, GivesARowTheSameBitsInAnyCompany) {
  for (const Device device : devices())
    for (const DType dtype : {DType::float32, DType::bfloat16})
      for (const auto& [n, k] : {std::pair<int64_t, int64_t>{72, 136}, {57, 99}})
        for (const bool transpose_a : {false, true})
          for (const bool transpose_b : {false, true}) {
            constexpr int64_t kRows = 130;
            const Tensor a = test::normal_tensor({kRows, k}, dtype, 1);
            const Tensor weights = test::normal_tensor({k, n}, dtype, 2);
            const Tensor b = rows_of(weights, 0, k, transpose_b, device);
            const GemmOptions options{.transpose_a = transpose_a,
                                      .transpose_b = transpose_b,
                                      .allow_tf32 = true,
                                      .batch_invariant = true};
            const Tensor all = gemm(rows_of(a, 0, kRows, transpose_a, device), b, options);
            for (const auto& [first, last] : {std::pair<int64_t, int64_t>{0, 1},
                                              {kRows - 1, kRows},
                                              {0, 3},
                                              {1, 17},
                                              {0, 64}}) {
              const Tensor some = gemm(rows_of(a, first, last, transpose_a, device), b, options);
              expect_rows(some, all, first,
                          join(device, " ", dtype, " ", n, " ", k, transpose_a ? " T" : " N",
                               transpose_b ? "T " : "N ", first, " to ", last));
            }
          }
}

}  // namespace
}  // namespace tensorcraft
