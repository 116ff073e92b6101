// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/simt.hpp"

#include "tensorcraft/jit/host_compiler.hpp"
#include "tensorcraft/jit/source.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/simt/instance.hpp"

#include <gtest/gtest.h>

#include <cstring>

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

void count(const void* params) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  static_cast<const Params*>(params)->out[i] = i * kCompiled.step;
}
constexpr simt::Instance kInstances[] = {
    {"test::count", {DType::int32}, 1, config_bytes(kCompiled), count}};
const simt::KnownInstances kKnown([](const simt::Wanted& wanted) {
  return simt::find_in(kInstances, wanted);
});
const jit::Rung kRung{"test", "count", "test.cuh", "test::count", "Config", kFields};
const jit::Rung kWithout{"test", "other", "test.cuh", "test::other", "Config", kFields};

Plan plan(const jit::Rung& rung, DType dtype, const Config& config, int* out) {
  Step step;
  step.kernel = {.rung = &rung, .types = {dtype}, .num_types = 1, .threads = 40};
  step.kernel.config = config_bytes(config);
  step.launch = {.grid = {3}, .block = {40}};
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
  const auto is_compiled_in = [](const Plan& plan) {
    return simt_instance(plan.first().kernel) != nullptr;
  };
  EXPECT_TRUE(is_compiled_in(plan(kRung, DType::int32, kCompiled, nullptr)));
  EXPECT_FALSE(is_compiled_in(plan(kRung, DType::int64, kCompiled, nullptr)));
  EXPECT_FALSE(is_compiled_in(plan(kRung, DType::int32, {.step = 4}, nullptr)));
  EXPECT_FALSE(is_compiled_in(plan(kWithout, DType::int32, kCompiled, nullptr)));
}

// One instance is found for each Config that the rung says it serves.
TEST(Simt, FindsAMoreGeneralInstance) {
  jit::Rung rung = kRung;
  rung.general = [](const ConfigBytes& bytes) {
    Config config;
    std::memcpy(&config, bytes.data(), sizeof(config));
    return config_bytes(config.step < 10 ? kCompiled : config);
  };
  const auto is_found = [&](int step) {
    return simt_instance(plan(rung, DType::int32, {.step = step}, nullptr).first().kernel) !=
           nullptr;
  };
  EXPECT_TRUE(is_found(3) && is_found(4));
  EXPECT_FALSE(is_found(11));
}

// A rung that no list has, of any dtype and Config.
TEST(Simt, CompilesWhatACallAsksFor) {
  if (!jit::host_compiler_problem().empty()) GTEST_SKIP() << jit::host_compiler_problem();
  jit::add_source("test/steps.cuh", R"(#pragma once
#include "tensorcraft/device/base.h"
namespace steps {
struct Params { int* out; };
struct Config { int step = 1; };
template <class T, Config C> TC_DEVICE void run(const Params& p) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  p.out[i] = i * C.step + int(sizeof(T));
}
})");
  static const jit::Rung steps{"test",       "steps",         "test/steps.cuh",
                               "steps::run", "steps::Config", kFields};
  for (const int step : {4, -7}) {
    std::vector<int> out(120, -1);
    const Plan made = plan(steps, DType::int64, {.step = step}, out.data());
    EXPECT_EQ(not_on_simt(made), nullptr);
    launch_plan(made, Device::simt(), {}, "steps");
    for (int i = 0; i < 120; ++i) ASSERT_EQ(out[size_t(i)], i * step + 8);
  }
}

// By the variant that a GPU of that kind runs too.
TEST(Simt, ChoosesAsAGpuDoes) {
  if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the emulator";
  if (!jit::host_compiler_problem().empty()) GTEST_SKIP() << jit::host_compiler_problem();
  const Tensor x(DType::float32, {3, 5 * 1024}, Device::simt());
  const TensorView view = x;
  const Value axis = int64_t(-1);
  const auto softmax = find_operator("softmax").explain({&view, 1}, {{&view, 1}, {&axis, 1}},
                                                        device_info(x.device()));
  EXPECT_TRUE(softmax.variants[0].accepted) << softmax.variants[0].reason;
  EXPECT_EQ(softmax.variant, "in_registers");
  EXPECT_EQ(softmax.floor_us, 0) << "time on it says nothing of a GPU";
}

TEST(Simt, IsTracedLikeAnyDevice) {
  if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the emulator";
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
