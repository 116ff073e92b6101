// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/gemm/plan.h"
#include "tests/support/gemm_plans.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

// The rungs and Configs that are chosen for products of float8 and int8, on GPUs that need not be
// here.
namespace tensorcraft {
namespace {

// A product of weights [n, k] on a GPU that need not be here.
struct PlannedCall {
  Dims a, b;
  DType dtype = DType::float8_e4m3fn, out = DType::bfloat16;
  Dims a_scale = {}, b_scale = {};
  std::string_view accumulation = "promoted";
  bool transpose_a = false;
};
op::Explanation explain_bytes(const char* arch, const PlannedCall& call) {
  alignas(16) static std::byte memory[16];
  const std::vector<TensorView> inputs{{memory, call.dtype, call.a}, {memory, call.dtype, call.b}};
  const Dims d{call.a[call.transpose_a ? 1 : 0], call.b[0]};
  const std::vector<TensorView> outputs{{reinterpret_cast<void*>(uintptr_t(1) << 46), call.out, d}};
  const op::Operator& op = find_operator("gemm");
  const auto& options = op.description().options;
  std::vector<op::Value> values(options.size());
  for (size_t i = 0; i < options.size(); ++i) {
    const std::string_view name = options[i].name;
    if (name == "transpose_a") values[i] = call.transpose_a;
    if (name == "transpose_b") values[i] = true;
    if (name == "accumulation") values[i] = call.accumulation;
    if (name == "a_scale" && call.a_scale.rank())
      values[i] = TensorView(memory, DType::float32, call.a_scale);
    if (name == "b_scale" && call.b_scale.rank())
      values[i] = TensorView(memory, DType::float32, call.b_scale);
  }
  return op.explain(outputs, {inputs, values}, device_info_of_arch(arch));
}
kernel::gemm::Config config_of(const op::Explanation& e) {
  kernel::gemm::Config c;
  std::memcpy(&c, test::row_of(e, e.variant).plan->main().kernel.config.data(), sizeof(c));
  return c;
}

TEST(GemmBytes, TakeTheRungsOnWgmma) {
  using kernel::gemm::Promotion;
  const Dims a{4096, 7168}, b{4096, 7168};
  const auto planned = [&](const PlannedCall& call) { return explain_bytes("sm_90a", call); };
  for (const DType dtype : {DType::float8_e4m3fn, DType::float8_e5m2}) {
    const auto e = planned({.a = a, .b = b, .dtype = dtype});
    EXPECT_EQ(e.variant, "persistent");
    EXPECT_EQ(config_of(e).promotion, Promotion::plain);
    EXPECT_EQ(config_of(e).block_k, 128);
  }
  EXPECT_EQ(config_of(planned({.a = a, .b = b, .accumulation = "fast"})).promotion,
            Promotion::none);
  const Dims a_scale{4096, 56};
  const auto squares = planned({.a = a, .b = b, .a_scale = a_scale, .b_scale = {32, 56}});
  EXPECT_EQ(config_of(squares).promotion, Promotion::by_square);
  const auto columns = planned({.a = a, .b = b, .a_scale = a_scale, .b_scale = {4096, 56}});
  EXPECT_EQ(config_of(columns).promotion, Promotion::by_column);
  EXPECT_EQ(planned({.a = a, .b = b, .dtype = DType::int8, .out = DType::int32}).variant,
            "persistent");
  // Others than along k are copied, and other GPUs have the rungs that take anything.
  EXPECT_EQ(planned({.a = {7168, 4096}, .b = b, .transpose_a = true}).variant, "packed");
}

TEST(GemmBytes, TakeMmaOnOtherGpus) {
  const Dims a{4096, 7168}, b{4096, 7168};
  const auto variant = [&](const char* arch, const PlannedCall& call) {
    return explain_bytes(arch, call).variant;
  };
  for (const char* arch : {"sm_89", "sm_120"}) {
    EXPECT_EQ(variant(arch, {.a = a, .b = b}), "swizzled") << arch;
    EXPECT_EQ(variant(arch, {.a = a, .b = b, .a_scale = {4096, 56}, .b_scale = {32, 56}}), "naive");
  }
  EXPECT_EQ(variant("sm_80", {.a = a, .b = b}), "naive");
  EXPECT_EQ(variant("sm_80", {.a = a, .b = b, .dtype = DType::int8, .out = DType::int32}),
            "swizzled");
  // Few rows of float8 are a stream of weights.
  for (const char* arch : {"sm_80", "sm_90a"}) {
    EXPECT_EQ(variant(arch, {.a = {1, 7168}, .b = b}), "gemv") << arch;
    EXPECT_EQ(variant(arch, {.a = {4, 7168}, .b = b, .a_scale = {4, 56}, .b_scale = {32, 56}}),
              "gemv");
  }
}

// A consumer has room for its sums twice and for the scales of two blocks.
TEST(GemmBytes, HaveRoomForPromotedSums) {
  using namespace kernel::gemm;
  Config c{.block_m = 128,
           .block_n = 256,
           .block_k = 128,
           .stages = 3,
           .consumers = 2,
           .b_layout = Layout::column_major};
  EXPECT_EQ(ring_problem(c, 1), "");
  c.promotion = Promotion::plain;
  EXPECT_NE(ring_problem(c, 1), "");
  c.block_n = 192;
  EXPECT_EQ(ring_problem(c, 1), "");
  c.promotion = Promotion::by_column;
  EXPECT_NE(ring_problem(c, 1), "");
  c.block_n = 64;
  EXPECT_EQ(ring_problem(c, 1), "");
}

// Scales that are one number are a part of alpha: the kernel is the one without scales.
TEST(GemmBytes, TakeTheKernelWithoutScalesForOneNumber) {
  for (const DType dtype : {DType::float8_e4m3fn, DType::int8}) {
    PlannedCall call{.a = {4096, 2048}, .b = {7168, 2048}, .dtype = dtype};
    const auto kernel = [&](const Dims& a_scale, const Dims& b_scale) {
      call.a_scale = a_scale, call.b_scale = b_scale;
      return config_of(explain_bytes("sm_90a", call));
    };
    const auto none = kernel({}, {}), one = kernel({1}, {1});
    EXPECT_EQ(std::memcmp(&none, &one, sizeof(none)), 0) << dtype;
    EXPECT_EQ(none.slots, kernel::gemm::kEngineSlots);
    EXPECT_TRUE(kernel({4096, 1}, {7168}).has_scales && kernel({1}, {7168}).has_scales);
  }
}

// One consumer adds promoted sums while another multiplies.
TEST(GemmBytes, PromoteWithTwoConsumersOfATile) {
  for (const Dims& b : {Dims{7168, 2048}, Dims{24576, 1536}, Dims{32768, 512}}) {
    const auto config = config_of(explain_bytes("sm_90a", {.a = {4096, b[1]}, .b = b}));
    EXPECT_EQ(config.consumers, 2) << b;
    EXPECT_EQ(config.schedule, kernel::gemm::Schedule::together) << b;
  }
}

}  // namespace
}  // namespace tensorcraft
