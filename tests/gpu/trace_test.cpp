// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/trace/trace_log.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tests/support/temporary_folder.hpp"

#include <nlohmann/json.hpp>

#include <fstream>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

// Spans of a GPU lie between the host's times before they were enqueued and after they were waited
// for, in the order of their stream.
TEST(TraceLogGpu, SpansOfAStreamAreAtTheirTimes) {
  if (cuda_device_count() == 0) GTEST_SKIP() << cuda::driver_problem();
  const test::TemporaryFolder folder;
  const Stream stream(0);
  const Tensor x(DType::float32, {int64_t(1) << 24}, Device::cuda(0), stream);
  TraceLog::Time before{0}, after{0};
  constexpr int kSpans = 5;
  {
    TraceLog log(folder.file("t.json"));
    log.watch(0);
    before = TraceLog::now();
    for (int i = 0; i < kSpans; ++i) {
      Event begin(0, true), end(0, true);
      begin.record(stream);
      exp(x, x, {.stream = stream});
      end.record(stream);
      log.gpu_span("exp", stream, std::move(begin), std::move(end));
    }
    stream.ref().synchronize();
    after = TraceLog::now();
  }
  std::ifstream in(folder.file("t.json"));
  std::string line;
  double last = double(before.count()) / 1e3 - 100;  // microseconds; clocks agree to 0.1 ms
  int spans = 0;
  while (std::getline(in, line)) {
    if (line.find("\"X\"") == line.npos) continue;
    line.pop_back();
    const auto event = nlohmann::json::parse(line);
    ++spans;
    EXPECT_GE(event.at("ts").get<double>(), last);
    EXPECT_GT(event.at("dur").get<double>(), 5);  // 128 MiB of traffic
    last = event.at("ts").get<double>() + event.at("dur").get<double>() - 1;
  }
  EXPECT_EQ(spans, kSpans);
  EXPECT_LE(last, double(after.count()) / 1e3 + 100);
}

}  // namespace
}  // namespace tensorcraft
