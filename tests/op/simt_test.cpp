// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/simt.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/simt/instance.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::op {
namespace {

struct Params {
  int* out;
};
struct Config {
  int step = 1;
};
constexpr Config kCompiled{.step = 3};

constexpr ConfigField kFields[] = {{"step"}};

simt::OperatorInstances list() {
  const auto body = [](const void* params) {
    const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
    static_cast<const Params*>(params)->out[i] = i * kCompiled.step;
  };
  simt::Instance one{.types = {DType::int32}, .num_types = 1, .body = body};
  one.config = config_bytes(kCompiled);
  return {{"count", {one}}};
}
const jit::Rung kRung{"test", "count", "test.cuh", "count", "Config", kFields};
const jit::Rung kWithout{"test", "other", "test.cuh", "other", "Config", kFields};

Plan plan(const jit::Rung& rung, DType dtype, const Config& config, int* out) {
  Step step;
  step.kernel = {.rung = &rung, .types = {dtype}, .num_types = 1, .threads = 40};
  step.kernel.config = config_bytes(config);
  step.launch = {.grid = {3}, .block = {40}};
  step.instances = list;
  Plan plan;
  plan.add(step, Params{out});
  return plan;
}

TEST(Simt, RunsTheInstanceOfAPlan) {
  std::vector<int> out(120, -1);
  launch_plan(plan(kRung, DType::int32, kCompiled, out.data()), Device::simt(), {}, "count");
  for (int i = 0; i < 120; ++i) ASSERT_EQ(out[size_t(i)], 3 * i);
}

TEST(Simt, FindsNoInstanceOfAnotherTypeConfigOrRung) {
  EXPECT_EQ(not_on_simt(plan(kRung, DType::int32, kCompiled, nullptr)), nullptr);
  EXPECT_NE(not_on_simt(plan(kRung, DType::int64, kCompiled, nullptr)), nullptr);
  EXPECT_NE(not_on_simt(plan(kRung, DType::int32, {.step = 4}, nullptr)), nullptr);
  EXPECT_NE(not_on_simt(plan(kWithout, DType::int32, kCompiled, nullptr)), nullptr);
}

TEST(Simt, NamesThePlanWithoutAnInstance) {
  try {
    launch_plan(plan(kRung, DType::int32, {.step = 4}, nullptr), Device::simt(), {}, "count");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unsupported);
    EXPECT_STREQ(e.what(), "the SIMT device has no instance of test_count_int32_s4");
  }
}

// Choosing takes the next row, and `explain` says why.
TEST(Simt, DeclinesARowWhoseConfigIsNotCompiled) {
  if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the SIMT device";
  const Tensor x(DType::float32, {3, 5 * 1024}, Device::simt());
  const TensorView view = x;
  const Value axis = int64_t(-1);
  const auto softmax = find_operator("softmax").explain({&view, 1}, {{&view, 1}, {&axis, 1}},
                                                        device_info(x.device()));
  EXPECT_FALSE(softmax.variants[0].accepted);
  EXPECT_EQ(softmax.variants[0].reason,
            "the SIMT device has no instance of this Config, "
            "softmax_persistent_float32_t1024_g1024_v4_s2_w0_n0_c1_s3_fsoftmax_mnone_s0: it has "
            "those of the tests' cases; take another shape or dtype, another variant, or a GPU");
  EXPECT_EQ(softmax.variant, "online");
  EXPECT_EQ(softmax.floor_us, 0) << "time on it says nothing of a GPU";
}

TEST(Simt, IsTracedLikeAnyDevice) {
  if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the SIMT device";
  Tensor x(DType::float32, {64}, Device::simt());
  std::fill_n(x.data_as<float>(), 64, 1.0f);
  const TensorView view = x;
  const Trace trace;
  find_operator("relu").run({&view, 1}, {{&view, 1}, {}});
  ASSERT_EQ(trace.rows().size(), 1u);
  EXPECT_EQ(trace.rows()[0].op, "relu");
  EXPECT_EQ(trace.rows()[0].variant, "vectorized");
  EXPECT_EQ(trace.rows()[0].device, Device::simt());
}

}  // namespace
}  // namespace tensorcraft::op
