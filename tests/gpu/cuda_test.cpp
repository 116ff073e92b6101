// SPDX-License-Identifier: Apache-2.0
// The driver layer on a real GPU; skipped if there is none.
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/launch_kernel.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/cuda/tensor_map.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <numeric>
#include <vector>

namespace tensorcraft {
namespace {

struct Params {
  float* data;
  int n;
  int spins;
};

constexpr const char* kSource = R"(
struct Params { float* data; int n; int spins; };
extern "C" __global__ void k(const __grid_constant__ Params p) {
  for (int s = 0; s < p.spins; ++s) __nanosleep(1000);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.n) p.data[i] = p.data[i] * 2 + 1;
}
extern "C" __global__ void fault(const __grid_constant__ Params p) { p.data[0] = 1; }
)";

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda::driver_problem();
    if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  }
  static std::shared_ptr<const LoadedKernel> kernel(const char* name, bool ptx = false) {
    const DeviceInfo& info = device_info(Device::cuda(0));
    const std::string option =
        ptx ? "--gpu-architecture=compute_80" : "--gpu-architecture=" + info.arch();
    const cuda::NvrtcResult result = cuda::nvrtc_compile(kSource, "k.cu", {}, {&option, 1});
    EXPECT_TRUE(result.ok) << result.log;
    return LoadedKernel::load(std::as_bytes(std::span(result.image)), name, 0);
  }
};

struct Buffer {
  StreamRef stream;
  float* data;
  Buffer(size_t n, StreamRef s)
      : stream(s), data(static_cast<float*>(cuda::allocate(n * sizeof(float), s))) {}
  ~Buffer() { cuda::deallocate(data, stream); }
};

void run_round_trip(const LoadedKernel& kernel, StreamRef stream) {
  const int n = 1000;
  std::vector<float> host(n), back(n);
  std::iota(host.begin(), host.end(), 0.0f);
  Buffer buffer(n, stream);
  cuda::copy_async(buffer.data, host.data(), n * sizeof(float), stream);
  LaunchKernel({8}, {128}, stream)(kernel, Params{buffer.data, n, 0});
  cuda::copy_async(back.data(), buffer.data, n * sizeof(float), stream);
  stream.synchronize();
  for (int i = 0; i < n; ++i) ASSERT_EQ(back[size_t(i)], 2.0f * float(i) + 1);
}

TEST_F(Gpu, DescribesItself) {
  const DeviceInfo& info = device_info(Device::cuda(0));
  EXPECT_GE(info.compute_capability, 80);
  EXPECT_GT(info.memory_gb_per_s, 100);
  EXPECT_GT(info.peak_bf16_tflops, 10);
  EXPECT_GT(cuda::driver_version(), 12000);
  std::printf("%s %s, %d SMs, %.0f GB/s, %.0f bf16 TFLOPS, driver %d, NVRTC %d.%d at %s\n",
              info.name.c_str(), info.arch().c_str(), info.num_sms, info.memory_gb_per_s,
              info.peak_bf16_tflops, cuda::driver_version(), cuda::nvrtc_version().major,
              cuda::nvrtc_version().minor, cuda::nvrtc_path().c_str());
  if (info.name.find("H200") != std::string::npos) {
    EXPECT_NEAR(info.memory_gb_per_s, 4800, 240);
    EXPECT_NEAR(info.peak_bf16_tflops, 989, 50);
  }
}

TEST_F(Gpu, RunsAKernelOnTheDefaultStreamAndOnItsOwn) {
  const auto k = kernel("k");
  EXPECT_GT(k->registers(), 0);
  run_round_trip(*k, StreamRef());
  Stream stream;
  run_round_trip(*k, stream);
}

TEST_F(Gpu, RunsPtxThroughTheDriver) {
  if (cuda::nvrtc_version().major * 1000 + cuda::nvrtc_version().minor * 10 >
      cuda::driver_version())
    GTEST_SKIP() << "NVRTC is newer than the driver, which may refuse its PTX";
  run_round_trip(*kernel("k", true), StreamRef());
}

TEST_F(Gpu, AcceptsLaunchAttributes) {
  const auto k = kernel("k");
  Stream stream;
  Buffer buffer(1024, stream);
  cuda::fill_async(buffer.data, 0, 1024 * sizeof(float), stream);
  LaunchKernel pdl({8}, {128}, stream);
  if (device_info(Device::cuda(0)).has_clusters()) pdl.cluster({2}).programmatic_dependent_launch();
  pdl(*k, Params{buffer.data, 1024, 0});
  std::vector<float> back(1024);
  cuda::copy_async(back.data(), buffer.data, 4096, stream);
  stream.ref().synchronize();
  for (float value : back) ASSERT_EQ(value, 1.0f);
}

