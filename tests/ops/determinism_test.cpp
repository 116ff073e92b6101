// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/cases.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

// The same call gives the same bits, again and again and with any number of threads.
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

// The conformance case with the most elements, up to a size that 100 runs bear.
const Case* largest_case(const std::vector<Case>& cases, const op::Operator& op) {
  constexpr int64_t kMost = 200'000;
  const Case* largest = nullptr;
  for (const Case& c : cases)
    if (c.op == &op && c.has_tag("conformance") && work(c) <= kMost &&
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
  void TearDown() override { host::set_num_threads(0); }

  // Calls check(case, run, variant) for every row of the host that accepts the case.
  template <class F>
  void for_each_variant(F&& check) {
    static const auto cases = all_cases();
    const Case* c = largest_case(cases, *GetParam());
    ASSERT_NE(c, nullptr) << "no conformance case";
    CaseRun run(*c, Device::cpu());
    const auto rows = c->op->explain(run.outputs(), run.arguments({}), {}).variants;
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

INSTANTIATE_TEST_SUITE_P(Operators, Determinism, ::testing::ValuesIn(operators()),
                         [](const auto& info) {
                           return std::string(info.param->description().name);
                         });

}  // namespace
}  // namespace tensorcraft::testing
