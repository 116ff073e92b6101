// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/gemm.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/ops/elementwise/expression.hpp"
#include "tensorcraft/ops/gemm/params.h"
#include "tests/support/expect_error.hpp"
#include "tests/support/gemm_plans.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

// Checks what happens to a finished sum, on the CPU and on every rung that the emulator has.
namespace tensorcraft {
namespace {

using test::doubles;
using test::expect_close;
using test::expect_error;
using test::normal_tensor;
using test::places;

constexpr DType f32 = DType::float32;

Tensor full(const Dims& shape, double value) {
  Tensor t(f32, shape);
  if (t.size() > 0) fill(t, t, {.value = value});
  return t;
}

// Names variants that take an aligned bfloat16 product with anything behind it.
std::vector<const char*> variants_of(Device device) {
  if (device == Device::cpu()) return {"cpu", "reference"};
  return {"tma", "swizzled", "tensor_core", "naive"};
}

// Where the emulator has the rung: a gate, scales and a bias by row in each that promises them.
TEST(GemmEpilogue, FinishesAlikeOnEveryRungOfTensorCores) {
  if (devices().back() != Device::simt()) GTEST_SKIP() << "no emulator";
  const DType dtype = DType::bfloat16;
  const Tensor a = normal_tensor({130, 136}, dtype), b = normal_tensor({136, 160}, dtype, 2);
  const Tensor column = normal_tensor({160}, dtype, 3), row = normal_tensor({130, 1}, dtype, 4);
  const Tensor a_scale = normal_tensor({130, 1}, DType::float32, 5);
  const Tensor b_scale = normal_tensor({160}, DType::float32, 6);
  // Call number i on a device.
  const auto call = [&](int i, Device device, std::string_view variant) {
    const Tensor by_column = column.to(device), by_row = row.to(device);
    const Tensor x_scale = a_scale.to(device), y_scale = b_scale.to(device);
    GemmOptions options{.variant = variant};
    if (i < 2) options.gated = i == 0 ? Gate::silu : Gate::gelu_tanh;
    if (i > 0) {
      options.bias = i == 1 ? by_column : by_row;
      options.a_scale = x_scale;
      options.b_scale = y_scale;
    }
    return gemm(a.to(device), b.to(device), options);
  };
  for (int i = 0; i < 3; ++i) {
    const Tensor expected = call(i, Device::cpu(), "reference");
    for (const char* variant : {"tma", "swizzled", "tensor_core", "naive"})
      expect_close(call(i, Device::simt(), variant), expected, 0x1p-6, 0x1p-4);
  }
}

TEST(GemmEpilogue, SaysWhatAGateTakes) {
  const Tensor a = normal_tensor({5, 64}), b = normal_tensor({64, 7}), c = normal_tensor({5, 4});
  const Tensor even = normal_tensor({64, 8});
  expect_error(
      ErrorKind::value, [&] { gemm(a, b, {.gated = Gate::silu}); },
      "gemm: b: gated needs an even number of columns, first the gates and then as many "
      "others, got 7");
  expect_error(
      ErrorKind::value,
      [&] { gemm(a, even, {.activation = Activation::relu, .gated = Gate::silu}); },
      "gemm: gated has an activation of its own; leave activation out");
  expect_error(
      ErrorKind::value, [&] { gemm(a, even, {.c = c, .gated = Gate::silu}); },
      "gemm: gated takes no c; leave it out, or add it afterwards");
  expect_error(
      ErrorKind::value, [&] { gemm(a, even, {.bias = normal_tensor({4}), .gated = Gate::silu}); },
      "gemm: bias: Size mismatch for shape#0('2 n'): expected 8 but got 4 (2 n is b.shape[1])"
      "; b is [64, 8], bias is [4]");
}

TEST(GemmEpilogue, SaysWhatAScaleIs) {
  const Tensor a = normal_tensor({5, 64}), b = normal_tensor({64, 8});
  const auto scaled = [&](const Tensor& a_scale) { gemm(a, b, {.a_scale = a_scale}); };
  expect_error(
      ErrorKind::value, [&] { scaled(normal_tensor({4, 1})); },
      "gemm: a_scale: Size mismatch for shape#0('m'): expected 5 but got 4 (m is a.shape[0])"
      "; a is [5, 64], a_scale is [4, 1]");
  expect_error(
      ErrorKind::type, [&] { scaled(normal_tensor({5, 1}, DType::float16)); },
      "gemm: a_scale: Dtype value [float16] not in the allowed options: [float32]; "
      "tc.astype(a_scale, tc.float32) converts it");
}

// Compares everything in one kernel with one operator after the other.
TEST(GemmEpilogue, AnExpressionEqualsTheSequenceOfOperators) {
  const DType dtype = DType::bfloat16;
  const Tensor a = normal_tensor({3, 70, 72}, dtype), b = normal_tensor({72, 64}, dtype, 2);
  const Tensor s = normal_tensor({64}, DType::float32, 3), r = normal_tensor({3, 70, 64}, dtype, 4);
  const Tensor row = normal_tensor({70, 1}, dtype, 5), bias = normal_tensor({64}, dtype, 6);
  const Tensor mask = greater(normal_tensor({70, 64}), full({1}, 0));
  const GemmOptions wide{.bias = bias, .activation = Activation::gelu, .out_dtype = DType::float32};
  const Tensor x = gemm(a, b, wide);
  const Tensor expected =
      astype(elementwise("where(m, x * s + r, tanh(x) - 2 * row)",
                         {{"x", x}, {"s", s}, {"r", r}, {"row", row}, {"m", mask}}),
             {.dtype = dtype});
  for (const Device device : places())
    for (const char* variant : variants_of(device)) {
      const Tensor s_there = s.to(device), r_there = r.to(device), row_there = row.to(device),
                   m_there = mask.to(device), bias_there = bias.to(device);
      const Tensor got =
          gemm(a.to(device), b.to(device), "where(m, x * s + r, tanh(x) - 2 * row)",
               {{"s", s_there}, {"r", r_there}, {"row", row_there}, {"m", m_there}},
               {.bias = bias_there, .activation = Activation::gelu, .variant = variant});
      EXPECT_EQ(got.dtype(), dtype);
      expect_close(got, expected, 0x1p-6, 0x1p-5);
    }
}

TEST(GemmEpilogue, AnExpressionFollowsAGate) {
  const DType dtype = DType::bfloat16;
  const Tensor a = normal_tensor({70, 72}, dtype), b = normal_tensor({72, 128}, dtype, 2);
  const Tensor r = normal_tensor({70, 64}, dtype, 3), scale = normal_tensor({1}, f32, 4);
  const Tensor x = gemm(a, b, {.a_scale = scale, .gated = Gate::silu, .out_dtype = f32});
  const Tensor expected = astype(elementwise("x / 4 + r", {{"x", x}, {"r", r}}), {.dtype = dtype});
  for (const Device device : places())
    for (const char* variant : variants_of(device)) {
      const Tensor there = r.to(device), scale_there = scale.to(device);
      const Tensor got = gemm(a.to(device), b.to(device), "x / 4 + r", {{"r", there}},
                              {.a_scale = scale_there, .gated = Gate::silu, .variant = variant});
      expect_close(got, expected, 0x1p-6, 0x1p-5);
    }
}

// Numbers alone, arrays of every stride, and C that must not be read.
TEST(GemmEpilogue, AnExpressionTakesAnyStridesAndSizes) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Device device : places())
    for (const int64_t m : {0, 1, 33}) {
      const Tensor a = normal_tensor({m, 5}).to(device), b = normal_tensor({5, 7}).to(device);
      const Tensor store = normal_tensor({2, 7, 33}, f32, 3).to(device);
      const TensorView r = store.view().slice(0, 1, 2).reshape({7, 33}).transpose(0, 1);
      const TensorView part = r.slice(0, 0, m);
      const Tensor c = full({m, 7}, nan).to(device);
      const Tensor got = gemm(a, b, "k * x - r", {{"k", 3}, {"r", part}}, {.c = c, .beta = 0});
      expect_close(got, elementwise("3 * x - r", {{"x", gemm(a, b)}, {"r", part}}), 0, 1e-6);
      EXPECT_EQ(gemm(a, b, "x > 0", {}).dtype(), f32);
    }
}

