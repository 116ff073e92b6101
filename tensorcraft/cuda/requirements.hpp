// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/cuda/device.hpp"

#include <span>
#include <string>
#include <vector>

namespace tensorcraft {

// Whether one precision can run on a device, and what to tell the user when it cannot.
struct Feasibility {
  DType precision;        // that was asked for
  bool supported = true;  // by the device
  std::string message;    // empty when supported
};

// One answer for each precision asked for, in order; a device older than SM 80 supports none.
std::vector<Feasibility> validate_requirement_feasibility(const DeviceInfo& device,
                                                          std::span<const DType> precisions);

}  // namespace tensorcraft
