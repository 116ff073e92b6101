// SPDX-License-Identifier: Apache-2.0
// Host time of a warm operator call over the launch it ends in, on any machine: the driver is a
// table whose launch does nothing. Prints one JSON object; times are medians in nanoseconds.
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/op/operator.hpp"
#include "tensorcraft/tensorcraft.hpp"
#include "tests/support/empty_driver.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <new>
#include <vector>

namespace {

long allocations = 0;

}  // namespace

[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace {

using namespace tensorcraft;
using Clock = std::chrono::steady_clock;

struct Cost {
  double ns, allocations;
};

template <class F>
Cost cost_of(F&& f) {
  constexpr int kBatch = 1000, kBatches = 101;
  for (int i = 0; i < kBatch; ++i) f();
  std::vector<double> times;
  times.reserve(kBatches);
  const long before = allocations;
  for (int b = 0; b < kBatches; ++b) {
    const auto start = Clock::now();
    for (int i = 0; i < kBatch; ++i) f();
    times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() /
                    kBatch);
  }
  const double per_call = double(allocations - before) / (kBatch * kBatches);
  std::nth_element(times.begin(), times.begin() + kBatches / 2, times.end());
  return {times[kBatches / 2], per_call};
}

}  // namespace

int main() {
  cuda::set_driver_for_test(&test::empty_driver());
  const Device gpu = Device::cuda(0);
  nlohmann::json result;
  {
    const Tensor x(DType::float32, {64, 384}, gpu), y(DType::float32, {64, 384}, gpu);
    const Tensor a(DType::bfloat16, {256, 256}, gpu), d(DType::bfloat16, {256, 256}, gpu);
    const std::vector<TensorView> outputs{y}, inputs{x};
    const auto explained =
        find_operator("l2_normalize").explain(outputs, {inputs, {}, {}, {}}, device_info(gpu));
    const auto chosen = std::find_if(explained.variants.begin(), explained.variants.end(),
                                     [](const auto& v) { return v.accepted; });
    const op::Plan& plan = *chosen->plan;
    const auto kernel = jit::get_kernel(plan.first().kernel, gpu);
    const StreamRef stream = current_stream(0);
    const Cost bare = cost_of([&] {
      launch(*kernel, plan.first().launch, plan.params(plan.first()), stream, "l2_normalize");
    });
    const auto add_row = [&](const char* name, const Cost& cost) {
      result[name] = {{"call_ns", cost.ns},
                      {"over_launch_ns", cost.ns - bare.ns},
                      {"allocations", cost.allocations}};
    };
    result["bare_launch_ns"] = bare.ns;
    result["get_kernel_ns"] = cost_of([&] { jit::get_kernel(plan.first().kernel, gpu); }).ns;
    add_row("l2_normalize", cost_of([&] { l2_normalize(y, x); }));
    add_row("add", cost_of([&] { add(y, x, x); }));
    add_row("layer_norm", cost_of([&] { layer_norm(y, x); }));
    add_row("softmax", cost_of([&] { softmax(y, x); }));
    add_row("gemm", cost_of([&] { gemm(d, a, a); }));
    add_row("l2_normalize_allocating", cost_of([&] { l2_normalize(x); }));
  }
  jit::clear_memory();
  std::cout << result.dump(1) << '\n';
}
