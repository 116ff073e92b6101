// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/checks/csr.hpp"

#include "tensorcraft/core/error.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tensorcraft::op {
namespace {

TEST(CsrView, IsGivenToKernelsAsItLies) {
  const Tensor data(DType::float32, {6}), indices(DType::int32, {3}), indptr(DType::int32, {3});
  const Csr a = csr_params(checked_csr("spmv", data.slice(0, 0, 6, 2), indices, indptr, 7));
  EXPECT_EQ(a.rows, 2);
  EXPECT_EQ(a.cols, 7);
  EXPECT_EQ(a.stored, 3);
  EXPECT_EQ(a.data_stride, 2);
  EXPECT_EQ(a.indices_stride, 1);
}

// Wherever a part of the merge begins, as many rows and elements are before it as steps.
TEST(CsrView, RowsBeforeFollowTheMerge) {
  const std::vector<int32_t> indptr = {0, 0, 3, 3, 10, 10};
  const Csr a{.data = nullptr,
              .indices = nullptr,
              .indptr = indptr.data(),
              .rows = 5,
              .cols = 1,
              .stored = 10,
              .data_stride = 1,
              .indices_stride = 1,
              .indptr_stride = 1};
  int64_t row = 0, k = 0;
  for (int64_t steps = 0; steps <= 15; ++steps) {
    EXPECT_EQ(rows_before<int32_t>(a, steps), row) << steps;
    row < 5 && indptr[size_t(row) + 1] <= k ? ++row : ++k;
  }
}

TEST(CsrView, OffsetsStayInsideWhatIsStored) {
  const std::vector<int64_t> indptr = {-4, 99};
  const Csr a{.data = nullptr,
              .indices = nullptr,
              .indptr = indptr.data(),
              .rows = 1,
              .cols = 2,
              .stored = 5,
              .data_stride = 1,
              .indices_stride = 1,
              .indptr_stride = 1};
  EXPECT_EQ(row_begin<int64_t>(a, 0), 0);
  EXPECT_EQ(row_begin<int64_t>(a, 1), 5);
  EXPECT_TRUE(is_column(a, 1));
  EXPECT_FALSE(is_column(a, 2));
  EXPECT_FALSE(is_column(a, -1));
}

TEST(CsrView, SaysWhatDoesNotFit) {
  const Tensor data(DType::float32, {3}), indices(DType::int32, {3}), indptr(DType::int32, {3}),
      starts(DType::int64, {5});
  test::expect_error_with(ErrorKind::value, "spmv: data: Size mismatch for shape#0('stored')",
                          [&] { checked_csr("spmv", data.slice(0, 0, 2), indices, indptr, 2); });
  test::expect_error_with(ErrorKind::type,
                          "csr_starts: indptr: ", [&] { check_offsets("csr_starts", data); });
  test::expect_error_with(ErrorKind::value, "spmv: starts: ", [&] {
    check_starts("spmv", starts, {data, indices, indptr, 2});
  });
}

}  // namespace
}  // namespace tensorcraft::op
