// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/masked_mean/masked_mean.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;

TEST(MaskedMean, DoesNotReadBeyondALengthAndGivesZeroForNone) {
  std::vector<float> x = {1, 2, 3, 4, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN}, out(4, -1);
  std::vector<int32_t> lengths = {2, 0};
  masked_mean({out.data(), DType::float32, {2, 2}}, {x.data(), DType::float32, {2, 3, 2}},
              {lengths.data(), DType::int32, {2}});
  EXPECT_EQ(out, (std::vector<float>{2, 3, 0, 0}));
}

TEST(MaskedMean, RefusesALengthOutsideTheSequence) {
  Tensor x(DType::float32, {2, 3, 2}), lengths(DType::int64, {2});
  lengths.data_as<int64_t>()[0] = 3;
  lengths.data_as<int64_t>()[1] = 4;
  expect_error(
      ErrorKind::value, [&] { masked_mean(x, lengths); },
      "masked_mean: lengths: element 1 is 4, expected [0, 3], the steps of x");
  lengths.data_as<int64_t>()[1] = -1;
  expect_error(
      ErrorKind::value, [&] { masked_mean(x, lengths, {.variant = "reference"}); },
      "masked_mean: lengths: element 1 is -1, expected [0, 3], the steps of x");
}

TEST(MaskedMean, TheEmulatorRefusesALengthOutsideTheSequence) {
  if (test::places().size() < 2) GTEST_SKIP() << "no emulator in this build";
  const Device d = Device::simt();
  const Tensor x(DType::float32, {2, 3, 2}, d);
  for (const char* variant : {"naive", "block"})
    for (const int64_t wrong : {4, -1}) {
      const Tensor lengths = Tensor::from(std::vector<int64_t>{3, wrong}, {2}).to(d);
      expect_error(
          ErrorKind::value, [&] { masked_mean(x, lengths, {.variant = variant}); },
          join("masked_mean: lengths: element 1 is ", wrong, ", expected [0, 3], the steps of x"));
    }
}

TEST(MaskedMean, NamesTheBatchThatDiffers) {
  Tensor x(DType::float32, {2, 3, 2}), lengths(DType::int64, {3});
  expect_error(
      ErrorKind::value, [&] { masked_mean(x, lengths); },
      "masked_mean: lengths: Size mismatch for shape#0('batch'): expected 2 but got 3 (batch is "
      "x.shape[0])"
      "; x is [2, 3, 2], lengths is [3]");
}

TEST(MaskedMeanOnGpu, TakesALengthOutsideTheSequenceToTheNearerEnd) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Device gpu = Device::cuda(0);
  const std::vector<float> values = {1, 3, 5, 7};
  const std::vector<int64_t> counts = {-4, 9};
  Tensor x(DType::float32, {2, 2, 1}, gpu), lengths(DType::int64, {2}, gpu);
  x.copy_from_host(values.data(), x.nbytes());
  lengths.copy_from_host(counts.data(), lengths.nbytes());
  for (const char* variant : {"naive", "block"}) {
    std::vector<float> out(2);
    masked_mean(x, lengths, {.variant = variant}).copy_to_host(out.data(), 2 * sizeof(float));
    EXPECT_EQ(out, (std::vector<float>{0, 6})) << variant;
  }
}

}  // namespace
}  // namespace tensorcraft
