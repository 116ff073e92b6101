// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/check.hpp"
#include "tensorcraft/core/dlpack.hpp"
#include "tensorcraft/cuda/launch.hpp"

#include <type_traits>

namespace tensorcraft {

// One launch in two steps: where and how, then what. An error names the line that made the object:
//   LaunchKernel(grid, block, stream)(kernel, params);
class LaunchKernel {
 public:
  // On a stream, on the current stream of a device, or as a configuration says.
  LaunchKernel(Dim3 grid, Dim3 block, StreamRef stream, uint32_t dynamic_shared_bytes = 0,
               DebugInfo where = {})
      : config_{.grid = grid, .block = block, .shared_bytes = dynamic_shared_bytes},
        stream_(stream),
        where_(where) {}
  LaunchKernel(Dim3 grid, Dim3 block, dlpack::DLDevice device, uint32_t dynamic_shared_bytes = 0,
               DebugInfo where = {})
      : LaunchKernel(grid, block, resolve_device(device), dynamic_shared_bytes, where) {}
  LaunchKernel(Dim3 grid, const KernelConfig& config, int device = 0, DebugInfo where = {})
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

  // The stream this thread uses on a device: the one set with set_current_stream(), which is the
  // framework's if its arrays came in. Kind value for a device that is not CUDA.
  static StreamRef resolve_device(dlpack::DLDevice device);

 private:
  LaunchConfig config_;
  StreamRef stream_;
  DebugInfo where_;
};

// Throws "CUDA error: text" for a driver status other than success.
void RuntimeDeviceCheck(int status, DebugInfo where = {});
// The same for the first error that made CUDA unusable in this process, if there was one. There is
// no other to remember: a call that the driver refuses, a bad launch too, has thrown.
void RuntimeDeviceCheck(DebugInfo where = {});

}  // namespace tensorcraft
