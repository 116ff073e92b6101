// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/cross_entropy/cross_entropy.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;
using test::values;

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

bool has_simt() { return devices().back() == Device::simt(); }

// The devices on which kernels run here: they cannot ask the host for a target's sake.
std::vector<Device> kernel_devices() {
  std::vector<Device> all;
  if (cuda_device_count() > 0) all.push_back(Device::cuda(0));
  if (has_simt()) all.push_back(Device::simt());
  return all;
}

template <class T>
Tensor tensor(const std::vector<T>& values, DType dtype, const Dims& shape, Device device) {
  Tensor t(dtype, shape, device);
  t.copy_from_host(values.data(), values.size() * sizeof(T));
  return t;
}

TEST(CrossEntropy, RefusesATargetThatIsNoClassBeforeItWrites) {
  std::vector<float> logits(6, 1), out(2, -7);
  std::vector<int64_t> targets = {2, 3};
  const TensorView to(out.data(), DType::float32, {2}), x(logits.data(), DType::float32, {2, 3}),
      ids(targets.data(), DType::int64, {2});
  const TensorView number(out.data(), DType::float32, {});
  for (const char* variant : {"cpu", "reference"}) {
    expect_error(
        ErrorKind::index,
        [&] { cross_entropy(to, x, ids, {.reduction = LossReduction::none, .variant = variant}); },
        "cross_entropy: targets: element 1 is 3, expected [0, 3), the classes of logits, or "
        "ignore_index -100");
    EXPECT_THROW(cross_entropy(number, x, ids, {.variant = variant}), Error);
  }
  EXPECT_EQ(out, std::vector<float>(2, -7));
  targets[1] = -1;
  EXPECT_THROW(cross_entropy(x, ids), Error);
  EXPECT_EQ(values(cross_entropy(x, ids, {.ignore_index = -1}).out)[0], std::log(3.0f));
}

TEST(CrossEntropy, ATargetThatIsNoClassGivesNanWhereKernelsRun) {
  for (const Device device : kernel_devices()) {
    for (const int64_t classes : {3, 40, 5000}) {
      const Tensor x =
          tensor(std::vector<float>(size_t(4 * classes), 1), DType::float32, {4, classes}, device);
      const Tensor ids =
          tensor<int32_t>({-1, int32_t(classes), 1, -100}, DType::int32, {4}, device);
      for (const char* variant : {"naive", "online"}) {
        const auto each = values(
            cross_entropy(x, ids, {.reduction = LossReduction::none, .variant = variant}).out);
        EXPECT_TRUE(std::isnan(each[0]) && std::isnan(each[1])) << variant << ' ' << classes;
        EXPECT_NEAR(each[2], std::log(float(classes)), 1e-5) << variant;
        EXPECT_EQ(each[3], 0.0f) << variant;
        EXPECT_FALSE(std::signbit(each[3])) << variant;
        EXPECT_TRUE(std::isnan(values(cross_entropy(x, ids, {.variant = variant}).out)[0]));
      }
    }
  }
}

// Losses log(2) and log(2) + 1 and an ignored row in turn, more rows than the block of the second
// step has threads.
TEST(CrossEntropy, TheMeanIsOverTheRowsThatCount) {
  constexpr int64_t kRows = 3 * 1501;
  std::vector<float> logits(2 * kRows, 5);
  std::vector<int64_t> targets(kRows);
  for (size_t row = 0; row < kRows; ++row) {
    targets[row] = row % 3 == 2 ? -100 : 0;
    // log(e^5 + e^x) - 5 = log(2) + 1
    if (row % 3 == 1) logits[2 * row + 1] = 5 + std::log(2 * std::exp(1.0f) - 1);
    if (row % 3 == 2) logits[2 * row] = kNotANumber;  // without effect
  }
  std::vector<Device> all = kernel_devices();
  all.push_back(Device::cpu());
  for (const Device device : all) {
    const Tensor x = tensor(logits, DType::float32, {kRows, 2}, device);
    const Tensor ids = tensor(targets, DType::int64, {kRows}, device);
    const double half = std::log(2.0) + 0.5;
    EXPECT_NEAR(values(cross_entropy(x, ids).out)[0], half, 1e-5);
    EXPECT_NEAR(values(cross_entropy(x, ids, {.reduction = LossReduction::sum}).out)[0],
                half * 2 * 1501, 0.01);
    const TensorView none = ids.view().slice(0, 2, 3);
    const TensorView row = x.view().slice(0, 2, 3);
    EXPECT_TRUE(std::isnan(values(cross_entropy(row, none).out)[0]));
    EXPECT_EQ(values(cross_entropy(row, none, {.reduction = LossReduction::sum}).out)[0], 0.0f);
  }
}

