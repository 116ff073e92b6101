// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Combines an update with what its place holds; none: the update takes the place.
enum class ScatterReduction : int { none, add, multiply, max, min };

// Arguments of scatter() besides the arrays that it needs.
struct ScatterOptions {
  int64_t axis = -1;                                    // of x, from -rank
  ScatterReduction reduction = ScatterReduction::none;  // of updates that meet
  std::string_view variant = {};                        // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// A copy of x in which out[..., indices[..., j, ...], ...] is updates[..., j, ...]: what
// take_along_axis() reads, scatter() writes. x: any dtype and strides; indices: int32 or int64, the
// shape of x but along the axis; updates: dtype of x, the shape of indices or one that broadcasts
// to it; out: shape and dtype of x, and may be x itself, of which only the places named are written
// then. Where several updates name one place they come in the order of j: the last one stays, or
// all are combined with what x has there, floats in float32 and rounded once, integers wrapping
// (float32, float16, bfloat16, int32, int64). Results repeat to the bit. An index is in [-n, n) for
// an axis of n elements. Another is an error of kind index on a host device, where nothing is
// written then; a GPU, which cannot ask the host, leaves its update out.
void scatter(const TensorView& out, const TensorView& x, const TensorView& indices,
             const TensorView& updates, const ScatterOptions& options = {});
Tensor scatter(const TensorView& x, const TensorView& indices, const TensorView& updates,
               const ScatterOptions& options = {});

}  // namespace tensorcraft
