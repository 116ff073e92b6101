// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/ops/elementwise/definitions.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"

#include <gtest/gtest.h>

#include <vector>

// The compile gate has one text of each Config; here are all that the language can say.
namespace tensorcraft {
namespace {

using namespace kernel::elementwise;

// The plans of an expression over [64, 64] arrays of these dtypes named a, b, c.
std::vector<op::Plan> plans_of(std::string_view text, const std::vector<DType>& dtypes) {
  constexpr std::string_view kNames[] = {"a", "b", "c"};
  std::vector<Operand> operands;
  ExpressionProblem q{{}, TensorView(nullptr, DType::float32, Dims{}), {}};
  const auto tensor = [](DType dtype, uintptr_t place) {
    return TensorView(reinterpret_cast<void*>(place << 40), dtype, {64, 64}, Device::cuda(0));
  };
  for (const DType dtype : dtypes) {
    operands.push_back({kNames[operands.size()], dtype});
    q.inputs.push_back(tensor(dtype, operands.size()));
  }
  q.program = compile_expression(text, operands, std::nullopt);
  q.out = tensor(q.program.out(), 9);
  std::vector<op::Plan> plans;
  const op::Definition<ExpressionProblem, ElementwiseOptions> def{.ladder = expression_ladder()};
  for (const op::Considered& row : op::consider(def, q, device_info_of_arch("sm_90a")))
    if (row.plan && row.variant.name != "naive") plans.push_back(*row.plan);
  return plans;
}

TEST(Expressions, EveryFunctionAndDtypeCompilesWithoutSpills) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const std::pair<std::string_view, std::vector<DType>> all[] = {
      {"log(a) + sqrt(a) + rsqrt(a) + round(a) + exp(a) + tanh(a) + sigmoid(a) + relu(a) + "
       "leaky_relu(a) + elu(a) + silu(a) + swish(a) + gelu(a) + gelu_tanh(a) + a ** b - abs(-a) / "
       "b",
       {DType::float32, DType::float32}},
      {"sin(a) + cos(a) + tan(a) + asin(a) + acos(a) + atan(a) + sinh(a) + cosh(a) + asinh(a) + "
       "acosh(a) + atanh(a) + expm1(a) + exp2(a) + log1p(a) + log2(a) + log10(a) + erf(a)",
       {DType::float32}},
      {"floor(a) + ceil(a) - trunc(a) // b + a % sign(b) + atan2(a, b) * hypot(a, b) - "
       "logaddexp(a, b) + copysign(a, nextafter(a, b)) + 1 / square(a) + reciprocal(b)",
       {DType::bfloat16, DType::bfloat16}},
      {"(a // b | a % b & ~b) ^ (a << 2) + (b >> 1) - sign(a)", {DType::int64, DType::int32}},
      {"(a // b | a % b & ~b) ^ (a << 2) + (b >> 1) - sign(a)", {DType::int8, DType::uint8}},
      {"isfinite(a) ^ isinf(b) | signbit(a) & c", {DType::float16, DType::float32, DType::bool_}},
      {"where(not isnan(a) and (a > b or c), clip(a, -1, 1), min(b, a) * 2)",
       {DType::float16, DType::bfloat16, DType::bool_}},
      {"-max(a, 3) * b - a ** 2 + abs(b) + where(a == b, a, b) * int64(c)",
       {DType::int64, DType::int32, DType::uint8}},
      {"int8(float32(a) * float32(b) + float32(c))",
       {DType::int8, DType::float8_e4m3fn, DType::float8_e5m2}},
      {"a / b < a", {DType::int32, DType::int64}},
      {"int16(not a != b)", {DType::bool_, DType::bool_}},
  };
  for (const auto& [text, dtypes] : all) {
    const auto plans = plans_of(text, dtypes);
    EXPECT_EQ(plans.size(), 2u) << text;
    for (const op::Plan& plan : plans)
      EXPECT_EQ(jit::compile(plan.first().kernel, "sm_90a").spill_bytes, 0u) << text;
  }
}

}  // namespace
}  // namespace tensorcraft
