// SPDX-License-Identifier: Apache-2.0
// Host time of a warm operator call over the launch it ends in, on any machine: the driver is a
// table whose launch does nothing. Prints one JSON object; times are medians in nanoseconds.
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/op/operator.hpp"
#include "tensorcraft/tensorcraft.hpp"

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

CUctx_st* const kContext = reinterpret_cast<CUctx_st*>(8);
thread_local CUctx_st* current = nullptr;
long launches = 0;

int attribute(int which) {
  switch (which) {
    case cuda::kComputeMajor:
      return 9;
    case cuda::kMultiprocessorCount:
      return 132;
    case cuda::kThreadsPerMultiprocessor:
      return 2048;
    case cuda::kSharedBytesPerMultiprocessor:
      return 233472;
    case cuda::kSharedBytesPerBlockOptIn:
      return 232448;
    case cuda::kRegistersPerMultiprocessor:
      return 65536;
    default:
      return 0;
  }
}

// One H200 whose every call succeeds at once.
const cuda::Driver& empty_driver() {
  static cuda::Driver d;
  d.init.function = [](uint32_t) { return 0; };
  d.driver_get_version.function = [](int* version) { return *version = 13000, 0; };
  d.get_error_string.function = [](int, const char** text) { return *text = "", 0; };
  d.device_get.function = [](int* device, int index) { return *device = index, 0; };
  d.device_get_count.function = [](int* count) { return *count = 1, 0; };
  d.device_get_name.function = [](char* name, int, int) { return name[0] = 'H', 0; };
  d.device_total_mem.function = [](size_t* bytes, int) { return *bytes = size_t(141) << 30, 0; };
  d.device_get_attribute.function = [](int* v, int which, int) { return *v = attribute(which), 0; };
  d.primary_context_retain.function = [](CUctx_st** c, int) { return *c = kContext, 0; };
  d.context_get_current.function = [](CUctx_st** c) { return *c = current, 0; };
  d.context_set_current.function = [](CUctx_st* c) { return current = c, 0; };
  d.context_synchronize.function = [] { return 0; };
  d.stream_is_capturing.function = [](CUstream_st*, int* state) { return *state = 0; };
  d.device_get_default_mem_pool.function = [](CUmemPoolHandle_st** p, int) {
    return *p = nullptr, 0;
  };
  d.mem_pool_set_attribute.function = [](CUmemPoolHandle_st*, int, void*) { return 0; };
  d.mem_alloc_async.function = [](cuda::DevicePointer* p, size_t bytes, CUstream_st*) {
    *p = reinterpret_cast<cuda::DevicePointer>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
    return 0;
  };
  d.mem_free_async.function = [](cuda::DevicePointer p, CUstream_st*) {
    std::free(reinterpret_cast<void*>(p));
    return 0;
  };
  d.library_load_data.function = [](CUlib_st** l, const void*, int*, void**, uint32_t, int*, void**,
                                    uint32_t) { return *l = nullptr, 0; };
  d.library_unload.function = [](CUlib_st*) { return 0; };
  d.library_get_kernel.function = [](CUkern_st** k, CUlib_st*, const char*) {
    return *k = nullptr, 0;
  };
  d.kernel_get_function.function = [](CUfunc_st** f, CUkern_st*) { return *f = nullptr, 0; };
  d.function_get_attribute.function = [](int* value, int, CUfunc_st*) { return *value = 0; };
  d.function_set_attribute.function = [](CUfunc_st*, int, int) { return 0; };
  d.launch_kernel.function = [](const cuda::LaunchSetup*, CUfunc_st*, void**, void**) {
    return ++launches, 0;
  };
  return d;
}

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
  cuda::set_driver_for_test(&empty_driver());
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
    const auto kernel = jit::get_kernel(plan.kernel, gpu);
    const StreamRef stream = current_stream(0);
    const Cost bare =
        cost_of([&] { launch(*kernel, plan.launch, plan.params, stream, "l2_normalize"); });
    const auto add_row = [&](const char* name, const Cost& cost) {
      result[name] = {{"over_launch_ns", cost.ns - bare.ns}, {"allocations", cost.allocations}};
    };
    result["bare_launch_ns"] = bare.ns;
    result["get_kernel_ns"] = cost_of([&] { jit::get_kernel(plan.kernel, gpu); }).ns;
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
