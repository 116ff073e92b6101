// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/tolerance.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

// Every operator, variant, dtype and case against the double reference. Variants come from the
// registry, cases from tests/ops/cases.
namespace tensorcraft::testing {
namespace {

std::vector<Device> devices_under_test() {
  std::vector<Device> all;
  if (cuda_device_count() > 0) return {Device::cuda(0)};
  return {Device::cpu()};
}

const std::vector<Case>& cases() {
  static const auto all = all_cases();
  return all;
}

// The values a perfect implementation returns, before rounding to the dtype of the output.
std::vector<std::vector<float>> expected_results(const Case& c) {
  CaseRun run(c, Device::cpu(), true);
  c.op->run(run.outputs(), run.arguments("reference"));
  return run.results();
}

void check_variant(const Case& c, CaseRun& run, std::string_view variant,
                   const std::vector<std::vector<float>>& expected) {
  run.poison_outputs();
  c.op->run(run.outputs(), run.arguments(variant));
  const auto got = run.results();
  const auto outputs = run.outputs();
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(compare(got[i], expected[i],
                      tolerance(outputs[i].dtype(), c.dtype, c.reduction, c.rounds_inside)),
              "")
        << c.name << ", variant " << variant << ", output " << i;
  EXPECT_EQ(run.damage(), "") << c.name << ", variant " << variant;
}

class Conformance : public ::testing::TestWithParam<const op::Operator*> {};

TEST_P(Conformance, EveryVariantAgreesWithTheReference) {
  const op::Operator& op = *GetParam();
  const char* filter = std::getenv("TC_TEST_TAG");
  for (const Device device : devices_under_test()) {
    std::set<std::string_view> ran;
    size_t count = 0;
    for (const Case& c : cases()) {
      if (c.op != &op || !c.has_tag(filter ? filter : "conformance")) continue;
      CaseRun run(c, device);
      const auto expected = expected_results(c);
      bool accepted = false;
      for (const auto& row :
           op.explain(run.outputs(), run.arguments({}), device_info(device)).variants) {
        if (!row.accepted) continue;
        accepted = true;
        ran.insert(row.variant.name);
        check_variant(c, run, row.variant.name, expected);
        if (::testing::Test::HasFatalFailure()) return;
      }
      EXPECT_TRUE(accepted) << c.name << ": no variant accepts on " << device;
      ++count;
    }
    EXPECT_GT(count, 0u) << op.description().name << " has no case";
    if (filter) continue;
    for (const auto& row : op.description().variants)
      if (row.device == device.type && row.name != "onednn") {
        EXPECT_TRUE(ran.contains(row.name)) << row.name << " accepted no case on " << device;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, Conformance, ::testing::ValuesIn(operators()),
                         [](const auto& info) {
                           return std::string(info.param->description().name);
                         });

}  // namespace
}  // namespace tensorcraft::testing
