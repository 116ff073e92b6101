// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of take() besides the arrays that it needs.
struct TakeOptions {
  std::optional<int64_t> axis = {};      // of x, from -rank; none: x has one dimension
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Arguments of take_along_axis() besides the arrays that it needs.
struct TakeAlongAxisOptions {
  int64_t axis = -1;                     // of x, from -rank
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out[..., i..., :] = x[..., indices[i...], :] along one axis. x: any dtype and strides; indices:
// int32 or int64, any shape, which takes the place of the axis in out; dtype of x; the bits are
// copied. An index is in [-n, n) for an axis of n elements, counted from the end if it is
// negative. Another is an error of kind index on a host device, before anything is written; a GPU,
// which cannot ask the host, gives NaN for it, and 0 if the dtype has none; nothing outside x is
// read.
void take(const TensorView& out, const TensorView& x, const TensorView& indices,
          const TakeOptions& options = {});
Tensor take(const TensorView& x, const TensorView& indices, const TakeOptions& options = {});

// out[..., i, ...] = x[..., indices[..., i, ...], ...]: an index for each element of out. indices
// and out have the shape of x but along the axis; everything else as take().
void take_along_axis(const TensorView& out, const TensorView& x, const TensorView& indices,
                     const TakeAlongAxisOptions& options = {});
Tensor take_along_axis(const TensorView& x, const TensorView& indices,
                       const TakeAlongAxisOptions& options = {});

}  // namespace tensorcraft
