// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dims.hpp"

#include <cstdint>
#include <string_view>

namespace tensorcraft {

// The order of the axes in memory. Shapes are always in the order N, C, H, W (images), N, L, C
// (sequences), N, C, or batch, heads, sequence, head size (attention); only strides differ.
enum class TensorLayout : uint8_t { NCHW, NHWC, NC, NLC, BNHD };

// "NCHW", ...
std::string_view to_string(TensorLayout layout);
// Strides, in elements, of a dense tensor. Kind value if the shape has another rank than the
// layout.
Dims layout_strides(TensorLayout layout, const Dims& shape);

// How memory holds the operands of a product, as rows or columns of [m, k] and [k, n]; the hardware
// documents call them NN, NT, TN and TT.
enum class MemoryLayout { ROW_ROW, ROW_COL, COL_ROW, COL_COL };

}  // namespace tensorcraft
