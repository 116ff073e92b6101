// SPDX-License-Identifier: Apache-2.0
#include "bench/operands.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/ops/all.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tensorcraft::bench {
namespace {

struct Made {
  Case c;
  diagnose::Request request;
  Operands operands;
  explicit Made(const std::string& line, int copies, std::map<std::string, int64_t> below = {})
      : c{diagnose::parse_request(line), std::move(below)},
        request(find_operator(c.request.op), c.request, device_info(Device::cpu())),
        operands(c, request, StreamRef(), copies) {}
};

TEST(Random, IsStandardNormalAlsoBeyondItsPattern) {
  const Tensor tensor(DType::float32, {3, 1 << 20});
  fill_random(tensor, 1, 5, StreamRef());
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double x = tensor.data_as<float>()[i];
    sum += x;
    squares += x * x;
  }
  const double mean = sum / double(tensor.size());
  EXPECT_NEAR(mean, 0, 0.01);
  EXPECT_NEAR(squares / double(tensor.size()) - mean * mean, 1, 0.01);
}

TEST(Random, IntegersAreBelowTheirBound) {
  const Tensor tensor(DType::int64, {5000});
  fill_random(tensor, 7, 0, StreamRef());
  int64_t largest = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const int64_t x = tensor.data_as<int64_t>()[i];
    ASSERT_GE(x, 0);
    largest = std::max(largest, x);
  }
  EXPECT_EQ(largest, 6);
}

TEST(Operands, AreOtherMemoryAndOtherNumbersInEachCopy) {
  const Made made("rms_norm 4x8 --option weight=8", 3);
  EXPECT_EQ(made.operands.copies(), 3);
  EXPECT_EQ(Operands::bytes_of(made.request), (4 * 8 * 2 + 8) * sizeof(float));
  const TensorView a = made.operands.inputs(0)[0], b = made.operands.inputs(1)[0];
  EXPECT_NE(a.data(), b.data());
  EXPECT_NE(a.data_as<float>()[0], b.data_as<float>()[0]);
  made.operands.run(1, "reference");
  const host::Elements out(made.operands.outputs(1)[0]);
  EXPECT_TRUE(std::isfinite(out[31]));
}

TEST(Operands, RowsMayBeApart) {
  const Made made("gemm 4x8/10 8x3", 2);
  const TensorView a = made.operands.inputs(0)[0];
  EXPECT_EQ(a.strides(), (Dims{10, 1}));
  EXPECT_NE(a.data_as<float>()[3 * 10 + 7], 0);
  made.operands.run(1, "reference");
  EXPECT_TRUE(std::isfinite(host::Elements(made.operands.outputs(1)[0])[11]));
}

TEST(Operands, IntegersAreIndicesIntoTheOtherArrays) {
  const Made small("embedding 100:int64 50x3", 1),
      given("embedding 100:int64 50x3", 1, {{"ids", 50}});
  int64_t largest = 0, largest_given = 0;
  for (int64_t i = 0; i < 100; ++i) {
    largest = std::max(largest, small.operands.inputs(0)[0].data_as<int64_t>()[i]);
    largest_given = std::max(largest_given, given.operands.inputs(0)[0].data_as<int64_t>()[i]);
  }
  EXPECT_LT(largest, 3);
  EXPECT_GT(largest_given, 3);
  EXPECT_LT(largest_given, 50);
}

}  // namespace
}  // namespace tensorcraft::bench
