// SPDX-License-Identifier: Apache-2.0
// A graph of sample() on a real GPU draws what the CPU draws, anew at each replay; skipped if there
// is none.
#include "tensorcraft/ops/sample/sample.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/graph.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tensorcraft::test {
namespace {

class SampleOnGpu : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda::driver_problem();
  }
};

TEST_P(SampleOnGpu, AGraphDrawsAnewAtEachReplay) {
  const Device gpu = Device::cuda(0);
  const Tensor logits = normal_tensor({5, 70000}, DType::bfloat16, 3), x = logits.to(gpu);
  const Tensor one = Tensor::from(std::vector<int64_t>{1}, {}).to(gpu);
  for (const bool filters : {false, true}) {
    SampleOptions on_host{.temperature = 0.8, .seed = 17};
    if (filters) on_host.top_k = 3000;
    if (filters) on_host.top_p = 0.9;
    Tensor offset = Tensor::from(std::vector<int64_t>{0}, {}).to(gpu);
    Tensor ids(DType::int64, {5}, gpu);
    const Stream stream;
    SampleOptions options = on_host;
    options.variant = GetParam();
    options.offset = offset;
    options.stream = stream;
    const auto step = [&] {
      sample(ids, x, options);
      add(offset, offset, one, {.stream = stream});
    };
    step();  // compiles: a recording must not
    const Graph graph(stream, step);
    for (int64_t call = 0; call < 20; ++call) {
      graph.launch(stream);
      stream.ref().synchronize();
      on_host.offset = call + 1;
      EXPECT_EQ(values<int64_t>(ids), values<int64_t>(sample(logits, on_host))) << call << filters;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, SampleOnGpu, testing::Values("split", "block", "naive"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tensorcraft::test
