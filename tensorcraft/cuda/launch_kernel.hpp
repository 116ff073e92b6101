// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/check.hpp"
#include "tensorcraft/core/device.hpp"
#include "tensorcraft/core/dlpack.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/launch.hpp"

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace tensorcraft {

namespace kernels {
class LaunchKernel;  // NOLINT(bugprone-forward-declaration-namespace): the launchers' own
}

// A grid or a block as a caller has it: a number, a Dim3, or CUDA's dim3. Kind value for a number
// that 32 bits do not hold.
struct LaunchExtent {
  // In three directions.
  Dim3 size;

  // Implicit, so that a launch can be written with plain numbers.
  LaunchExtent() = default;
  LaunchExtent(std::integral auto x)
      : size{std::in_range<uint32_t>(x) ? uint32_t(x) : 0} {  // NOLINT
    if (!std::in_range<uint32_t>(x)) refuse();
  }
  LaunchExtent(uint32_t x, uint32_t y, uint32_t z = 1) : size{x, y, z} {}
  template <class T>
    requires requires(const T& t) { Dim3{t.x, t.y, t.z}; }
  LaunchExtent(const T& t) : size{t.x, t.y, t.z} {}  // NOLINT

 private:
  [[noreturn]] static void refuse();
};

// One launch in two steps: where and how, then what. An error names the line that made the object:
//   LaunchKernel(grid, block, stream)(kernel, params);
// A file that nvcc compiles launches its own functions so, on the stream that the arrays' framework
// works on:
//   LaunchKernel(blocks, threads, device.unwrap())(function, arguments...);
class LaunchKernel {
 public:
  // On a stream, on the current stream of a device, or as a configuration says.
  LaunchKernel(LaunchExtent grid, LaunchExtent block, StreamRef stream,
               uint32_t dynamic_shared_bytes = 0, DebugInfo where = {})
      : config_{.grid = grid.size, .block = block.size, .shared_bytes = dynamic_shared_bytes},
        stream_(stream),
        where_(where) {}
  LaunchKernel(LaunchExtent grid, LaunchExtent block, Device device,
               uint32_t dynamic_shared_bytes = 0, DebugInfo where = {})
      : LaunchKernel(grid, block, resolve_device(device), dynamic_shared_bytes, where) {}
  LaunchKernel(LaunchExtent grid, LaunchExtent block, dlpack::DLDevice device,
               uint32_t dynamic_shared_bytes = 0, DebugInfo where = {})
      : LaunchKernel(grid, block, resolve_device(device), dynamic_shared_bytes, where) {}
  LaunchKernel(LaunchExtent grid, const KernelConfig& config, int device = 0, DebugInfo where = {})
      : LaunchKernel(grid, config.block(), StreamRef(config.stream, device),
                     config.shared_memory_bytes, where) {}

  // More of the launch: blocks of a cluster; a start before the kernel in front of it has ended.
  LaunchKernel& cluster(Dim3 size) {
    config_.cluster = size;
    return *this;
  }
  LaunchKernel& programmatic_dependent_launch(bool enabled = true) {
    config_.programmatic_dependent_launch = enabled;
    return *this;
  }

  // The kernel's only argument is one struct, copied before the call returns.
  template <class Params>
  void operator()(const LoadedKernel& kernel, const Params& params) const {
    static_assert(std::is_trivially_copyable_v<Params>, "kernel parameters are copied bytewise");
    launch(kernel, config_, &params, stream_, "LaunchKernel", where_);
  }

#if defined(__CUDACC__)
  // A __global__ function of the file that nvcc compiles. Arguments become its parameters, and are
  // copied before the call returns. The file includes tensorcraft/kernels/launch.cuh, whose class
  // this is; CUDA files of load_jit need not. Throws std::runtime_error "FILE:LINE CUDA error:
  // ...".
  template <class Launcher = kernels::LaunchKernel, class... Parameters>
  void operator()(void (*function)(Parameters...),
                  const std::type_identity_t<Parameters>&... arguments) const {
    const DeviceGuard guard(stream_.device());
    const auto [grid, block, size, shared_bytes, dependent] = config_;
    Launcher launcher({grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, stream_.handle(),
                      shared_bytes, where_);
    if (size.count() > 1) launcher.cluster({size.x, size.y, size.z});
    if (dependent) launcher.programmatic_dependent_launch();
    launcher(function, arguments...);
  }
#endif

  // The stream this thread uses on a device: the one set with set_current_stream(), which is the
  // framework's if its arrays came in. Kind value for a device that is not CUDA.
  static StreamRef resolve_device(Device device);
  static StreamRef resolve_device(dlpack::DLDevice device);

 private:
  LaunchConfig config_;
  StreamRef stream_;
  DebugInfo where_;
};

// Throws "CUDA error: text" for a driver status other than success.
void RuntimeDeviceCheck(int status, DebugInfo where = {});
// Likewise for the first error that made CUDA unusable in this process, if there was one. There is
// no other to remember: a call that the driver refuses, a bad launch too, has thrown.
void RuntimeDeviceCheck(DebugInfo where = {});

}  // namespace tensorcraft
