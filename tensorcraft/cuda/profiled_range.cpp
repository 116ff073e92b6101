// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/profiled_range.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"

namespace tensorcraft::cuda {

namespace {

// A refusal says that no profiler is there.
void tell(const Call<>& call) {
  if (call.function) call.function();
}

}  // namespace

ProfiledRange::ProfiledRange(int device) : device_(device) {
  const DeviceGuard guard(device_);
  tell(require_driver().profiler_start);
}

ProfiledRange::~ProfiledRange() {
  if (!usable()) return;
  const DeviceGuard guard(device_);
  tell(require_driver().profiler_stop);
}

}  // namespace tensorcraft::cuda
