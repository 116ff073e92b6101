// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/jit/warmup.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/simt/launch.hpp"
#include "tests/support/simt_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

// Equal calls give the same bits, again and again, with any number of threads, in any order that
// the threads of a kernel may run in, and on a GPU.
namespace tensorcraft::test {
namespace {

using Results = std::vector<std::vector<float>>;

bool same_bits(const Results& a, const Results& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!std::ranges::equal(a[i], b[i], {}, bit_cast<uint32_t, float>, bit_cast<uint32_t, float>))
      return false;
  return true;
}

int64_t work(const Case& c) {
  int64_t elements = 0;
  for (const TensorCase& t : c.inputs) {
    int64_t size = 1;
    for (const int64_t extent : t.shape) size *= extent;
    elements += size;
  }
  return elements;
}

// The case with the most elements, up to a size that a hundred runs bear.
const Case* largest_case(const std::vector<Case>& cases, const op::Operator& op, int64_t most) {
  const Case* largest = nullptr;
  for (const Case& c : cases)
    if (c.op == &op && c.has_tag("conformance") && work(c) <= most &&
        (!largest || work(c) > work(*largest)))
      largest = &c;
  return largest;
}

Results results_of(const Case& c, CaseRun& run, std::string_view variant) {
  c.op->run(run.outputs(), run.arguments(variant));
  return run.results();
}

class Determinism : public ::testing::TestWithParam<const op::Operator*> {
 protected:
  void TearDown() override {
    host::set_num_threads(0);
    simt::set_options({});
  }

