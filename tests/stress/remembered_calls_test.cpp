// SPDX-License-Identifier: Apache-2.0
// A call like an earlier one is repeated from memory (op/launch/plan_cache.hpp). For the cases of
// every operator: with other addresses and seeds it launches, byte for byte, what planning anew
// would.
#include "tensorcraft/op/launch/plan_cache.hpp"
#include "tensorcraft/tensorcraft.hpp"
#include "tests/stress/stress.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/empty_driver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace tensorcraft {
namespace {

using test::Case;
using test::CaseRun;

struct Launched {
  cuda::LaunchSetup setup;
  std::byte params[4096];  // what a launch takes at most
};
std::vector<Launched> launched;  // by the last call

const cuda::Driver& recording_driver() {
  static cuda::Driver driver = test::empty_driver();
  driver.launch_kernel.function = [](const cuda::LaunchSetup* setup, CUfunc_st*, void** arguments,
                                     void**) {
    Launched& now = launched.emplace_back(*setup);
    std::memcpy(now.params, arguments[0], sizeof(now.params));
    return 0;
  };
  driver.memset_async.function = [](auto...) { return 0; };
  return driver;
}

// The tensors of a case as if they lay on a GPU, each `distance` bytes from its neighbour's place.
class Call {
 public:
  Call(const CaseRun& run, const op::Operator& op, uint64_t distance) : op_(op) {
    const op::Arguments host = run.arguments({});
    uint64_t shift = 0;
    const auto moved = [&](const TensorView& t) {
      shift += distance;
      return TensorView(t.data_as<std::byte>() + shift, t.dtype(), t.shape(), t.strides(),
                        Device::cuda(0));
    };
    for (const auto& t : host.inputs) inputs_.push_back(moved(t));
    for (const auto& t : run.outputs()) outputs_.push_back(moved(t));
    options_.assign(host.options.begin(), host.options.end());
    for (size_t i = 0; i < options_.size(); ++i) {
      op::Value& v = options_[i];
      const std::string_view name = op.description().options[i].name;
      if (const auto* t = std::get_if<TensorView>(&v)) v = moved(*t);
      if (const auto* n = std::get_if<int64_t>(&v); n && (name == "seed" || name == "offset"))
        v = *n + int64_t(distance);  // what a plan serves any of
    }
  }
  void run() const {
    launched.clear();
    op_.run(outputs_, arguments());
  }
  bool is_empty() const { return outputs_[0].size() == 0; }
  // Was launched what a Plan made anew for these tensors says?
  bool is_launched() const {
    const auto e = op_.explain(outputs_, arguments(), device_info(Device::cuda(0)));
    for (const op::Considered& c : e.variants) {
      if (c.variant.name != e.variant) continue;
      return std::ranges::equal(launched, c.plan->steps(),
                                [&](const Launched& launch, const op::Step& step) {
                                  return is_of(launch, *c.plan, step);
                                });
    }
    return false;
  }

 private:
  static bool is_of(const Launched& launch, op::Plan plan, const op::Step& step) {
    // Memory of the launch's own, or its stream's, which no plan knows. Steps with one argument
    // have one workspace. The empty driver's maps begin with their address.
    for (const op::Step& s : plan.steps())
      for (const int at :
           {s.workspace_at, s.counter_at, s.workspace_maps[0].at, s.workspace_maps[1].at})
        if (at >= 0 && s.params_at == step.params_at)
          std::memcpy(plan.params(step) + at, launch.params + at, sizeof(void*));
    return launch.setup.grid_x == step.launch.grid.x &&
           launch.setup.block_x == step.launch.block.x &&
           std::memcmp(launch.params, plan.params(step), step.params_bytes) == 0;
  }
  op::Arguments arguments() const { return {inputs_, options_, {}, std::nullopt}; }
  const op::Operator& op_;
  std::vector<TensorView> inputs_, outputs_;
  std::vector<op::Value> options_;
};

std::string repeat(const Case& c) {
  const CaseRun run(c, Device::cpu());
  const Call here(run, *c.op, uint64_t(1) << 32), there(run, *c.op, uint64_t(1) << 33);
  if (here.is_empty()) return {};
  here.run();
  here.run();  // seen twice: remembered
  const long before = op::PlanCache::of_this_thread().repeats();
  for (const Call* call : {&there, &here, &here}) {
    call->run();
    if (!call->is_launched()) return "launched something else than a new plan";
  }
  return op::PlanCache::of_this_thread().repeats() == before + 3 ? "" : "was planned anew";
}

int repeat_all() {
  cuda::set_driver_for_test(&recording_driver());
  int wrong = 0, cases = 0;
  for (const Case& c : test::all_cases()) {
    if (!c.has_tag("simt")) continue;  // the small ones: each operator has many
    ++cases;
    const std::string problem = repeat(c);
    if (problem.empty()) continue;
    std::cerr << c.op->description().name << ' ' << c.name << ' ' << c.dtype << ": " << problem
              << '\n';
    ++wrong;
  }
  return cases > 100 && wrong == 0 ? 0 : 1;
}

TEST(RememberedCalls, LaunchWhatPlanningAnewWould) {
  const std::string log = ::testing::TempDir() + "/remembered_calls.log";
  std::remove(log.c_str());
  EXPECT_EQ(test::Child(log, repeat_all).wait(std::chrono::minutes(5)), 0);
  std::stringstream text;
  text << std::ifstream(log).rdbuf();
  EXPECT_EQ(text.str(), "");
}

}  // namespace
}  // namespace tensorcraft
