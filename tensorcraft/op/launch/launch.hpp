// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/device.hpp"
#include "tensorcraft/cuda/stream.hpp"
#include "tensorcraft/op/launch/plan.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft::op {

// The stream a call runs on.
StreamRef resolve_stream(const std::optional<StreamRef>& given, Device device);
// Compiles if needed and enqueues; on the emulator runs to the end.
void launch_plan(const Plan& plan, Device device, StreamRef stream, std::string_view op);

}  // namespace tensorcraft::op
