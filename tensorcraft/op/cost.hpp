// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/checks/tensors.hpp"
#include "tensorcraft/op/explanation.hpp"
#include "tensorcraft/op/variant.hpp"

// How long the work of a call takes at least.
namespace tensorcraft::op {

// The work of moving every tensor once.
Cost moving_cost(const NamedTensors& outputs, const NamedTensors& inputs);
// The least time in microseconds that the device's peaks allow; 0 if they are not known.
double floor_us(const Cost& cost, const DeviceInfo& device, DType dtype);
// Adds floor_us, and to each variant of kernels the time that bytes and operations take at the
// device's peaks: those of the units it computes with, by whole waves of its blocks.
void add_estimates(Explanation& e, const DeviceInfo& device, DType dtype);

}  // namespace tensorcraft::op
