// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/operator.hpp"

#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tests/support/expect_error.hpp"

#include <array>

#include <gtest/gtest.h>

namespace tensorcraft::op {
namespace {

using test::expect_error;

class OperatorTest : public ::testing::Test {
 protected:
  // Runs l2_normalize, the worked example of the documentation.
  void run(const TensorView& out, const TensorView& x, std::string_view variant = {}) const {
    const std::array<Value, 2> options;
    operator_.run(std::span(&out, 1), {std::span(&x, 1), options, variant});
  }
  Explanation explain(const TensorView& out, const TensorView& x, const DeviceInfo& device) const {
    const std::array<Value, 2> options;
    return operator_.explain(std::span(&out, 1), {std::span(&x, 1), options}, device);
  }

  const Operator& operator_ = find_operator("l2_normalize");
  Tensor x_{DType::float32, {1, 2}}, out_{DType::float32, {1, 2}};
};

TEST_F(OperatorTest, RunsTheVariantThatIsNamed) {
  const float given[] = {3, 4};
  x_.copy_from_host(given, sizeof given);
  for (const char* variant : {"", "cpu", "reference"}) {
    run(out_, x_, variant);
    EXPECT_FLOAT_EQ(out_.data_as<float>()[0], 0.6f) << variant;
    EXPECT_FLOAT_EQ(out_.data_as<float>()[1], 0.8f) << variant;
  }
}

TEST_F(OperatorTest, AnUnknownVariantListsThemAll) {
  expect_error(
      ErrorKind::value, [&] { run(out_, x_, "blok"); },
      "l2_normalize: no variant is named \"blok\"; there are in_registers, cluster, block, naive, "
      "cpu, reference; did you mean block?");
}

TEST_F(OperatorTest, AnArgumentTakesItsOwnDtypesOrThoseOfTheOperator) {
  using enum DType;
  const auto dtypes = [](std::string_view op, std::string_view argument) {
    const auto found = argument_dtypes(find_operator(op).description(), argument);
    return std::vector(found.begin(), found.end());
  };
  EXPECT_EQ(dtypes("take", "indices"), (std::vector{int32, int64}));
  EXPECT_EQ(dtypes("embedding", "ids"), (std::vector{int32, int64}));
  EXPECT_EQ(dtypes("attention", "key_lengths"), (std::vector{int32, int64}));
  EXPECT_EQ(dtypes("dequantize", "scales"), std::vector{float32});
  EXPECT_EQ(dtypes("gemm", "a_zero"), std::vector{int32});
  EXPECT_EQ(dtypes("softmax", "x"), (std::vector{float32, float16, bfloat16}));
  EXPECT_EQ(dtypes("embedding", "table"),
            (std::vector{float32, float16, bfloat16, float8_e4m3fn, float8_e5m2}));
  EXPECT_TRUE(dtypes("rms_norm", "residual").empty());
  EXPECT_TRUE(dtypes("softmax", "y").empty());
}

TEST_F(OperatorTest, TheTextOfAParameterNamesItsDtypes) {
  EXPECT_EQ(to_string(takes(kIndexTypes, "%, any shape")), "int32 or int64, any shape");
  EXPECT_EQ(to_string(takes(kFloatTypes, "(m, k): %")), "(m, k): float32, float16 or bfloat16");
  EXPECT_EQ(to_string(ParameterDoc("of %")), "of ");
  for (const Operator* op : operators())
    for (const auto* parameters : {&op->description().inputs, &op->description().options})
      for (const Parameter& p : *parameters)
        for (const DType dtype : p.doc.dtypes)
          EXPECT_NE(to_string(p.doc).find(to_string(dtype)), std::string::npos)
              << op->description().name << ": " << p.name;
}

TEST_F(OperatorTest, AVariantOfAnotherDeviceSaysSo) {
  expect_error(
      ErrorKind::unsupported, [&] { run(out_, x_, "block"); },
      "l2_normalize: variant block does not accept this problem\n"
      "  block: runs on cuda, and these tensors are on cpu; device \"simt\" runs it without a GPU");
}

TEST_F(OperatorTest, AnOutputIsWritableAndTheInputItselfOrApart) {
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

TEST_F(OperatorTest, AnOutputWhoseElementsShareMemoryIsRefused) {
  const Tensor x(DType::float32, {2, 2});
  const TensorView out(out_.data(), DType::float32, {2, 2}, {0, 1}, Device::cpu());
  expect_error(
      ErrorKind::value, [&] { run(out, x); },
      "l2_normalize: out: elements of Tensor<2, 2>[strides=<0, 1>, dtype=float32, device=cpu] "
      "share memory; give a tensor with memory for each element");
}

TEST_F(OperatorTest, AnUnalignedTensorIsRefused) {
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

TEST_F(OperatorTest, AViewWithoutMemoryIsRefusedUnlessItIsEmpty) {
  expect_error(
      ErrorKind::value, [&] { run(out_, {nullptr, DType::float32, {1, 2}}); },
      "l2_normalize: x: Tensor<1, 2>[strides=<2, 1>, dtype=float32, device=cpu] has no memory: its "
      "address is null; give memory for its elements");
  EXPECT_THROW(run({nullptr, DType::float32, {1, 2}}, x_), Error);
  const TensorView empty(nullptr, DType::float32, {0, 2});
  run(empty, empty);
}

TEST_F(OperatorTest, TheNumberOfOutputsIsChecked) {
  const std::array<Value, 2> options;
  const TensorView x = x_;
  const std::array<TensorView, 2> two{out_.view(), out_.view()};
  expect_error(
      ErrorKind::type, [&] { operator_.run({}, {std::span(&x, 1), options}); },
      "l2_normalize: takes 1 to 1 outputs, got 0");
  expect_error(
      ErrorKind::type, [&] { operator_.run(two, {std::span(&x, 1), options}); },
      "l2_normalize: takes 1 to 1 outputs, got 2");
}

TEST_F(OperatorTest, AResultTooLargeToCountNamesTheOperator) {
  constexpr int64_t n = int64_t(1) << 40;
  const TensorView a(x_.data(), DType::float32, {n, 1}, {0, 1}, Device::cpu());
  const std::string text =
      "add: out: shape [1099511627776, 1099511627776] has more elements than 64 bits count";
  expect_error(ErrorKind::value, [&] { add(a, a.transpose(0, 1)); }, text);
  const std::array<TensorView, 2> inputs{a, a.transpose(0, 1)};
  expect_error(ErrorKind::value, [&] { find_operator("add").infer({inputs, {}}); }, text);
}

TEST_F(OperatorTest, ExplainRefusesWhatTheCallRefuses) {
  const std::array<Value, 2> options;
  const TensorView x = x_;
  const TensorView elsewhere(out_.data(), DType::float32, {1, 2}, Device::cuda(0));
  EXPECT_THROW(explain(elsewhere, x, device_info(Device::cpu())), Error);
  EXPECT_THROW(operator_.explain(std::span(&x, 1), {std::span(&x, 1), options, "blok"},
                                 device_info(Device::cpu())),
               Error);
}

TEST_F(OperatorTest, TensorsOfTwoDevicesAreRefused) {
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

TEST_F(OperatorTest, ExplainsADeviceThatIsNotThere) {
  const TensorView out(out_.data(), DType::float32, {1, 2}, Device::cuda(0));
  const TensorView x(x_.data(), DType::float32, {1, 2}, Device::cuda(0));
  DeviceInfo gpu{.device = Device::cuda(0), .name = "a GPU", .compute_capability = 90};
  gpu.memory_gb_per_s = 1000;
  const Explanation e = explain(out, x, gpu);
  EXPECT_EQ(e.variant, "in_registers");
  ASSERT_EQ(e.variants.size(), 4u);
  ASSERT_TRUE(e.variants[0].plan);
  EXPECT_EQ(e.variants[0].plan->first().launch.block.x, 128u);
  EXPECT_DOUBLE_EQ(e.floor_us, 16.0 / 1000 / 1e3);
  EXPECT_NE(to_string(e).find("* in_registers"), std::string::npos);
}

TEST(Floor, IsTheSlowerOfMemoryAndTheArithmeticThatTheCallAllows) {
  DeviceInfo gpu{.device = Device::cuda(0), .name = "a GPU", .compute_capability = 90};
  gpu.memory_gb_per_s = 1000;
  gpu.peak_bf16_tflops = 800;
  gpu.peak_fp32_tflops = 50;
  const Cost work{.bytes = 1e6, .flops = 4e9}, idle{.bytes = 1e6, .flops = 1e3};
  const Cost rounded{.bytes = 1e6, .flops = 4e9, .may_round_to_tf32 = true};
  EXPECT_DOUBLE_EQ(floor_us(idle, gpu, DType::float32), 1);
  EXPECT_DOUBLE_EQ(floor_us(work, gpu, DType::float32), 80);
  EXPECT_DOUBLE_EQ(floor_us(work, gpu, DType::bfloat16), 5);
  EXPECT_DOUBLE_EQ(floor_us(rounded, gpu, DType::float32), 10);
  EXPECT_EQ(floor_us(work, device_info(Device::cpu()), DType::float32), 0);
}

}  // namespace
}  // namespace tensorcraft::op
