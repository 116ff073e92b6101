// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/launch.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/launch_watcher.hpp"
#include "tensorcraft/cuda/session.hpp"
#include "tensorcraft/cuda/shortage.hpp"
#include "tensorcraft/cuda/stream_state.hpp"

#include <array>

namespace tensorcraft {
namespace {

using cuda::Driver;

constexpr uint32_t kMaxGridX = 0x7fffffff, kMaxGridYZ = 65535;

std::string text_of(const Dim3& d) { return join("(", d.x, ", ", d.y, ", ", d.z, ")"); }

[[noreturn]] void fail_grid(const Dim3& grid, std::string_view what, std::source_location where) {
  if (grid.count() == 0)
    fail({ErrorKind::internal, where}, what, ": grid ", text_of(grid),
         " is empty; an empty problem must return before the launch");
  fail({ErrorKind::value, where}, what, ": grid ", text_of(grid),
       " is larger than the device's limit (2147483647, 65535, 65535); split the problem");
}

[[noreturn]] void fail_launch(int status, const LoadedKernel& kernel, const LaunchConfig& config,
                              std::string_view what, std::source_location where) {
  cuda::fail_with(join(what, ": cuLaunchKernelEx with grid ", text_of(config.grid), ", block ",
                       text_of(config.block), ", ", config.shared_bytes,
                       " bytes of shared memory, ", kernel.registers(), " registers: "),
                  status, where);
}

int attribute(const Driver& driver, cuda::FunctionAttribute which, CUfunc_st* function) {
  int value = 0;
  driver.function_get_attribute(&value, which, function);
  return value;
}

}  // namespace

std::shared_ptr<const LoadedKernel> LoadedKernel::load(std::span<const std::byte> image,
                                                       std::string_view entry, int device) {
  const DeviceGuard guard(device);
  const Driver& driver = cuda::require_driver();
  std::shared_ptr<LoadedKernel> kernel(new LoadedKernel);
  kernel->device_ = device;

  std::array<char, 8192> log{};
  int option_names[] = {cuda::kJitErrorLogBuffer, cuda::kJitErrorLogBytes};
  void* option_values[] = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  // PTX is text that must end in a NUL; machine code does not mind one.
  const std::string code(reinterpret_cast<const char*>(image.data()), image.size());
  const int status = cuda::with_relief(device, [&] {
    return driver.library_load_data.status(&kernel->library_, code.c_str(), option_names,
                                           option_values, 2, nullptr, nullptr, 0);
  });
  if (status != cuda::kSuccess && status != cuda::kErrorOutOfMemory && log[0] != '\0')
    fail(ErrorKind::compile, "the driver cannot load the kernel ", entry, " (", status, "):\n",
         log.data());
  cuda::check(status, join("loading the kernel ", entry, ": cuLibraryLoadData"));

  // Each may be what brings the module to the device.
  const auto call = [&](const auto& step, auto... arguments) {
    const int done = cuda::with_relief(device, [&] { return step.status(arguments...); });
    cuda::check(done, step.name);
  };
  CUkern_st* handle = nullptr;
  const std::string name(entry);
  call(driver.library_get_kernel, &handle, kernel->library_, name.c_str());
  call(driver.kernel_get_function, &kernel->function_, handle);
  // Load now: a first use inside a graph capture may not.
  if (driver.function_load.function) call(driver.function_load, kernel->function_);
  kernel->registers_ = attribute(driver, cuda::kFunctionRegisters, kernel->function_);
  kernel->max_threads_ = attribute(driver, cuda::kFunctionMaxThreads, kernel->function_);
  kernel->static_shared_bytes_ =
      size_t(attribute(driver, cuda::kFunctionSharedBytes, kernel->function_));
  kernel->local_bytes_ = size_t(attribute(driver, cuda::kFunctionLocalBytes, kernel->function_));
  const size_t limit = device_info(Device::cuda(device)).shared_bytes_per_block;
  if (limit > kernel->static_shared_bytes_)
    driver.function_set_attribute(kernel->function_, cuda::kFunctionMaxDynamicSharedBytes,
                                  int(limit - kernel->static_shared_bytes_));
  return kernel;
}

LoadedKernel::~LoadedKernel() {
  if (!library_ || stays_loaded()) return;
  cuda::quietly_on(device_, [this](const Driver& d) { d.library_unload.quiet(library_); });
}

void launch(const LoadedKernel& kernel, const LaunchConfig& config, const void* params,
            StreamRef stream, std::string_view what, std::source_location where) {
  const Dim3& grid = config.grid;
  if (grid.count() == 0 || grid.x > kMaxGridX || grid.y > kMaxGridYZ || grid.z > kMaxGridYZ)
    fail_grid(grid, what, where);
  if (stream.device() != kernel.device())
    fail({ErrorKind::value, where}, what, ": the kernel is loaded on cuda:", kernel.device(),
         " and the stream belongs to cuda:", stream.device(), "; use a stream of the same device");
  const DeviceGuard guard(kernel.device());

  // On the stack: shared attributes would be a race between two threads that launch.
  std::array<cuda::LaunchAttribute, 2> attributes;
  uint32_t used = 0;
  if (config.cluster.count() != 1) {
    attributes[used].id = cuda::kClusterDimension;
    attributes[used++].cluster = {config.cluster.x, config.cluster.y, config.cluster.z};
  }
  if (config.programmatic_dependent_launch) {
    attributes[used].id = cuda::kProgrammaticStreamSerialization;
    attributes[used++].enabled = 1;
  }
  const cuda::LaunchSetup setup{grid.x,
                                grid.y,
                                grid.z,
                                config.block.x,
                                config.block.y,
                                config.block.z,
                                config.shared_bytes,
                                stream.handle(),
                                attributes.data(),
                                used};
  void* arguments[] = {const_cast<void*>(params)};
  const Driver& driver = cuda::require_driver();
  const auto enqueue = [&] {
    return driver.launch_kernel.status(&setup, kernel.handle(), arguments, nullptr);
  };
  const auto start = [&] { return cuda::with_relief(kernel.device(), enqueue); };
  cuda::LaunchWatcher* const watcher = cuda::launch_watcher();
  const bool is_recorded = (watcher || !kernel.stays_loaded()) && stream.handle() &&
                           cuda::launch_is_recorded(driver, stream);
  // A graph holds no module, and nobody tells of its end.
  if (is_recorded) [[unlikely]]
    kernel.stay_loaded();
  const int status =
      !watcher
          ? start()
          : cuda::watched(*watcher,
                          {what, kernel.handle(), config.grid, config.block, stream, is_recorded},
                          start);
  if (status != cuda::kSuccess) [[unlikely]]
    fail_launch(status, kernel, config, what, where);
}

}  // namespace tensorcraft
