// SPDX-License-Identifier: Apache-2.0
#include "tests/simt/faults/fault.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/simt/shadow.hpp"
#include "tensorcraft/simt/tensor_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace tensorcraft::test {

void PrintTo(const Fault& f, std::ostream* to) { *to << f.name; }

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAsan = true;
#else
constexpr bool kAsan = false;
#endif

struct Call {
  FaultParams params;
  FaultKernel kernel;
  bool fault;
};

struct Outcome {
  std::string report;  // empty: none
  std::vector<float> out;
};

Outcome run(const Fault& f, bool fault, const simt::Options& options) {
  std::vector<float> in(kFaultValues), out(kFaultValues, NAN);
  for (size_t i = 0; i < in.size(); ++i) in[i] = float(i + 1);
  const TiledTensor tiled{.dtype = DType::float32,
                          .address = in.data(),
                          .rank = 2,
                          .dims = {32, 32},
                          .strides = {32 * sizeof(float)},
                          .box = {32, 8},
                          .swizzle = TiledTensor::Swizzle::bytes_128};
  const Call call{{in.data(), out.data(), simt::encode_tiled(tiled)}, f.kernel, fault};
  const simt::Launch launch{.name = f.name,
                            .grid = f.cluster,
                            .block = f.block,
                            .cluster = f.cluster,
                            .shared_bytes = f.shared_bytes};
  simt::set_options(options);
  Outcome outcome;
  try {
    simt::launch(
        launch,
        [](const void* p) {
          const Call& c = *static_cast<const Call*>(p);
          c.kernel(c.params, c.fault);
        },
        &call);
  } catch (const Error& e) {
    outcome.report = e.what();
  }
  simt::set_options({});
  outcome.out = out;
  return outcome;
}

// The report of the kernel with its fault, or that its values are not those of the twin.
std::string report_of(const Fault& f) {
  const Outcome broken = run(f, true, {});
  if (!broken.report.empty()) return broken.report;
  const Outcome correct = run(f, false, {});
  for (size_t i = 0; i < correct.out.size(); ++i)
    if (!(broken.out[i] == correct.out[i]) && !std::isnan(correct.out[i]))
      return join("wrong result: element ", i, " is ", broken.out[i], ", not ", correct.out[i]);
  return "";
}

std::string name_of(const Fault& f) {
  std::string name = f.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

std::vector<Fault> all_faults() {
  std::vector<Fault> all;
  for (const auto& group : {thread_faults(), copy_faults(), hopper_faults()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

class SimtFault : public ::testing::TestWithParam<Fault> {};

TEST_P(SimtFault, IsReportedByName) {
  const Fault& f = GetParam();
  const char* const expected = simt::kRaceBuild ? f.race : kAsan ? f.asan : f.any;
  if (!expected) GTEST_SKIP() << "another build finds it";
  if (kAsan && expected != f.any) {  // the sanitizer ends the process
    EXPECT_DEATH(run(f, true, {}), expected);
    return;
  }
  EXPECT_NE(report_of(f).find(expected), std::string::npos) << "reports: " << report_of(f);
}

TEST_P(SimtFault, ItsTwinIsFreeOfReportsAtEveryTiming) {
  const Fault& f = GetParam();
  const Outcome late = run(f, false, {});
  EXPECT_EQ(late.report, "");
  EXPECT_LT(std::ranges::count_if(late.out, [](float x) { return std::isnan(x); }), kFaultValues);
  const auto same = [&](const simt::Options& options) {
    const Outcome other = run(f, false, options);
    EXPECT_EQ(other.report, "") << "seed " << options.seed;
    for (size_t i = 0; i < late.out.size(); ++i)
      EXPECT_TRUE(other.out[i] == late.out[i] || std::isnan(late.out[i])) << i;
  };
  same({.timing = simt::Timing::as_early_as_possible});
  for (uint64_t seed = 0; seed < 20; ++seed) same({.timing = simt::Timing::seeded, .seed = seed});
}

INSTANTIATE_TEST_SUITE_P(Planted, SimtFault, ::testing::ValuesIn(all_faults()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace tensorcraft::test
