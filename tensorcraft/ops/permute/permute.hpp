// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of copy() and transpose() besides x.
struct MoveOptions {
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Arguments of permute_dims() besides x.
struct PermuteDimsOptions {
  std::optional<Dims> axes = {};         // each axis of x once, from -rank; none: in reverse
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Moves the same bits to another place: any dtype, any strides on both sides. out: shape and dtype
// of x; may be x itself, and otherwise shares no memory with it.
void copy(const TensorView& out, const TensorView& x, const MoveOptions& options = {});
Tensor copy(const TensorView& x, const MoveOptions& options = {});

// out[..., j, i] = x[..., i, j], in memory of its own. x: any dtype and strides, 2 dimensions or
// more (else kind value); out: dtype of x, its last two sizes exchanged; no memory in common. Bits
// move, so NaN payloads stay. TensorView::transpose exchanges two axes without moving anything.
void transpose(const TensorView& out, const TensorView& x, const MoveOptions& options = {});
Tensor transpose(const TensorView& x, const MoveOptions& options = {});

// Axis i of out is axis axes[i] of x, in memory of its own: {0, 2, 3, 1} makes NHWC of NCHW. Any
// dtype, rank and strides; kind value unless `axes` has each axis once. Otherwise as transpose().
// TensorView::permute gives the same without moving anything.
void permute_dims(const TensorView& out, const TensorView& x,
                  const PermuteDimsOptions& options = {});
Tensor permute_dims(const TensorView& x, const PermuteDimsOptions& options = {});

}  // namespace tensorcraft