TEST(GemmEpilogue, PointsAtTheColumnOfWhatIsWrong) {
  const Tensor a = normal_tensor({5, 64}), b = normal_tensor({64, 8}), s = normal_tensor({3});
  expect_error(
      ErrorKind::value, [&] { gemm(a, b, "silu(x) * q", {}); },
      "gemm: epilogue: unknown name 'q' in the expression; there are x (column 11)\n  silu(x) * q\n"
      "            ^");
  expect_error(
      ErrorKind::value, [&] { gemm(a, b, "s + 1", {{"s", s}}); },
      "gemm: epilogue: argument x is not in the expression; it is the finished sum");
  expect_error(
      ErrorKind::value, [&] { gemm(a, b, "x + s", {{"s", s}}); },
      "gemm: s: shapes [3] and [5, 8] do not broadcast: dimension 1 is 8 and 3");
  GemmOptions without;
  const op::NamedValue meant[] = {{"bais"}}, unknown[] = {{"residual"}};
  without.operands = meant;
  expect_error(
      ErrorKind::type, [&] { gemm(a, b, without); },
      "gemm: got an unexpected argument 'bais'; did you mean bias?");
  without.operands = unknown;
  expect_error(
      ErrorKind::type, [&] { gemm(a, b, without); },
      "gemm: got an unexpected argument 'residual'; names that are no parameter belong to an "
      "epilogue, such as epilogue=\"x * residual\"");
}

