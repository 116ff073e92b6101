// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

// Tensors one after another: made of copies, one for each tensor on one stream, so the variants
// are those of copy().
namespace tensorcraft {

// Arguments of concat() and stack() besides the arrays.
struct JoinOptions {
  int64_t axis = 0;                      // of the result, from -rank
  std::string_view variant = {};         // of copy, by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out: the arrays one after another along an axis that they have. One dtype, one device, any
// strides; shapes equal but along the axis. Kind value for no array, for rank 0, for another shape
// or for memory that out shares with any of them, kind type for another dtype; nothing is written
// then. Bits move.
void concat(const TensorView& out, std::span<const TensorView> arrays,
            const JoinOptions& options = {});
Tensor concat(std::span<const TensorView> arrays, const JoinOptions& options = {});

// Joins likewise along a new axis of the result; all shapes equal.
void stack(const TensorView& out, std::span<const TensorView> arrays,
           const JoinOptions& options = {});
Tensor stack(std::span<const TensorView> arrays, const JoinOptions& options = {});

// x in `sections` parts of one size along an axis, as views: nothing is copied. Kind value unless
// `sections` is positive and divides the axis.
std::vector<TensorView> split(const TensorView& x, int64_t sections, int64_t axis = 0,
                              std::source_location where = std::source_location::current());
// x cut before each index, as views. Indices count from the end where they are negative, and
// end at the axis: a part may be empty.
std::vector<TensorView> split(const TensorView& x, std::span<const int64_t> indices,
                              int64_t axis = 0,
                              std::source_location where = std::source_location::current());

}  // namespace tensorcraft
