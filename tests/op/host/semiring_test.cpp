// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/semiring.hpp"

#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

namespace tensorcraft::host {
namespace {

// Each row once, whatever the lengths, for any number of threads.
TEST(HostSemiring, RangesOfEqualWorkCoverEveryRowOnce) {
  std::vector<int32_t> indptr{0};
  for (int row = 0; row < 5000; ++row)
    indptr.push_back(indptr.back() + (row == 17 ? 300000 : row % 5));
  const Csr a{.data = nullptr,
              .indices = nullptr,
              .indptr = indptr.data(),
              .rows = 5000,
              .cols = 1,
              .stored = indptr.back(),
              .data_stride = 1,
              .indices_stride = 1,
              .indptr_stride = 1};
  std::vector<int> seen(5000);
  std::mutex mutex;
  for_rows_of_equal_work<int32_t>(a, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    for (int64_t row = begin; row < end; ++row) ++seen[size_t(row)];
  });
  EXPECT_EQ(seen, std::vector<int>(5000, 1));
}

TEST(HostSemiring, ResultsInFloatAndInDoubleAgree) {
  const Tensor data = Tensor::from({1.0f, 2.0f, 3.0f}, {3}), x = Tensor::from({0.5f, 4.0f}, {2});
  const Tensor indices = Tensor::from({0, 1, 0}, {3}), indptr = Tensor::from({0, 2, 2, 3}, {4});
  const op::CsrView a{data, indices, indptr, 2};
  const auto largest = op::checked_semiring("spmv", "x + a", Reduction::max);
  const std::vector<double> exact = exact_row_results(largest, a, x);
  EXPECT_EQ(exact[0], 6);
  EXPECT_EQ(exact[2], 3.5);
  const std::vector<float> results = test::values(row_results(largest, a, x));
  EXPECT_EQ(std::vector<double>(results.begin(), results.end()), exact);
}

TEST(HostSemiring, StridedElementsAreCopiedSideBySide) {
  const Tensor x = Tensor::from({1.0f, 2.0f, 3.0f, 4.0f}, {4});
  Tensor memory;
  EXPECT_EQ(contiguous(x, memory).data(), x.data());
  const TensorView every_other = contiguous(x.slice(0, 0, 4, 2), memory);
  EXPECT_EQ(every_other.data_as<float>()[1], 3.0f);
}

}  // namespace
}  // namespace tensorcraft::host
