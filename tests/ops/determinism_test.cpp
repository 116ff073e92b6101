// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/simt/launch.hpp"
#include "tests/support/cases.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

// The same call gives the same bits, again and again, with any number of threads, and in any order
// that the threads of a kernel may run in.
namespace tensorcraft::testing {
namespace {

using Results = std::vector<std::vector<float>>;

bool same_bits(const Results& a, const Results& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].size() != b[i].size() ||
        std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0)
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

// The case of a tag with the most elements, up to a size that many runs bear.
const Case* largest_case(const std::vector<Case>& cases, const op::Operator& op,
                         std::string_view tag, int64_t most) {
  const Case* largest = nullptr;
  for (const Case& c : cases)
    if (c.op == &op && c.has_tag(tag) && work(c) <= most && (!largest || work(c) > work(*largest)))
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

  // Calls check(case, run, variant) for every row of the device that accepts the case.
  template <class F>
  void for_each_variant(F&& check, Device device = Device::cpu()) {
    static const auto cases = all_cases();
    const bool on_simt = device == Device::simt();
    const Case* c = on_simt ? largest_case(cases, *GetParam(), "simt", 20'000)
                            : largest_case(cases, *GetParam(), "conformance", 200'000);
    ASSERT_NE(c, nullptr) << "no case";
    CaseRun run(*c, device);
    const auto rows =
        c->op->explain(run.outputs(), run.arguments({}), device_info(device)).variants;
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

TEST_P(Determinism, TheOrderOfThreadsChangesNoBitOn_simt) {
  if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the SIMT device";
  const auto check = [](const Case& c, CaseRun& run, std::string_view variant) {
    simt::set_options({});
    const Results first = results_of(c, run, variant);
    simt::set_options({.timing = simt::Timing::as_early_as_possible});
    EXPECT_TRUE(same_bits(results_of(c, run, variant), first)) << c.name << ", " << variant;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      simt::set_options({.timing = simt::Timing::seeded, .seed = seed});
      EXPECT_TRUE(same_bits(results_of(c, run, variant), first))
          << c.name << ", " << variant << ", seed " << seed;
    }
  };
  for_each_variant(check, Device::simt());
}

INSTANTIATE_TEST_SUITE_P(Operators, Determinism, ::testing::ValuesIn(operators()),
                         [](const auto& info) {
                           return std::string(info.param->description().name);
                         });

}  // namespace
}  // namespace tensorcraft::testing
