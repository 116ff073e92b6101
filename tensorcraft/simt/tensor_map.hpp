// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/im2col_tensor.hpp"
#include "tensorcraft/device/tensor_map.h"

#include <optional>

namespace tensorcraft::simt {

// The map of a tensor in host memory for kernels on the emulator, by the driver's rules: kind
// value if one is broken.
TensorMap encode_tiled(const TiledTensor& tensor);
TensorMap encode_im2col(const Im2colTensor& tensor);
// These return what encode_tiled() or encode_im2col() put in; none if it came from elsewhere.
std::optional<TiledTensor> decode_tiled(const TensorMap& map);
std::optional<Im2colTensor> decode_im2col(const TensorMap& map);

}  // namespace tensorcraft::simt