// A GPU is given a header of the expression's own that includes the rung's, one for all calls that
// differ in numbers alone.
TEST(GemmEpilogue, IsCompiledIntoTheKernelOfAGpu) {
  const auto kernel_of = [](std::string_view text, int64_t columns) {
    const auto view = [&](const Dims& shape, int place) {
      return TensorView(reinterpret_cast<void*>(uintptr_t(place) << 44), DType::bfloat16, shape);
    };
    const std::vector<TensorView> inputs{view({256, 64}, 1), view({64, columns}, 2),
                                         view({columns}, 3)};
    const std::vector<TensorView> outputs{view({256, columns}, 4)};
    const op::Operator& op = find_operator("gemm");
    const auto& options = op.description().options;
    const op::NamedValue named[] = {{"s"}};
    std::vector<op::Value> values(options.size());
    for (size_t i = 0; i < options.size(); ++i) {
      if (options[i].name == "epilogue") values[i] = text;
      if (options[i].name == "operands") values[i] = op::NamedValues(named);
    }
    const auto e = op.explain(outputs, {inputs, values}, device_info_of_arch("sm_90a"));
    for (const auto& row : e.variants)
      if (row.variant.name == "tensor_core" && row.plan) return row.plan->first().kernel;
    return jit::KernelKey{};
  };
  const jit::KernelKey two = kernel_of("x * s + 2", 256);
  EXPECT_TRUE(two == kernel_of("x * s + 3.5", 256));
  EXPECT_FALSE(two == kernel_of("x * s - 2", 256));
  EXPECT_FALSE(two == kernel_of("x * s + 2", 250));  // s is read element by element
  EXPECT_NE(jit::entry_text(two, "sm_90a").find(two.rung->header), std::string::npos);
  EXPECT_EQ(two.rung->function, "tensorcraft::kernel::gemm::TensorCore::run");
}

// Columns of both halves of B make one of D: a tile of 256 has 128 of D's 136.
TEST(GemmEpilogue, AGatedPlanCoversAllColumns) {
  const auto e = test::explain_on("sm_90a", DType::bfloat16, {72, 136}, {136, 272}, {72, 136},
                                  false, false, "silu");
  for (const char* variant : {"wgmma", "warp_specialized"}) {
    const op::Step& step = test::row_of(e, variant).plan->main();
    kernel::gemm::Config c;
    std::memcpy(&c, step.kernel.config.data(), sizeof(c));
    EXPECT_EQ(c.gated, 1);
    EXPECT_EQ(step.launch.grid.count(), uint64_t(div_ceil(136, c.block_n / 2))) << variant;
  }
}

// The bytes between fields become 0 on the way, and no others do.
template <class Params>
void expect_whole_arrays() {
  Params p;
  std::memset(static_cast<void*>(&p), 0xff, sizeof(p));
  op::clear_padding(p);
  const auto expect_ones = [](const auto& field) {
    std::byte ones[sizeof(field)];
    std::memset(ones, 0xff, sizeof(field));
    EXPECT_EQ(std::memcmp(&field, ones, sizeof(field)), 0);
  };
  expect_ones(p.arrays);
  expect_ones(p.numbers);
  expect_ones(p.d_map);
}
TEST(GemmEpilogue, TheArraysOfAnExpressionReachTheKernelWhole) {
  using namespace kernel::gemm;
  expect_whole_arrays<WithResultMap<ExpressionParams>>();
  expect_whole_arrays<WithResultMap<InterpretedParams>>();
}

}  // namespace
}  // namespace tensorcraft
