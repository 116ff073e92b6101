// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/number.hpp"
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// How much there is before and after each axis; one entry stands for every axis.
struct Margins {
  Dims before;  // elements before each axis
  Dims after;   // elements after it
};

// Arguments of pad() besides x.
struct PadOptions {
  Margins pad_width = {};                // elements before and after each axis, or every axis
  Number value = int64_t(0);             // of the new elements, converted as fill() does
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// x with a margin of one value: out[before + i] = x[i] on every axis. x: any dtype, rank and
// strides; its bits are copied. out: dtype of x, each size longer by the two widths of its axis; no
// memory in common. The widths are one entry for every axis or one for each; another number of them
// is of kind type, a negative width or a size that 64 bits do not count of kind value.
void pad(const TensorView& out, const TensorView& x, const PadOptions& options);
Tensor pad(const TensorView& x, const PadOptions& options);

}  // namespace tensorcraft
