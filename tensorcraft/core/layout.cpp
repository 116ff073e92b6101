// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/layout.hpp"

#include "tensorcraft/core/error.hpp"

namespace tensorcraft {

std::string_view to_string(TensorLayout layout) {
  switch (layout) {
    case TensorLayout::NCHW:
      return "NCHW";
    case TensorLayout::NHWC:
      return "NHWC";
    case TensorLayout::NC:
      return "NC";
    case TensorLayout::NLC:
      return "NLC";
    case TensorLayout::BNHD:
      return "BNHD";
  }
  return "unknown";
}

Dims layout_strides(TensorLayout layout, const Dims& shape) {
  const int rank = int(to_string(layout).size());
  if (shape.rank() != rank)
    fail(ErrorKind::value, "layout ", to_string(layout), " needs a shape of ", rank,
         " dimensions, got ", shape);
  if (layout != TensorLayout::NHWC) return contiguous_strides(shape);
  const Dims memory = contiguous_strides({shape[0], shape[2], shape[3], shape[1]});
  return {memory[0], memory[3], memory[1], memory[2]};
}

}  // namespace tensorcraft
