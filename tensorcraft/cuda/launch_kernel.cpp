// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/launch_kernel.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/session.hpp"

namespace tensorcraft {

StreamRef LaunchKernel::resolve_device(dlpack::DLDevice device) {
  const Device resolved = from_dlpack(device);
  if (!resolved.is_cuda())
    fail(ErrorKind::value, "LaunchKernel: kernels run on CUDA devices, got ", resolved);
  return current_stream(resolved.index);
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
