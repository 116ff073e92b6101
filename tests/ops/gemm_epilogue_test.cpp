// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/gemm.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <string_view>

// What happens to a finished sum, on the CPU and on every rung that the SIMT device has.
namespace tensorcraft {
namespace {

using test::doubles;
using test::expect_close;
using test::expect_error;
using test::normal_tensor;

// Where the SIMT device has the rung: a gate, scales and a bias by row in each that promises them.
TEST(GemmEpilogue, FinishesAlikeOnEveryRungOfTensorCores) {
  if (devices().back() != Device::simt()) GTEST_SKIP() << "no SIMT device";
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

}  // namespace
}  // namespace tensorcraft
