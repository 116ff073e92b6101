// SPDX-License-Identifier: Apache-2.0
#include "bench/tune_case.hpp"

#include "tensorcraft/op/launch/plan_cache.hpp"
#include "tensorcraft/op/launch/trace.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/softmax/softmax.hpp"
#include "tests/stress/stress.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tensorcraft::bench {
namespace {

using test::FakeDriver;

diagnose::TuneReport tune_line(const std::string& line, Device device) {
  diagnose::TuneSettings settings;
  settings.again = true;
  return tune_case({diagnose::parse_request(line), {}}, device, settings);
}

TEST(TuneCase, OnTheCpuHasOperandsOfItsOwn) {
  const diagnose::TuneReport report = tune_line("softmax 8x64", Device::cpu());
  EXPECT_EQ(report.problem, "8x64");
  EXPECT_GT(report.row.entry.us, 0);
  op::forget_tuned();
}

TEST(TuneCase, OnAGpuWhereAllTakeTheSameTimeTheModelsChoiceStays) {
  FakeDriver fake;
  for (const std::string line :
       {"softmax 64x64", "gemm 512x512 512x512 --dtype bf16 --option activation=gelu"}) {
    const diagnose::TuneReport report = tune_line(line, Device::cuda());
    EXPECT_EQ(report.row.key.device, "Fake H200");
    EXPECT_EQ(report.row.entry.variant, report.model.variant);
    EXPECT_EQ(report.row.entry.config, report.model.config);
    EXPECT_EQ(report.row.entry.us, report.row.entry.model_us);
    EXPECT_GE(report.iterations.size(), 3u);
    for (const diagnose::TuningIteration& one : report.iterations)
      EXPECT_EQ(one.error, "") << to_string(one.candidate);
  }
  EXPECT_GT(fake.calls["cuGraphLaunch"], 0) << "short calls are timed by a graph";
  op::forget_tuned();
}

TEST(TuneCase, ACallThatIsRememberedIsPlannedAnewOnceItIsTuned) {
  FakeDriver fake;
  const Tensor x(DType::float32, {16, 64}, Device::cuda()),
      y(DType::float32, {16, 64}, Device::cuda());
  const auto variant = [&] {
    const op::Trace trace;
    softmax(y, x);
    return std::string(trace.rows().at(0).variant);
  };
  const std::string model = variant();
  const long before = op::PlanCache::of_this_thread().repeats();
  EXPECT_EQ(variant(), model);
  EXPECT_EQ(variant(), model);
  EXPECT_GT(op::PlanCache::of_this_thread().repeats(), before);
  const op::Operator& softmax_op = find_operator("softmax");
  const TensorView in = x.view(), out = y.view();
  const op::Explanation e =
      softmax_op.explain({&out, 1}, {{&in, 1}, {}}, device_info(Device::cuda()));
  ASSERT_NE(model, "naive");
  op::set_tuned(device_info(Device::cuda()), "softmax", softmax_op.description().variants, e.call,
                {"naive", "", 1, 2});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(variant(), "naive") << "also when it is repeated";
  op::forget_tuned();
  EXPECT_EQ(variant(), model);
}

}  // namespace
}  // namespace tensorcraft::bench
