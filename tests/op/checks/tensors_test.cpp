// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/checks/tensors.hpp"

#include "tests/op/l2_normalize_call.hpp"
#include "tests/support/expect_error.hpp"

#include <array>

#include <gtest/gtest.h>

namespace tensorcraft::op {
namespace {

using test::expect_error;

class CheckedTensors : public test::L2NormalizeCall {};

TEST_F(CheckedTensors, AnOutputIsWritableAndTheInputItselfOrApart) {
  expect_error(
      ErrorKind::buffer, [&] { run(out_.view().as_read_only(), x_); },
      "l2_normalize: out: the tensor is read-only; give writable memory");
  Tensor memory(DType::float32, {4});
  const TensorView x(memory.data(), DType::float32, {1, 3});
  const TensorView shifted(memory.data_as<float>() + 1, DType::float32, {1, 3});
  expect_error(
      ErrorKind::value, [&] { run(shifted, x); },
      "l2_normalize: out overlaps the memory of x; they must be the same tensor or apart");
  run(x_, x_);
}

TEST_F(CheckedTensors, AnOutputWhoseElementsShareMemoryIsRefused) {
  const Tensor x(DType::float32, {2, 2});
  const TensorView out(out_.data(), DType::float32, {2, 2}, {0, 1}, Device::cpu());
  expect_error(
      ErrorKind::value, [&] { run(out, x); },
      "l2_normalize: out: elements of Tensor<2, 2>[strides=<0, 1>, dtype=float32, device=cpu] "
      "share memory; give a tensor with memory for each element");
}

TEST_F(CheckedTensors, AnUnalignedTensorIsRefused) {
  const Tensor memory(DType::uint8, {16});
  const TensorView x(memory.data_as<char>() + 2, DType::float32, {1, 2});
  try {
    run(out_, x);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::value);
    const std::string_view text = error.what();
    EXPECT_TRUE(text.starts_with("l2_normalize: x: address 0x")) << text;
    EXPECT_TRUE(text.ends_with("is not a multiple of the size of float32; copy the tensor first"))
        << text;
  }
  try {  // of an output a copy would take the result
    run(x, x_);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    const std::string_view text = error.what();
    EXPECT_TRUE(
        text.ends_with("is not a multiple of the size of float32; give memory that begins "
                       "at one"))
        << text;
  }
  EXPECT_THROW(explain(out_, x, device_info(Device::cpu())), Error);
}

TEST_F(CheckedTensors, AViewWithoutMemoryIsRefusedUnlessItIsEmpty) {
  expect_error(
      ErrorKind::value, [&] { run(out_, {nullptr, DType::float32, {1, 2}}); },
      "l2_normalize: x: Tensor<1, 2>[strides=<2, 1>, dtype=float32, device=cpu] has no memory: its "
      "address is null; give memory for its elements");
  EXPECT_THROW(run({nullptr, DType::float32, {1, 2}}, x_), Error);
  const TensorView empty(nullptr, DType::float32, {0, 2});
  run(empty, empty);
}

TEST_F(CheckedTensors, AResultTooLargeToCountNamesTheOperator) {
  constexpr int64_t n = int64_t(1) << 40;
  const TensorView a(x_.data(), DType::float32, {n, 1}, {0, 1}, Device::cpu());
  const std::string text =
      "add: out: shape [1099511627776, 1099511627776] has more elements than 64 bits count";
  expect_error(ErrorKind::value, [&] { add(a, a.transpose(0, 1)); }, text);
  const std::array<TensorView, 2> inputs{a, a.transpose(0, 1)};
  expect_error(ErrorKind::value, [&] { find_operator("add").infer({inputs, {}}); }, text);
}

TEST_F(CheckedTensors, TensorsOfTwoDevicesAreRefused) {
  const TensorView elsewhere(out_.data(), DType::float32, {1, 2}, Device::cuda(0));
  expect_error(
      ErrorKind::value, [&] { run(elsewhere, x_); },
      "l2_normalize: out: Device mismatch: expected cpu but got cuda:0; give a tensor of float32 "
      "on "
      "cpu");
  expect_error(
      ErrorKind::value,
      [&] { add(elsewhere, x_, TensorView(out_.data(), DType::float32, {1, 2}, Device::cuda(0))); },
      "add: b: Device mismatch: expected cpu but got cuda:0; move it with .to(\"cpu\")");
}

}  // namespace
}  // namespace tensorcraft::op
