// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/tensor_map.hpp"

#include "tensorcraft/cuda/tensor_map.hpp"
#include "tensorcraft/simt/tensor_map.hpp"

namespace tensorcraft::op {

namespace {

bool can_encode(const TiledTensor& tensor, Device device) {
  return tensor.address && (device.type == DeviceType::simt || device.index < cuda_device_count());
}
void give_an_address(TiledTensor& tensor) {
  alignas(16) static std::byte anywhere[16];
  if (!tensor.address) tensor.address = anywhere;
}

}  // namespace

TensorMap tensor_map(TiledTensor tensor, const DeviceInfo& info) {
  const Device device = info.device;
  if (can_encode(tensor, device))
    return device.is_cuda() ? cuda::encode_tiled(tensor, device.index) : simt::encode_tiled(tensor);
  give_an_address(tensor);
  check_tiled(tensor);
  return {};
}

TensorMap tensor_map(Im2colTensor tensor, const DeviceInfo& info) {
  const Device device = info.device;
  if (can_encode(tensor.images, device))
    return device.is_cuda() ? cuda::encode_im2col(tensor, device.index)
                            : simt::encode_im2col(tensor);
  give_an_address(tensor.images);
  check_im2col(tensor);
  return {};
}

void replace_address(TensorMap& map, void* address, Device device) {
  if (device.is_cuda()) return cuda::replace_address(map, address, device.index);
  if (auto tensor = simt::decode_tiled(map)) {
    tensor->address = address;
    map = simt::encode_tiled(*tensor);
  } else {
    auto windows = simt::decode_im2col(map);
    windows->images.address = address;
    map = simt::encode_im2col(*windows);
  }
}

TensorMap boxes_map(const Boxes& b, const DeviceInfo& device) {
  TiledTensor t{.dtype = b.dtype,
                .address = const_cast<void*>(b.data),
                .rank = 4,
                .swizzle = b.line ? TiledTensor::Swizzle::none : TiledTensor::Swizzle::bytes_128};
  t.dims[0] = uint64_t(b.length);
  t.box[0] = b.line ? uint32_t(b.line) : uint32_t(128 / dtype_bytes(b.dtype));
  for (size_t i = 0; i < 3; ++i) {
    if (b.sizes[i] == 0) return {};
    t.dims[i + 1] = b.strides[i] ? uint64_t(b.sizes[i]) : 1;
    t.strides[i] = b.strides[i] ? uint64_t(b.strides[i]) * dtype_bytes(b.dtype) : 16;
    t.box[i + 1] = uint32_t(b.box[i]);
  }
  return tensor_map(t, device);
}

}  // namespace tensorcraft::op
