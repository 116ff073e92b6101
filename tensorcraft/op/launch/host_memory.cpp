// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/host_memory.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/memory.hpp"

namespace tensorcraft::op {

Device reaching_device(std::span<const TensorView> tensors) {
  const auto found = std::ranges::find_if(
      tensors, [](const TensorView& t) { return t.device() != Device::cpu(); });
  return found == tensors.end() ? Device::cpu() : found->device();
}

bool is_pageable(const TensorView& t, Device device) {
  if (t.device() != Device::cpu() || !device.is_cuda() || !t.data() || t.size() == 0) return false;
  return !cuda::device_address(t.data(), device.index);
}

void refuse_pageable(const TensorView& t, Device device, std::string_view op,
                     std::string_view name) {
  fail(ErrorKind::value, op, ": ", name, ": ", device,
       " cannot reach the memory of the host where ", t,
       " lies: it is not page-locked; make it with tc.memory.pinned(), or move the tensor with "
       ".to(\"",
       device, "\")");
}

TensorView reached(const TensorView& t, Device device) {
  if (t.device() != Device::cpu() || device == Device::cpu()) return t;
  const void* data = t.data();
  if (device.is_cuda() && data && t.size() > 0)
    if (const void* const theirs = cuda::device_address(data, device.index)) data = theirs;
  return t.at(data, device);
}

}  // namespace tensorcraft::op
