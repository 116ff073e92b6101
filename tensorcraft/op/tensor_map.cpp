// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/tensor_map.hpp"

#include "tensorcraft/cuda/tensor_map.hpp"
#include "tensorcraft/simt/tensor_map.hpp"

namespace tensorcraft::op {

TensorMap tensor_map(TiledTensor tensor, const DeviceInfo& info) {
  const Device device = info.device;
  const bool can_encode = device.type == DeviceType::simt || device.index < cuda_device_count();
  if (tensor.address && can_encode)
    return device.is_cuda() ? cuda::encode_tiled(tensor, device.index) : simt::encode_tiled(tensor);
  alignas(16) static std::byte anywhere[16];
  if (!tensor.address) tensor.address = anywhere;
  check_tiled(tensor);
  return {};
}

void replace_address(TensorMap& map, void* address, Device device) {
  if (device.is_cuda()) return cuda::replace_address(map, address, device.index);
  auto tensor = simt::decode_tiled(map);
  tensor->address = address;
  map = simt::encode_tiled(*tensor);
}

}  // namespace tensorcraft::op
