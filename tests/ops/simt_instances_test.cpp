// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/simt.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/simt/instance.hpp"
#include "tests/support/simt_cases.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

// The lists <op>_simt.cpp: nothing is missing in them, and nothing is there that no case runs.
namespace tensorcraft::test {
namespace {

// What a rung's list holds, and which of it the conformance test launches. Operators of one folder
// may share it.
struct Compiled {
  const jit::Rung* rung = nullptr;
  simt::InstanceList list;
  std::vector<bool> launched;
};
using Rungs = std::map<std::string, Compiled>;  // by function

void note_launch(Rungs& rungs, const op::Step& step) {
  const jit::KernelKey& key = step.kernel;
  Compiled& of = rungs[std::string(key.rung->function)];
  if (of.list.empty()) {
    of.rung = key.rung;
    of.list = op::simt_instances(step);
    of.launched.resize(of.list.size());
  }
  const auto* found = simt::find(of.list, {key.types.data(), size_t(key.num_types)}, key.config);
  of.launched[size_t(found - of.list.data())] = true;
}

std::string name_of(const jit::Rung& rung, const simt::Instance& instance) {
  jit::KernelKey key{.rung = &rung, .num_types = instance.num_types, .threads = 1};
  key.types = instance.types;
  key.config = instance.config;
  return jit::readable_name(key);
}

class SimtDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the SIMT device";
  }
};

// Whatever the Configs that are compiled in: a call on the SIMT device finds a kernel, if it leaves
// the choice of a Config free.
TEST_F(SimtDevice, HasAKernelForEveryCase) {
  for (const Case& c : all_cases()) {
    if (!c.has_tag("conformance") || c.has_tag("fixed")) continue;
    const CaseRun run(c, Device::simt());
    const auto e = c.op->explain(run.outputs(), run.arguments({}), device_info(Device::simt()));
    EXPECT_FALSE(e.variant.empty()) << c.name;
    const auto& last = e.variants.back();  // of im2col, which has one rung, by its name
    EXPECT_TRUE(last.variant.name == "naive" || last.variant.name == c.op->description().name);
    EXPECT_TRUE(last.accepted) << c.name;
  }
}

TEST_F(SimtDevice, HoldsNoInstanceThatNoCaseLaunches) {
  Rungs rungs;
  for (const Case& c : simt_cases())
    for (const op::Plan& plan : plans_on_simt(c, CaseRun(c, Device::simt())))
      for (const op::Step& step : plan.steps()) note_launch(rungs, step);
  EXPECT_GT(rungs.size(), operators().size() / 2);
  for (const auto& [function, of] : rungs)
    for (size_t i = 0; i < of.list.size(); ++i)
      EXPECT_TRUE(of.launched[i]) << function << ": " << name_of(*of.rung, of.list[i]);
}

}  // namespace
}  // namespace tensorcraft::test
