// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

// Weights of safetensors are read-only, so every operator takes inputs that nobody can write
// through, on every device, and leaves their bytes as they are.
namespace tensorcraft::test {
namespace {

const std::vector<Case>& cases() {
  static const std::vector<Case> all = all_cases();
  return all;
}

// Large cases are for what speed depends on, and two runs of each take minutes.
bool is_small(const Case& c) {
  int64_t elements = 0, sums = 0;
  for (const TensorCase& x : c.inputs) elements += num_elements(x.shape);
  for (const op::OutputSpec& out : infer_case(c)) sums += num_elements(out.shape);
  return elements <= 1 << 14 && double(sums) * c.reduction <= 1 << 18;
}

using Results = std::vector<std::vector<float>>;
bool same_bits(const Results& a, const Results& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  });
}

class ReadOnlyInputs : public ::testing::TestWithParam<const op::Operator*> {};

TEST_P(ReadOnlyInputs, GiveTheSameResultsAndKeepTheirBytes) {
  int runs = 0;
  for (const Case& c : cases()) {
    if (c.op != GetParam() || !c.has_tag("conformance") || !is_small(c)) continue;
    CaseRun usual(c, Device::cpu()), weights(c, Device::cpu());
    weights.make_inputs_read_only();
    const DeviceInfo host = device_info(Device::cpu());
    for (const auto& row : c.op->explain(usual.outputs(), usual.arguments({}), host).variants) {
      if (!row.accepted) continue;
      const std::string what = join(c.name, ", variant ", row.variant.name);
      usual.poison_outputs();
      weights.poison_outputs();
      c.op->run(usual.outputs(), usual.arguments(row.variant.name));
      ASSERT_NO_THROW(c.op->run(weights.outputs(), weights.arguments(row.variant.name))) << what;
      EXPECT_TRUE(same_bits(weights.results(), usual.results())) << what;
      EXPECT_EQ(weights.damage(), "") << what;
      ++runs;
    }
  }
  EXPECT_GT(runs, 0);
}

// The plan is made of the addresses, so who asks there for one to write to is found without a GPU.
TEST_P(ReadOnlyInputs, HaveThePlansOfOthersOnAGpu) {
  for (const std::string_view arch : {"sm_80", "sm_90a"}) {
    const DeviceInfo gpu = device_info_of_arch(arch);
    for (const Case& c : cases()) {
      if (c.op != GetParam() || !c.has_tag("conformance")) continue;
      const ImaginedCall usual(c, gpu.device);
      ImaginedCall weights(c, gpu.device);
      weights.make_inputs_read_only();
      const auto plan_of = [&](const ImaginedCall& call) {
        return op::to_string(c.op->explain(call.outputs, call.arguments(), gpu));
      };
      std::string found;
      ASSERT_NO_THROW(found = plan_of(weights)) << c.name;
      EXPECT_EQ(found, plan_of(usual)) << c.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, ReadOnlyInputs, ::testing::ValuesIn(operators()),
                         [](const auto& info) {
                           return std::string(info.param->description().name);
                         });

}  // namespace
}  // namespace tensorcraft::test
