// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/launch_kernel.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/session.hpp"

namespace tensorcraft {

void LaunchExtent::refuse() {
  fail(ErrorKind::value,
       "LaunchKernel: a number of blocks or threads is negative or beyond 2^32 - 1; an axis of a "
       "grid has 1 to 2147483647 blocks");
}

StreamRef LaunchKernel::resolve_device(Device device) {
  if (!device.is_cuda())
    fail(ErrorKind::value, "LaunchKernel: kernels run on CUDA devices, got ", device);
  return current_stream(device.index);
}

StreamRef LaunchKernel::resolve_device(dlpack::DLDevice device) {
  return resolve_device(from_dlpack(device));
}

void RuntimeDeviceCheck(int status, DebugInfo where) {
  if (status != cuda::kSuccess) cuda::fail_with("CUDA error: ", status, where);
}

void RuntimeDeviceCheck(DebugInfo where) {
  const cuda::Session* now = cuda::opened_session();
  if (now && now->lost.load(std::memory_order_acquire))
    fail({ErrorKind::device_lost, where}, "CUDA error: ", now->first_cause);
}

}  // namespace tensorcraft
