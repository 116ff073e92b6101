// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/im2col_tensor.hpp"
#include "tensorcraft/device/tensor_map.h"

namespace tensorcraft::cuda {

using tensorcraft::TensorMap;
using tensorcraft::TiledTensor;
using Swizzle = TiledTensor::Swizzle;
using L2Promotion = TiledTensor::L2Promotion;

// Kind value, with the rule that is broken, before the driver is asked; float8 and int8 move as
// bytes. `device` is the CUDA device whose copy engine will use the map.
TensorMap encode_tiled(const TiledTensor& tensor, int device = 0);
// Likewise for windows over images.
TensorMap encode_im2col(const Im2colTensor& tensor, int device = 0);
// Makes it the map of a tensor elsewhere, at a multiple of 16 bytes, that is otherwise the same.
void replace_address(TensorMap& map, void* address, int device);

}  // namespace tensorcraft::cuda
