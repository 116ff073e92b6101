// SPDX-License-Identifier: Apache-2.0
// Times, in one fresh process on a GPU: the context, the first result beyond it, later cold
// kernels, and a warm call against the bare launch. Prints one JSON object. The cache folder
// decides whether the kernels come from NVRTC or from disk: run twice with one
// TENSORCRAFT_CACHE_DIR. With --together it times one thing alone: from nothing to a loaded kernel,
// where the context is made while NVRTC starts; compare with context_ms + first_ms.
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/tensorcraft.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <span>
#include <string_view>
#include <vector>

namespace {

using namespace tensorcraft;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

template <class F>
double timed_ms(F&& f) {
  const auto start = Clock::now();
  f();
  synchronize(Device::cuda(0));
  return milliseconds_since(start);
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + long(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// Host time of one call, in batches short enough that the launch queue never fills.
template <class F>
double host_us(F&& f) {
  constexpr int kBatch = 100, kBatches = 50;
  std::vector<double> times;
  for (int b = 0; b < kBatches; ++b) {
    const auto start = Clock::now();
    for (int i = 0; i < kBatch; ++i) f();
    times.push_back(milliseconds_since(start) * 1e3 / kBatch);
    synchronize(Device::cuda(0));
  }
  return median(times);
}

op::Plan plan_of(const TensorView& out, const TensorView& in) {
  const auto explained =
      find_operator("l2_normalize")
          .explain(std::span(&out, 1), {std::span(&in, 1), {}, {}, {}}, device_info(out.device()));
  const auto chosen = std::find_if(explained.variants.begin(), explained.variants.end(),
                                   [](const auto& v) { return v.accepted; });
  return *chosen->plan;
}

int run_together(Device gpu) {
  // Planning reads no memory, so addresses without memory do: no context is made for it.
  const TensorView x(reinterpret_cast<void*>(4096), DType::float32, {64, 384}, gpu);
  const TensorView y(reinterpret_cast<void*>(1 << 20), DType::float32, {64, 384}, gpu);
  const op::Plan plan = plan_of(y, x);
  const auto start = Clock::now();
  jit::get_kernel(plan.first().kernel, gpu);
  const nlohmann::json result = {{"together_ms", milliseconds_since(start)},
                                 {"compiles", jit::counters().compiles}};
  std::cout << result.dump() << '\n';
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const Device gpu = Device::cuda(0);
  if (count > 1 && std::string_view(arguments[1]) == "--together") return run_together(gpu);
  nlohmann::json result;
  result["context_ms"] = timed_ms([&] { const DeviceGuard guard(0); });
  Tensor x(DType::float32, {64, 384}, gpu), y(DType::float32, {64, 384}, gpu);
  Tensor a(DType::bfloat16, {256, 256}, gpu), d(DType::bfloat16, {256, 256}, gpu);
  const std::vector<float> ones(size_t(x.size()), 1.0f);
  x.copy_from_host(ones.data(), x.nbytes());
  result["first_ms"] = timed_ms([&] { l2_normalize(y, x); });
  result["elementwise_ms"] = timed_ms([&] { add(y, x, x); });
  result["layer_norm_ms"] = timed_ms([&] { layer_norm(y, x); });
  result["gemm_tensor_core_ms"] = timed_ms([&] { gemm(d, a, a, {.variant = "tensor_core"}); });
  result["warm_call_us"] = host_us([&] { l2_normalize(y, x); });
  result["warm_add_us"] = host_us([&] { add(y, x, x); });
  result["warm_gemm_us"] = host_us([&] { gemm(d, a, a, {.variant = "tensor_core"}); });

  // The launch alone: the kernel and its arguments are at hand.
  const op::Plan plan = plan_of(y, x);
  const auto kernel = jit::get_kernel(plan.first().kernel, gpu);
  const StreamRef stream = current_stream(0);
  result["bare_launch_us"] = host_us([&] {
    launch(*kernel, plan.first().launch, plan.params(plan.first()), stream, "l2_normalize");
  });
  result["get_kernel_us"] = host_us([&] { jit::get_kernel(plan.first().kernel, gpu); });
  result["device"] = device_info(gpu).name;
  const auto counters = jit::counters();
  result["compiles"] = counters.compiles;
  result["disk_hits"] = counters.disk_hits;
  std::cout << result.dump() << '\n';
}