  // Calls check(case, run, variant) for every row of the CPU that accepts the case.
  template <class F>
  void for_each_variant(F&& check) {
    static const auto cases = all_cases();
    const Case* c = largest_case(cases, *GetParam(), 200'000);
    ASSERT_NE(c, nullptr) << "no case";
    CaseRun run(*c, Device::cpu());
    const auto rows =
        c->op->explain(run.outputs(), run.arguments({}), device_info(Device::cpu())).variants;
    int checked = 0;
    for (const auto& row : rows) {
      if (!row.accepted || row.variant.name == "reference") continue;
      check(*c, run, row.variant.name);
      ++checked;
    }
    EXPECT_GT(checked, 0) << c->name;
  }
};

TEST_P(Determinism, AHundredRunsGiveTheSameBits) {
  for_each_variant([](const Case& c, CaseRun& run, std::string_view variant) {
    const Results first = results_of(c, run, variant);
    for (int i = 1; i < 100; ++i)
      ASSERT_TRUE(same_bits(results_of(c, run, variant), first)) << c.name << ", " << variant;
  });
}

TEST_P(Determinism, TheNumberOfThreadsChangesNoBit) {
  for_each_variant([](const Case& c, CaseRun& run, std::string_view variant) {
    if (variant == "onednn") return;  // it has threads of its own
    host::set_num_threads(1);
    const Results one = results_of(c, run, variant);
    for (const int threads : {2, 3, 4, 7}) {
      host::set_num_threads(threads);
      EXPECT_TRUE(same_bits(results_of(c, run, variant), one))
          << c.name << ", " << variant << ", " << threads << " threads";
    }
  });
}

constexpr uint64_t kSeeds = 20;

// A Config of a rung, whatever the types.
using Family = jit::KernelKey;
struct LessBytes {
  bool operator()(const Family& a, const Family& b) const {
    return std::memcmp(&a, &b, sizeof(Family)) < 0;
  }
};
using RunsOfFamily = std::map<Family, uint64_t, LessBytes>;

Family family_of(const op::Plan& plan) {
  Family family = plan.main().kernel;
  family.types = {};
  return family;
}

Results results_of(const Case& c, CaseRun& run, const op::Plan& plan,
                   const simt::Options& options) {
  simt::set_options(options);
  op::launch_plan(plan, Device::simt(), {}, c.op->description().name);
  return run.results();
}

// Every case that every rung accepts, as late as legal, and at so many of the seeds, in turn, that
// each Config of a rung sees all of them, or at all of them with TC_TEST_FULL; and each Config as
// early as possible. In the race build also: nothing is reported for any rung.
TEST_P(Determinism, NoTimingAndNoOrderOfThreadsChangesABitOn_simt) {
  if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the emulator";
  static const auto all = simt_cases();
  const bool is_full = std::getenv("TC_TEST_FULL");
  std::vector<const Case*> cases;
  RunsOfFamily runs, next_seed;
  for (const Case& c : all) {
    if (c.op != GetParam()) continue;
    cases.push_back(&c);
    const ImaginedCall call(c, Device::simt());
    for (const op::Plan& plan : plans_on_simt(c, call.outputs, call.arguments()))
      ++runs[family_of(plan)];
  }
  for (const Case* c : cases) {
    CaseRun run(*c, Device::simt());
    for (const op::Plan& plan : plans_on_simt(*c, run.outputs(), run.arguments({}))) {
      const Family family = family_of(plan);
      const Results first = results_of(*c, run, plan, {});
      const auto expect_same = [&](const simt::Options& options) {
        EXPECT_TRUE(same_bits(results_of(*c, run, plan, options), first))
            << c->name << ", " << jit::readable_name(plan.main().kernel) << ", "
            << (options.timing == simt::Timing::seeded ? "seed " : "early ") << options.seed;
      };
      if (!next_seed.contains(family)) expect_same({.timing = simt::Timing::as_early_as_possible});
      if (next_seed[family] >= kSeeds && !is_full) continue;
      const uint64_t number = is_full ? kSeeds : (kSeeds - 1) / runs[family] + 1;
      for (uint64_t i = 0; i < number; ++i)
        expect_same({.timing = simt::Timing::seeded, .seed = next_seed[family]++ % kSeeds});
    }
  }
  for (const auto& [family, seeds] : next_seed) EXPECT_GE(seeds, kSeeds);
}

// The largest case that takes each Config of each rung runs a hundred times.
TEST_P(Determinism, AHundredRunsOfEachKernelGiveTheSameBitsOn_gpu) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "there is no GPU";
  struct Chosen {
    const Case* of;
    std::string_view variant;
    std::vector<jit::KernelKey> kernels;
  };
  static const auto all = all_cases();
  const Device device = Device::cuda(0);
  const char* only = std::getenv("TC_TEST_VARIANT");
  std::map<Family, Chosen, LessBytes> chosen;
  for (const Case& c : all) {
    if (c.op != GetParam() || !c.has_tag("conformance") || work(c) > 200'000) continue;
    for (const op::Considered& row : explain_case(c, device_info(device)).variants) {
      if (!row.accepted || !row.plan || (only && row.variant.name != only)) continue;
      Chosen& largest = chosen[family_of(*row.plan)];
      if (largest.of && work(*largest.of) >= work(c)) continue;
      largest = {&c, row.variant.name, {}};
      for (const op::Step& step : row.plan->steps()) largest.kernels.push_back(step.kernel);
    }
  }
  EXPECT_TRUE(only || !chosen.empty());
  std::vector<jit::KernelKey> kernels;
  for (const auto& [family, one] : chosen)
    kernels.insert(kernels.end(), one.kernels.begin(), one.kernels.end());
  jit::warmup(kernels, device);  // side by side; what fails to compile fails again below
  for (const auto& [family, one] : chosen) {
    CaseRun run(*one.of, device);
    const Results first = results_of(*one.of, run, one.variant);
    for (int i = 1; i < 100; ++i)
      ASSERT_TRUE(same_bits(results_of(*one.of, run, one.variant), first))
          << one.of->name << ", " << jit::readable_name(one.kernels.front()) << ", run " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, Determinism, ::testing::ValuesIn(operators()),
                         [](const auto& info) {
                           return std::string(info.param->description().name);
                         });

}  // namespace
}  // namespace tensorcraft::test
