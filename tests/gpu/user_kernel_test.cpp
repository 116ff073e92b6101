// SPDX-License-Identifier: Apache-2.0
// A user's kernel on a GPU: values, order with the library's own kernels, and what a second launch
// costs the host beside the driver's own.
#include "tensorcraft/jit/user_kernel.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/graph.hpp"
#include "tensorcraft/cuda/launch.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>
#include <thread>
#include <vector>

namespace tensorcraft::jit {
namespace {

constexpr const char* kSix = R"(
__global__ void six(float* a, const float* b, const float* c, int n, float f, int64_t m) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = f * b[i] + c[i] + float(m);
}
)";

// The best round's microseconds a call.
template <class Call>
double host_us(Call&& call) {
  constexpr int kCalls = 400;
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    synchronize(Device::cuda());
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count() / kCalls);
  }
  return best;
}

TEST(UserKernelTiming, ASecondLaunchCostsTheHostLittleMoreThanTheDrivers) {
  const auto all = devices();
  if (std::ranges::none_of(all, &Device::is_cuda)) GTEST_SKIP() << "no GPU";
  const UserKernel six(kSix,
                       "six(float* a, const float* b, const float* c, int n, float f, int64 m)");
  const Tensor a(DType::float32, {256}, Device::cuda()), b(DType::float32, {256}, Device::cuda()),
      c(DType::float32, {256}, Device::cuda());
  const TensorView va = a.view(), vb = b.view(), vc = c.view();
  const StreamRef stream = current_stream(0);
  const UserLaunch how{.grid = {1}, .block = {256}, .stream = stream};
  six(how, va, vb, vc, 0, 2.0, 3);
  UserArguments packed(six.signature());
  packed.add(va);
  packed.add(vb);
  packed.add(vc);
  packed.add(0);
  packed.add(2.0);
  packed.add(3);
  const auto kernel = get_kernel(six.key(), Device::cuda());
  const LaunchConfig config{
      .grid = how.grid,
      .block = how.block,
      .programmatic_dependent_launch = device_info(Device::cuda()).has_dependent_launch()};
  const double bare = host_us([&] { launch(*kernel, config, packed.data(), stream, "six"); });
  const double whole = host_us([&] { six(how, va, vb, vc, 0, 2.0, 3); });
  std::cout << "launch " << bare << " us, with checks " << whole << " us\n";
  EXPECT_LE(whole - bare, 0.5);
}

// A thread records a launch and ends; then the table forgets the kernel for another one.
TEST(UserKernel, OfAGraphOutlivesItsPlaceInTheTable) {
  if (std::ranges::none_of(devices(), &Device::is_cuda)) GTEST_SKIP() << "no GPU";
  const auto adds = [](int n) {
    return UserKernel(join("__global__ void add(float* a) { a[threadIdx.x] += ", n, "; }"),
                      "add(float* a)");
  };
  const Stream stream;
  const Tensor a = Tensor::from(std::vector<float>(64, 0), {64}).to(Device::cuda());
  const TensorView view = a.view();
  const UserLaunch how{.grid = {1}, .block = {64}, .stream = stream};
  std::optional<Graph> graph;
  std::thread([&] {
    const UserKernel ten = adds(10);
    ten(how, view);
    graph.emplace(stream, [&] { ten(how, view); });
  }).join();
  set_memory_limit(1);
  for (int n = 1; n < 4; ++n) adds(n)(how, view);
  for (int i = 0; i < 3; ++i) graph->launch(stream);
  stream.ref().synchronize();
  set_memory_limit(4096);
  const Tensor back = a.to(Device::cpu());
  for (int i = 0; i < 64; ++i) ASSERT_EQ(back.data_as<float>()[i], 46) << i;
}

}  // namespace
}  // namespace tensorcraft::jit