TEST(CrossEntropy, SpecialRowsAreThoseOfTorch) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<Device> all = kernel_devices();
  all.push_back(Device::cpu());
  for (const Device device : all) {
    const Tensor x = tensor<float>({-kInf, -kInf, kInf, 0, 0, -kInf, kNotANumber, 0},
                                   DType::float32, {4, 2}, device);
    const Tensor ids = tensor<int64_t>({0, 1, 1, 1}, DType::int64, {4}, device);
    const auto result =
        cross_entropy(x, ids, {.reduction = LossReduction::none, .return_lse = true});
    const auto losses = values(result.out), sums = values(*result.lse);
    EXPECT_TRUE(std::isnan(losses[0]) && std::isnan(losses[1]) && std::isnan(losses[3]));
    EXPECT_EQ(losses[2], kInf);
    EXPECT_EQ(sums[0], -kInf);
    EXPECT_EQ(sums[1], kInf);
    EXPECT_EQ(sums[2], 0.0f);
    EXPECT_TRUE(std::isnan(sums[3]));
  }
}

TEST(CrossEntropy, BadArgumentsAreNamedWithTheirValues) {
  const Tensor x(DType::float32, {2, 3}), ids(DType::int64, {2}), three(DType::int64, {3}),
      floats(DType::float32, {2});
  expect_error(
      ErrorKind::type, [&] { cross_entropy(x, floats); },
      "cross_entropy: targets: Dtype value [float32] not in the allowed options: [int32, int64]"
      "; tc.astype(targets, tc.int32) converts it");
  EXPECT_THROW(cross_entropy(ids, ids), Error);
  EXPECT_THROW(cross_entropy(x, three), Error);
  EXPECT_THROW(cross_entropy(x.view().select(0, 0), ids), Error);
  expect_error(
      ErrorKind::unsupported,
      [&] { cross_entropy(x.view().slice(1, 0, 1).broadcast_to({2, int64_t(1) << 31}), ids); },
      "cross_entropy: logits: there must be fewer than 2^30 classes, got shape [2, 2147483648]");
  const TensorView inside = x.view().select(1, 0), number = inside.select(0, 0);
  expect_error(
      ErrorKind::value, [&] { cross_entropy(number, x, ids); },
      "cross_entropy: out overlaps the memory of logits; give it memory of its own");
  expect_error(
      ErrorKind::value,
      [&] {
        const Tensor lse(DType::float32, {2});
        cross_entropy(lse.view().select(0, 1), x, ids, {.lse = lse});
      },
      "cross_entropy: lse overlaps the memory of out; give it memory of its own");
}

// The Config for a problem on a GPU, without one.
std::string chosen(const Dims& shape, const Dims& strides, DType dtype) {
  alignas(64) static char memory[64];
  const Device gpu = Device::cuda(0);
  const TensorView x(memory, dtype, shape, strides, gpu),
      ids(memory, DType::int64, {shape[0]}, gpu), out(memory, DType::float32, {}, gpu);
  const TensorView inputs[] = {x, ids}, outputs[] = {out};
  const op::Value none[3] = {};
  const auto e =
      find_operator("cross_entropy")
          .explain(outputs, {.inputs = inputs, .options = none}, device_info_of_arch("sm_90a"));
  std::string text(e.variant);
  for (const auto& c : e.variants)
    if (c.variant.name == e.variant)
      text += " " + std::to_string(c.plan->first().launch.grid.x) + "x" +
              std::to_string(c.plan->first().launch.block.x);
  return text;
}

TEST(CrossEntropy, AMeanIsAPlanOfTwoStepsWithOneWorkspace) {
  const auto plan = [](LossReduction reduction) {
    alignas(64) static char memory[64];
    const TensorView x(memory, DType::float32, {600, 2}), ids(memory, DType::int64, {600}),
        number(memory, DType::float32, {}), losses(memory, DType::float32, {600});
    const bool is_mean = reduction == LossReduction::mean;
    const TensorView inputs[] = {x, ids}, outputs[] = {is_mean ? number : losses};
    const op::Value options[] = {int64_t(-100), is_mean ? "mean" : "none", false};
    const auto e = find_operator("cross_entropy")
                       .explain(outputs, {.inputs = inputs, .options = options},
                                device_info_of_arch("sm_90a"));
    EXPECT_EQ(e.variant, "online");
    return *e.variants[0].plan;
  };
  const op::Plan mean = plan(LossReduction::mean);
  ASSERT_EQ(mean.steps().size(), 2u);
  EXPECT_EQ(mean.steps()[1].kernel.rung->name, "reduce");
  EXPECT_EQ(mean.steps()[1].launch.block.x, 128u);
  EXPECT_EQ(mean.workspace_bytes, 600 * sizeof(float));
  for (const op::Step& step : mean.steps()) EXPECT_GE(step.workspace_at, 0);
  EXPECT_EQ(plan(LossReduction::none).steps().size(), 1u);
}

TEST(CrossEntropy, TheGpuChoiceFollowsTheLengthOfARow) {
  EXPECT_EQ(chosen({100, 1000}, {1000, 1}, DType::bfloat16), "online 25x128");  // a warp a row
  EXPECT_EQ(chosen({100, 4096}, {4096, 1}, DType::bfloat16), "online 100x128");
  EXPECT_EQ(chosen({100, 50257}, {50257, 1}, DType::bfloat16), "online 100x512");
  EXPECT_EQ(chosen({100, 1000}, {1, 100}, DType::bfloat16), "naive 1x128");
}

}  // namespace
}  // namespace tensorcraft
