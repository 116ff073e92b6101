// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/operator.hpp"

#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tests/op/l2_normalize_call.hpp"
#include "tests/support/expect_error.hpp"

#include <array>

#include <gtest/gtest.h>

namespace tensorcraft::op {
namespace {

using test::expect_error;

class OperatorTest : public test::L2NormalizeCall {};

TEST_F(OperatorTest, AnArgumentTakesItsOwnDtypesOrThoseOfTheOperator) {
  using enum DType;
  const auto dtypes = [](std::string_view op, std::string_view argument) {
    const auto found = argument_dtypes(find_operator(op).description(), argument);
    return std::vector(found.begin(), found.end());
  };
  EXPECT_EQ(dtypes("take", "indices"), (std::vector{int32, int64}));
  EXPECT_EQ(dtypes("embedding", "ids"), (std::vector{int32, int64}));
  EXPECT_EQ(dtypes("attention", "key_lengths"), (std::vector{int32, int64}));
  EXPECT_EQ(dtypes("dequantize", "scales"), std::vector{float32});
  EXPECT_EQ(dtypes("gemm", "a_zero"), std::vector{int32});
  EXPECT_EQ(dtypes("softmax", "x"), (std::vector{float32, float16, bfloat16}));
  EXPECT_EQ(dtypes("embedding", "table"),
            (std::vector{float32, float16, bfloat16, float8_e4m3fn, float8_e5m2}));
  EXPECT_TRUE(dtypes("rms_norm", "residual").empty());
  EXPECT_TRUE(dtypes("softmax", "y").empty());
}

TEST_F(OperatorTest, TheTextOfAParameterNamesItsDtypes) {
  EXPECT_EQ(to_string(takes(kIndexTypes, "%, any shape")), "int32 or int64, any shape");
  EXPECT_EQ(to_string(takes(kFloatTypes, "(m, k): %")), "(m, k): float32, float16 or bfloat16");
  EXPECT_EQ(to_string(ParameterDoc("of %")), "of ");
  for (const Operator* op : operators())
    for (const auto* parameters : {&op->description().inputs, &op->description().options})
      for (const Parameter& p : *parameters)
        for (const DType dtype : p.doc.dtypes)
          EXPECT_NE(to_string(p.doc).find(to_string(dtype)), std::string::npos)
              << op->description().name << ": " << p.name;
}

TEST_F(OperatorTest, TheNumberOfOutputsIsChecked) {
  const std::array<Value, 2> options;
  const TensorView x = x_;
  const std::array<TensorView, 2> two{out_.view(), out_.view()};
  expect_error(
      ErrorKind::type, [&] { operator_.run({}, {std::span(&x, 1), options}); },
      "l2_normalize: takes 1 to 1 outputs, got 0");
  expect_error(
      ErrorKind::type, [&] { operator_.run(two, {std::span(&x, 1), options}); },
      "l2_normalize: takes 1 to 1 outputs, got 2");
}

}  // namespace
}  // namespace tensorcraft::op
