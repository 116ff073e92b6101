// SPDX-License-Identifier: Apache-2.0
// Kernels that count rows with a word of their stream, on a real GPU; skipped if there is none.
#include "tensorcraft/cuda/stream_counter.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/graph.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/ops/softmax/softmax.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <random>

namespace tensorcraft::test {
namespace {

constexpr int kCalls = 20;

// More rows than blocks start with; of both, one block and a cluster have a row.
class StreamCounterOnGpu : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda::driver_problem();
    std::mt19937 random(1);
    x_ = normal_tensor({500, GetParam()}, random).to(Device::cuda(0));
    options_.variant = "in_registers";
    if (GetParam() > 8192) options_.variant = "staged";
    expected_ = values(softmax(x_, options_));
    options_.variant = "persistent";
  }
  static uint32_t word(const uint32_t* address, StreamRef stream) {
    uint32_t value = 1;
    cuda::copy_async(&value, address, sizeof(value), stream);
    stream.synchronize();
    return value;
  }
  void expect_right(const Tensor& y) const {
    const auto got = values(y);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected_[i], 1e-6f) << i;
  }

  Tensor x_;
  SoftmaxOptions options_;
  std::vector<float> expected_;
};

TEST_P(StreamCounterOnGpu, KernelsLeaveIt0WhicheverStreamTheyRunOn) {
  const Stream streams[2];
  Tensor y[2];
  for (Tensor& t : y) t = Tensor(DType::float32, x_.shape(), Device::cuda(0));
  StreamRef().synchronize();
  for (int call = 0; call < kCalls; ++call) {
    for (int i = 0; i < 2; ++i) {
      options_.stream = streams[i];
      softmax(y[i], x_, options_);
    }
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(word(cuda::counter_of(streams[i]), streams[i]), 0u);
    expect_right(y[i]);
  }
}

TEST_P(StreamCounterOnGpu, AGraphBesideTheStreamHasItsOwn) {
  const Stream stream, other;
  Tensor recorded(DType::float32, x_.shape(), Device::cuda(0));
  Tensor direct(DType::float32, x_.shape(), Device::cuda(0));
  options_.stream = stream;
  softmax(direct, x_, options_);  // compiles: a recording must not
  const Graph graph(stream, [&] { softmax(recorded, x_, options_); });
  stream.ref().synchronize();
  for (int call = 0; call < kCalls; ++call) {
    graph.launch(other);
    softmax(direct, x_, options_);
  }
  other.ref().synchronize();
  EXPECT_EQ(word(cuda::counter_of(stream), stream), 0u);
  expect_right(recorded);
  expect_right(direct);
}

INSTANTIATE_TEST_SUITE_P(Columns, StreamCounterOnGpu, testing::Values(4096, 32768, 65536));

}  // namespace
}  // namespace tensorcraft::test