TEST_F(Gpu, ABadLaunchThrowsAndLeavesTheDeviceUsable) {
  const auto k = kernel("k");
  EXPECT_THROW(LaunchKernel({1}, {4096}, StreamRef())(*k, Params{nullptr, 0, 0}), Error);
  EXPECT_NO_THROW(RuntimeDeviceCheck());
  run_round_trip(*k, StreamRef());
}

TEST_F(Gpu, AnEventOrdersTwoStreams) {
  const auto k = kernel("k");
  Stream first, second;
  Buffer buffer(128, first);
  cuda::fill_async(buffer.data, 0, 512, first);
  LaunchKernel({1}, {128}, first)(*k, Params{buffer.data, 128, 2000});
  Event event;
  event.record(first);
  event.wait(second);
  LaunchKernel({1}, {128}, second)(*k, Params{buffer.data, 128, 0});
  std::vector<float> back(128);
  cuda::copy_async(back.data(), buffer.data, 512, second);
  second.ref().synchronize();
  EXPECT_TRUE(event.done());
  for (float value : back) ASSERT_EQ(value, 3.0f);  // 0 -> 1 -> 3 only in this order
}

TEST_F(Gpu, EventsMeasureTime) {
  const auto k = kernel("k");
  Stream stream;
  Buffer buffer(128, stream);
  Event begin(0, true), end(0, true);
  begin.record(stream);
  LaunchKernel({1}, {128}, stream)(*k, Params{buffer.data, 128, 2000});
  end.record(stream);
  const float ms = Event::elapsed_ms(begin, end);
  EXPECT_GT(ms, 0.1f);
  EXPECT_LT(ms, 1000.0f);
}

TEST_F(Gpu, StreamsOverlap) {
  const auto k = kernel("k");
  Stream first, second;
  Buffer a(128, first), b(128, second);
  const auto time_of = [&](bool both) {
    Event begin(0, true), end(0, true), joined(0);
    begin.record(first);
    joined.record(first);
    joined.wait(second);
    LaunchKernel({1}, {128}, first)(*k, Params{a.data, 128, 5000});
    LaunchKernel({1}, {128}, both ? second : first)(*k, Params{b.data, 128, 5000});
    Event last(0);
    last.record(second);
    last.wait(first);
    end.record(first);
    return Event::elapsed_ms(begin, end);
  };
  synchronize(Device::cuda(0));
  time_of(true);
  EXPECT_LT(time_of(true), 0.75f * time_of(false));
}

TEST_F(Gpu, PinnedMemoryCopies) {
  auto* pinned = static_cast<float*>(cuda::allocate_pinned(64));
  Stream stream;
  Buffer buffer(16, stream);
  cuda::fill_async(buffer.data, 0, 64, stream);
  pinned[3] = 5;
  cuda::copy_async(pinned, buffer.data, 64, stream);
  stream.ref().synchronize();
  EXPECT_EQ(pinned[3], 0.0f);
  cuda::deallocate_pinned(pinned);
}

TEST_F(Gpu, OutOfMemoryIsItsOwnKindAndLeavesTheDeviceUsable) {
  try {
    cuda::allocate(size_t(1) << 50, StreamRef());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory) << error.what();
  }
  EXPECT_TRUE(cuda::usable());
}

TEST_F(Gpu, EncodesATensorMap) {
  if (!device_info(Device::cuda(0)).has_tma()) GTEST_SKIP() << "no TMA before SM 90";
  Buffer buffer(64 * 64, StreamRef());
  EXPECT_NO_THROW(cuda::encode_tiled({.dtype = DType::bfloat16,
                                      .address = buffer.data,
                                      .rank = 2,
                                      .dims = {64, 64},
                                      .strides = {128},
                                      .box = {64, 32},
                                      .swizzle = cuda::Swizzle::bytes_128}));
}

// In a process of its own, which loses its device.
TEST_F(Gpu, AFaultBecomesDeviceLostWithItsFirstCause) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto body = [] {
    const auto bad = kernel("fault");
    int code = 1;
    try {
      LaunchKernel({1}, {1}, StreamRef())(*bad, Params{reinterpret_cast<float*>(8), 1, 0});
      StreamRef().synchronize();
    } catch (const Error& error) {
      code = error.kind() == ErrorKind::device_lost ? 2 : 3;
    }
    try {
      cuda::allocate(16, StreamRef());
    } catch (const Error& error) {
      const bool named =
          std::string_view(error.what()).find("cuStreamSynchronize") != std::string_view::npos;
      if (code == 2 && named && error.kind() == ErrorKind::device_lost) code = 0;
    }
    std::_Exit(code);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tensorcraft
