// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dims.hpp"
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of mean, max, min, count_nonzero, any and all besides x.
struct ReduceOptions {
  std::optional<Dims> axis = {};         // which axes go, in any order; none: all of them
  bool keepdims = false;                 // they stay, with size 1
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Arguments of sum() and prod() besides x.
struct SumOptions {
  std::optional<Dims> axis = {};         // which axes go, in any order; none: all of them
  bool keepdims = false;                 // they stay, with size 1
  std::optional<DType> dtype = {};       // of the result; none: that of floats, int64 of others
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Arguments of argmax() and argmin() besides x.
struct ArgmaxOptions {
  std::optional<int64_t> axis = {};      // none: the index into all elements, row-major
  bool keepdims = false;                 // the axis stays, with size 1
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Arguments of var() and std() besides x.
struct VarOptions {
  std::optional<Dims> axis = {};         // which axes go, in any order; none: all of them
  bool keepdims = false;                 // they stay, with size 1
  float correction = 0;                  // the divisor is the number of elements less this
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// All take any shape and strides; out has the shape of x without the reduced axes, or with size 1
// in their place, and any strides. Floats are float32, float16 and bfloat16, computed in float32
// and rounded once; integers int8, int16, int32, int64 and uint8. Results repeat to the bit. An
// axis outside x is an error of kind axis, one named twice of kind value.

// Floats give their dtype, integers and bool int64, which wraps. `dtype` is another type of the
// result: a float, and of integers and bool an integer too, which keeps the low bits; kind type for
// any other. No elements give 0.
void sum(const TensorView& out, const TensorView& x, const SumOptions& options = {});
Tensor sum(const TensorView& x, const SumOptions& options = {});
// The product, whose dtypes are those of sum; integers are multiplied as floats if `dtype` is a
// float. Infinite or 0 only if the product of all is, whatever products of parts are. No elements
// give 1.
void prod(const TensorView& out, const TensorView& x, const SumOptions& options = {});
Tensor prod(const TensorView& x, const SumOptions& options = {});
// int64, of any of those dtypes: how many elements are not 0. NaN is not 0.
void count_nonzero(const TensorView& out, const TensorView& x, const ReduceOptions& options = {});
Tensor count_nonzero(const TensorView& x, const ReduceOptions& options = {});
// Floats only. No elements give NaN.
void mean(const TensorView& out, const TensorView& x, const ReduceOptions& options = {});
Tensor mean(const TensorView& x, const ReduceOptions& options = {});
// Floats and integers give their dtype; NaN if an element is. No elements are an error of kind
// value.
void max(const TensorView& out, const TensorView& x, const ReduceOptions& options = {});
Tensor max(const TensorView& x, const ReduceOptions& options = {});
void min(const TensorView& out, const TensorView& x, const ReduceOptions& options = {});
Tensor min(const TensorView& x, const ReduceOptions& options = {});
// int64: the index of the largest element, the first of equals; of the smallest. The first NaN, if
// there is one. No elements are an error of kind value.
void argmax(const TensorView& out, const TensorView& x, const ArgmaxOptions& options = {});
Tensor argmax(const TensorView& x, const ArgmaxOptions& options = {});
void argmin(const TensorView& out, const TensorView& x, const ArgmaxOptions& options = {});
Tensor argmin(const TensorView& x, const ArgmaxOptions& options = {});
// Floats only: the mean squared distance from the mean, by sums that do not cancel. If the
// correction is as large as the number of elements the divisor is 0: NaN or infinity.
void var(const TensorView& out, const TensorView& x, const VarOptions& options = {});
Tensor var(const TensorView& x, const VarOptions& options = {});
// Its square root.
void std(const TensorView& out, const TensorView& x, const VarOptions& options = {});
Tensor std(const TensorView& x, const VarOptions& options = {});
// bool, of any of those dtypes: is an element, are all elements not 0? NaN is not 0. Without
// elements any is false and all is true.
void any(const TensorView& out, const TensorView& x, const ReduceOptions& options = {});
Tensor any(const TensorView& x, const ReduceOptions& options = {});
void all(const TensorView& out, const TensorView& x, const ReduceOptions& options = {});
Tensor all(const TensorView& x, const ReduceOptions& options = {});

}  // namespace tensorcraft
