// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_kernels.hpp"

#include "tests/support/fake_driver.hpp"
#include "tests/support/fake_stream.hpp"

#include <cstring>
#include <deque>
#include <memory>
#include <utility>

// Also what handles of kernels and functions point to: a library has one kernel.
struct CUlib_st {
  int device;
  tensorcraft::test::FakeKernel kernel;
};

namespace tensorcraft::test {
namespace {

constexpr int kInvalidContext = 201, kInvalidHandle = 400, kNoBinary = 209;
constexpr int kStaticSharedBytes = 1024, kLocalBytes = 16, kRegisters = 42, kMaxThreads = 512;

// Leaked, as threads may use the driver while the process ends.
auto& library_pool = *new std::deque<CUlib_st>;

using Lock = std::lock_guard<std::recursive_mutex>;

FakeDriver& fake() { return *FakeDriver::installed(); }

int in_context(const char* name) {
  const int status = fake().enter(name);
  return status ? status : FakeDriver::current_context() ? 0 : kInvalidContext;
}

int load_library(CUlib_st** library, const void* image, int*, void** values, uint32_t num_options,
                 int*, void**, uint32_t) {
  if (const int status = in_context("cuLibraryLoadData")) {
    if (num_options == 2)
      std::strncpy(static_cast<char*>(values[0]), fake().jit_log.c_str(),
                   reinterpret_cast<size_t>(values[1]));
    return status;
  }
  FakeKernel kernel;
  if (fake().load_kernel) {
    kernel = fake().load_kernel(static_cast<const char*>(image));
    if (!kernel.run) return kNoBinary;
  }
  const Lock lock(fake().device_mutex);
  *library = &library_pool.emplace_back(CUlib_st{FakeDriver::current_device(), std::move(kernel)});
  ++fake().libraries;
  return 0;
}

CUlib_st& library_of(CUfunc_st* function) { return *reinterpret_cast<CUlib_st*>(function); }

// A copy of a launch's parameters, aligned as a tensor map in them must be.
struct Parameters {
  alignas(64) std::byte bytes[4096];
};

void run_kernel(const FakeKernel& kernel, const FakeLaunch& launch, const void* params) {
  try {
    kernel.run(launch, params);
  } catch (const std::exception& error) {
    fake().add_damage(error.what());
    fake().faults.lose(kLaunchFailed);
  }
}

int launch_kernel(const cuda::LaunchSetup* setup, CUfunc_st* function, void** params, void**) {
  if (const int status = fake().enter("cuLaunchKernelEx")) return status;
  const CUlib_st& library = library_of(function);
  if (FakeDriver::current_context() != FakeDriver::context_of(library.device))
    return kInvalidHandle;
  FakeLaunch launch{.grid = {setup->grid_x, setup->grid_y, setup->grid_z},
                    .block = {setup->block_x, setup->block_y, setup->block_z},
                    .shared_bytes = setup->shared_bytes,
                    .num_attributes = setup->num_attributes,
                    .device = library.device,
                    .stream = setup->stream};
  for (uint32_t i = 0; i < setup->num_attributes; ++i) {
    const cuda::LaunchAttribute& attribute = setup->attributes[i];
    if (attribute.id == cuda::kClusterDimension)
      launch.cluster = {attribute.cluster.x, attribute.cluster.y, attribute.cluster.z};
    if (attribute.id == cuda::kProgrammaticStreamSerialization)
      launch.programmatic_dependent_launch = attribute.enabled == 1;
  }
  const Lock lock(fake().device_mutex);
  if (CUstream_st* const stream = setup->stream; stream && stream->graph) {
    // It counts and takes its time when the graph is launched, and computes nothing.
    stream->graph->nodes.push_back([launch](CUstream_st*) {
      fake().launches.push_back(launch);
      fake().clock_ms += 1;
    });
    return 0;
  }
  fake().launches.push_back(launch);
  fake().clock_ms += 1;
  if (fake().on_launch) fake().on_launch(launch, params[0]);
  if (!library.kernel.run) return 0;
  const auto copied = std::make_shared<Parameters>();
  std::memcpy(copied->bytes, params[0], library.kernel.params_bytes);
  enqueue(setup->stream,
          [kernel = library.kernel, launch, copied] { run_kernel(kernel, launch, copied->bytes); });
  return 0;
}

}  // namespace

void fill_kernel_calls(cuda::Driver& d) {
  d.library_load_data.function = load_library;
  d.library_unload.function = [](CUlib_st*) {
    if (const int status = fake().enter("cuLibraryUnload")) return status;
    --fake().libraries;
    return 0;
  };
  d.library_get_kernel.function = [](CUkern_st** kernel, CUlib_st* library, const char*) {
    *kernel = reinterpret_cast<CUkern_st*>(library);
    return fake().enter("cuLibraryGetKernel");
  };
  d.kernel_get_function.function = [](CUfunc_st** function, CUkern_st* kernel) {
    *function = reinterpret_cast<CUfunc_st*>(kernel);
    return in_context("cuKernelGetFunction");
  };
  d.function_get_attribute.function = [](int* value, int which, CUfunc_st*) {
    *value = which == cuda::kFunctionSharedBytes  ? kStaticSharedBytes
             : which == cuda::kFunctionLocalBytes ? kLocalBytes
             : which == cuda::kFunctionMaxThreads ? kMaxThreads
                                                  : kRegisters;
    return fake().enter("cuFuncGetAttribute");
  };
  d.function_set_attribute.function = [](CUfunc_st* function, int which, int value) {
    if (const int status = fake().enter("cuFuncSetAttribute")) return status;
    const Lock lock(fake().device_mutex);
    if (which == cuda::kFunctionMaxDynamicSharedBytes)
      fake().max_dynamic_shared[library_of(function).device] = value;
    return 0;
  };
  d.function_load.function = [](CUfunc_st*) { return in_context("cuFuncLoad"); };
  d.launch_kernel.function = launch_kernel;
  d.tensor_map_encode_tiled.function = [](void* map, int, uint32_t rank, void*, const uint64_t*,
                                          const uint64_t* strides, const uint32_t*, const uint32_t*,
                                          int, int, int, int) {
    std::memset(map, 0xff, 128);
    std::memcpy(fake().last_tensor_map_strides, strides, (rank - 1) * sizeof(uint64_t));
    return in_context("cuTensorMapEncodeTiled");
  };
  d.tensor_map_encode_im2col.function = [](void* map, int, uint32_t rank, void*, const uint64_t*,
                                           const uint64_t* strides, const int* lower,
                                           const int* upper, uint32_t, uint32_t, const uint32_t*,
                                           int, int, int, int) {
    std::memset(map, 0xff, 128);
    std::memcpy(fake().last_tensor_map_strides, strides, (rank - 1) * sizeof(uint64_t));
    std::memcpy(fake().last_corners[0], lower, (rank - 2) * sizeof(int));
    std::memcpy(fake().last_corners[1], upper, (rank - 2) * sizeof(int));
    return in_context("cuTensorMapEncodeIm2col");
  };
  d.tensor_map_replace_address.function = [](void*, void*) { return 0; };
}

void forget_kernels() { library_pool.clear(); }

}  // namespace tensorcraft::test
