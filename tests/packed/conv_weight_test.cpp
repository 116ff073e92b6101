// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/packed/conv_weight.hpp"

#include "tensorcraft/ops/all.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using test::expect_error_with;
using test::values;

Tensor random_on(Device device, const Dims& shape, DType dtype) {
  return astype(Tensor::from(values(test::normal_tensor(shape)), shape, device), {.dtype = dtype});
}

TEST(PackConvWeight, GivesTheSameResultInEitherLayout) {
  const Tensor x = random_on(Device::cpu(), {2, 6, 5, 7}, DType::float32);
  const Tensor w = random_on(Device::cpu(), {4, 3, 2, 3}, DType::float32);
  const PackedConvWeight packed = pack_conv_weight(w);
  EXPECT_EQ(packed.filters().shape(), (Dims{4, 2, 3, 3}));
  EXPECT_EQ(packed.view(ImageLayout::nchw).shape(), w.shape());
  EXPECT_EQ(packed.nbytes(), w.nbytes());
  const Tensor wanted = conv2d(x, w, {.padding = 1, .groups = 2});
  EXPECT_EQ(values(conv2d(x, packed, {.padding = 1, .groups = 2})), values(wanted));

  const TensorView x_last = x.permute({0, 2, 3, 1}), w_last = w.permute({0, 2, 3, 1});
  const Conv2dOptions last{.padding = 1, .groups = 2, .layout = ImageLayout::nhwc};
  Tensor out(DType::float32, conv2d(x_last, w_last, last).shape());
  conv2d(out, x_last, pack_conv_weight(w_last, ImageLayout::nhwc), last);
  EXPECT_EQ(values(out), values(copy(wanted.permute({0, 2, 3, 1}))));
}

TEST(PackConvWeight, OpensTheFastKernelsToFiltersOfPlanes) {
  const Tensor memory = random_on(Device::simt(), {1, 6, 6, 16}, DType::bfloat16);
  const TensorView x = memory.permute({0, 3, 1, 2});  // channels side by side
  const Tensor w = random_on(Device::simt(), {8, 16, 3, 3}, DType::bfloat16);
  const Conv2dOptions fast{.variant = "implicit_gemm"};
  expect_error_with(ErrorKind::unsupported, "without gaps", [&] { conv2d(x, w, fast); });
  const auto wanted = values(conv2d(x, w, {.variant = "naive"}));
  const auto packed = values(conv2d(x, pack_conv_weight(w), fast));
  ASSERT_EQ(packed.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(packed[i], wanted[i], 0.1) << i;
}

TEST(PackConvWeight, IsACopy) {
  Tensor w = random_on(Device::cpu(), {1, 1, 1, 1}, DType::float32);
  const PackedConvWeight packed = pack_conv_weight(w);
  const float before = w.data_as<float>()[0];
  w.data_as<float>()[0] = before + 1;
  EXPECT_EQ(values(packed.filters())[0], before);
}

TEST(PackConvWeight, SaysWhatItTakes) {
  expect_error_with(ErrorKind::value, "expected 4 dimensions, filters, channels, rows, columns",
                    [] { pack_conv_weight(Tensor(DType::float32, {3, 3, 3})); });
  expect_error_with(ErrorKind::type, "pack_conv_weight: w",
                    [] { pack_conv_weight(Tensor(DType::int32, {1, 1, 1, 1})); });
}

}  // namespace
}  // namespace tensorcraft
