// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/ops/all.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string_view>
#include <vector>

// Compiles what finishes the sums of every rung, as the compiler of a GPU has it.
namespace tensorcraft {
namespace {

TensorView array(const Dims& shape, DType dtype, int place) {
  return {reinterpret_cast<void*>(uintptr_t(place) << 40), dtype, shape, Device::cuda(0)};
}

// The plans of a product of [512, 64] by [64, 512] with these options and arrays of an epilogue.
std::vector<op::Considered> plans_of(DType dtype,
                                     const std::map<std::string_view, op::Value>& given,
                                     std::vector<TensorView> arrays = {}) {
  const bool gated = given.contains("gated");
  std::vector<TensorView> inputs{array({512, 64}, dtype, 1),
                                 array({64, gated ? 1024 : 512}, dtype, 2)};
  inputs.insert(inputs.end(), arrays.begin(), arrays.end());
  const std::vector<TensorView> outputs{array({512, 512}, dtype, 3)};
  const op::Operator& op = find_operator("gemm");
  std::vector<op::Value> options;
  for (const op::Parameter& p : op.description().options) {
    const auto found = given.find(p.name);
    options.push_back(found == given.end() ? op::Value() : found->second);
  }
  std::vector<op::Considered> plans;
  for (auto& row : op.explain(outputs, {inputs, options}, device_info_of_arch("sm_90a")).variants)
    if (row.plan) plans.push_back(std::move(row));
  return plans;
}

void expect_no_spills(const std::vector<op::Considered>& plans, size_t least) {
  EXPECT_GE(plans.size(), least);
  for (const op::Considered& row : plans)
    EXPECT_EQ(jit::compile(row.plan->main().kernel, "sm_90a").spill_bytes, 0u) << row.variant.name;
}

TEST(GemmEpilogues, CompileIntoEveryRungWithoutSpills) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const op::NamedValue named[] = {{"s"}, {"r"}, {"m"}, {"k", 0.5}};
  const std::vector<TensorView> arrays{array({512}, DType::float32, 4),
                                       array({512, 512}, DType::bfloat16, 5),
                                       array({512, 1}, DType::bool_, 6)};
  for (const DType dtype : {DType::bfloat16, DType::float32}) {
    const bool wide = dtype == DType::float32;
    const std::map<std::string_view, op::Value> expression{
        {"epilogue", std::string_view("where(m, gelu(x * s) + k * r, tanh(x))")},
        {"operands", op::NamedValues(named)}};
    expect_no_spills(plans_of(dtype, expression, arrays), wide ? 6 : 8);
    const std::map<std::string_view, op::Value> gate{
        {"gated", std::string_view("gelu_tanh")},
        {"bias", array({1024}, dtype, 7)},
        {"a_scale", array({512, 1}, DType::float32, 8)},
        {"b_scale", array({1024}, DType::float32, 9)}};
    expect_no_spills(plans_of(dtype, gate), wide ? 1 : 4);
  }
}

}  // namespace
}  // namespace tensorcraft
