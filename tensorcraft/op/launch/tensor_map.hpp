// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/im2col_tensor.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/device/tensor_map.h"

#include <array>

namespace tensorcraft::op {

// The map of a tensor for the Params of a plan on this device. Planning needs neither memory nor a
// driver: if the address is null or the machine has no such GPU, the map is empty, and the plan can
// be explained and compiled but not launched. Kind value if check_tiled() refuses.
TensorMap tensor_map(TiledTensor tensor, const DeviceInfo& device);
// Likewise for windows over images; check_im2col() may refuse.
TensorMap tensor_map(Im2colTensor tensor, const DeviceInfo& device);
// A tensor as boxes of a line by `box` entries of the other dimensions, of strides in elements.
// A dimension along which memory is shared, by a stride of 0, has one entry.
struct Boxes {
  const void* data;
  DType dtype;
  int length;  // elements of a line in all
  std::array<int64_t, 3> sizes, strides;
  std::array<int, 3> box;
  int line = 0;  // elements of a box's line; 0: 128 bytes of them, swizzled
};
// The map of an empty tensor, of which nothing is copied, is zeros.
TensorMap boxes_map(const Boxes& boxes, const DeviceInfo& device);

// The address of a tensor of which a launch alone knows where it lies: in the plan's workspace, as
// a step's workspace_maps say.
inline void* workspace_address() { return reinterpret_cast<void*>(uintptr_t(1) << 20); }
// Makes it the map of a tensor elsewhere on this device that is otherwise the same.
void replace_address(TensorMap& map, void* address, Device device);

}  // namespace tensorcraft::op
