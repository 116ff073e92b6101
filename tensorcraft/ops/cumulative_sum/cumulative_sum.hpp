// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of cumulative_sum() and cumulative_prod() besides the arrays that they need.
struct CumulativeSumOptions {
  std::optional<int64_t> axis = {};      // along which; may be left out for one dimension
  std::optional<DType> dtype = {};       // of the result; none: that of floats, int64 of integers
  bool include_initial = false;          // a 0 comes first, before products a 1
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out[i] = x[0] + ... + x[i] along an axis. x: any strides, rank at least 1; float32, float16 and
// bfloat16 are added in float32, rounded once, and give their dtype; int8, int16, int32, int64 and
// uint8 give int64, which wraps. `dtype` is another type of the result: a float, and of integers an
// integer too, which keeps the low bits; kind type for any other. out: shape of x, or one more
// along the axis; it may be exactly x. Results repeat to the bit. Kind index for an axis outside x,
// value if x has several axes and none is given.
void cumulative_sum(const TensorView& out, const TensorView& x,
                    const CumulativeSumOptions& options = {});
Tensor cumulative_sum(const TensorView& x, const CumulativeSumOptions& options = {});

// Computes x[0] * ... * x[i] likewise. Floats are multiplied from x[0] on, so that a product that
// exceeds float32 stays infinite; integers and bool give int64, or are multiplied as float32 if
// `dtype` is a float.
void cumulative_prod(const TensorView& out, const TensorView& x,
                     const CumulativeSumOptions& options = {});
Tensor cumulative_prod(const TensorView& x, const CumulativeSumOptions& options = {});

}  // namespace tensorcraft
