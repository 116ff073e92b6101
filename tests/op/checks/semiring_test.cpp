// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/checks/semiring.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/source.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tensorcraft::op {
namespace {

TEST(Semiring, ProductsAndSumsNeedNoProgram) {
  for (const std::string_view text : {"x * a", "a*x", " x*a "})
    EXPECT_FALSE(checked_semiring("spmv", text, Reduction::sum).combine);
  EXPECT_TRUE(checked_semiring("spmv", "x * a", Reduction::max).combine);
  EXPECT_TRUE(checked_semiring("spmv", "x + a", Reduction::sum).combine);
}

TEST(Semiring, AnExpressionNeedNotHaveBothNames) {
  EXPECT_EQ(checked_semiring("spmv", "x", Reduction::max).combine->out(), DType::float32);
  EXPECT_EQ(checked_semiring("spmv", "a > 0", Reduction::sum).combine->out(), DType::float32);
  test::expect_error_with(ErrorKind::value, "spmv: combine: expected",
                          [] { checked_semiring("spmv", "x *", Reduction::sum); });
}

// Two calls of one text share a rung, another reduction has its own.
TEST(Semiring, ARungOfAnExpressionIsMadeOnce) {
  static const jit::Rung rung{"spmv", "naive", "tensorcraft/ops/spmv/00_naive.cuh",
                              "tensorcraft::kernel::spmv::Naive::run"};
  const SemiringProgram sums = checked_semiring("spmv", "x + a", Reduction::sum),
                        largest = checked_semiring("spmv", "x + a", Reduction::max);
  const jit::Rung& first = rung_with(rung, sums);
  EXPECT_EQ(&first, &rung_with(rung, checked_semiring("spmv", "x+a", Reduction::sum)));
  EXPECT_NE(first.header, rung_with(rung, largest).header);
  std::string text;
  for (const auto& header : *jit::include_closure(first.header))
    if (header->name == first.header) text = header->text;
  EXPECT_NE(text.find("#include \"tensorcraft/ops/spmv/00_naive.cuh\""), text.npos);
  EXPECT_NE(text.find("reduced(Reduction::sum, a, b)"), text.npos);
}

}  // namespace
}  // namespace tensorcraft::op
