// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of softmax() and log_softmax() besides the arrays that they need.
struct SoftmaxOptions {
  int64_t axis = -1;                     // whose elements together sum to 1
  float scale = 1;                       // multiplies x first
  std::optional<TensorView> mask = {};   // broadcast to x: see below
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Arguments of logsumexp() besides the arrays that it needs.
struct LogSumExpOptions {
  int64_t axis = -1;                     // whose elements are summed
  bool keepdims = false;                 // the axis stays, with one element
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out = exp(y - max) / sum(exp(y - max)) along the axis with y = x scale + mask. x: any shape and
// strides; float32, float16 or bfloat16; computed in float32. out: shape and dtype of x; may be x
// itself. A mask broadcasts to the shape of x. One of bool hides what is false: it counts for
// nothing, NaN included, and gets 0; a row of which nothing but -inf is left is 0. One of float32,
// or of the dtype of x, is added. Without a bool mask -inf gives 0, and a row of nothing but -inf
// becomes NaN; so does every row with a NaN or +inf.
void softmax(const TensorView& out, const TensorView& x, const SoftmaxOptions& options = {});
Tensor softmax(const TensorView& x, const SoftmaxOptions& options = {});
// out = log(softmax(x)), without rounding in between: y - max - log(sum(exp(y - max))). What is
// hidden gets -inf, as does a row of which nothing is left; the rest as softmax().
void log_softmax(const TensorView& out, const TensorView& x, const SoftmaxOptions& options = {});
Tensor log_softmax(const TensorView& x, const SoftmaxOptions& options = {});
// out = log(sum(exp(x))) along the axis, however large x is. out: dtype of x, its shape without the
// axis, or with one element of it where keepdims. A row of nothing but -inf, or of no elements,
// gives -inf, one with +inf gives +inf, one with a NaN gives NaN. Kind unsupported for 2^30
// elements or more along the axis.
void logsumexp(const TensorView& out, const TensorView& x, const LogSumExpOptions& options = {});
Tensor logsumexp(const TensorView& x, const LogSumExpOptions& options = {});

}  // namespace tensorcraft
