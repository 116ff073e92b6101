// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tiled_tensor.hpp"
#include "tensorcraft/device/tensor_map.h"

#include <optional>

namespace tensorcraft::simt {

// The map of a tensor in host memory for kernels on the SIMT device, by the driver's rules: kind
// value if one is broken.
TensorMap encode_tiled(const TiledTensor& tensor);
// What encode_tiled() put in; none if it came from elsewhere.
std::optional<TiledTensor> decode_tiled(const TensorMap& map);

}  // namespace tensorcraft::simt
