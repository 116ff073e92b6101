// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/device/semiring.h"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of spmv() besides the arrays that it needs.
struct SpmvOptions {
  std::optional<TensorView> c = {};  // added, (rows)
  float alpha = 1;                   // factor of the product
  std::optional<float> beta = {};    // factor of c; none: 1 if c is given
  // An expression of x, an element of the vector, and a, the element of the matrix beside it.
  std::string_view combine = "x * a";
  Reduction reduce = Reduction::sum;      // what makes one number of those of a row
  int64_t longest_row = -1;               // csr_report() knows it; -1: not known
  std::optional<TensorView> starts = {};  // what csr_starts() gives; none: found for the call
  std::string_view variant = {};          // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};   // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out = alpha A x + beta c for a matrix of compressed rows: row r has the elements indptr[r] to
// indptr[r + 1] of data, in the columns that indices says, sorted or not. data: (stored) and x:
// (cols), float32, float16 or bfloat16; indices: (stored) and indptr: (rows + 1), int32 or int64;
// out and c: (rows). All of one float dtype, any strides. Sums are float32; results repeat to the
// bit. Instead of x * a and sums, any expression and sum, max, min or prod; a row without elements
// is 0, -infinity, infinity or 1. What lies outside the matrix counts for nothing. Kind value if
// beta is not 0 and there is no c.
void spmv(const TensorView& out, const TensorView& data, const TensorView& indices,
          const TensorView& indptr, const TensorView& x, const SpmvOptions& options = {});
Tensor spmv(const TensorView& data, const TensorView& indices, const TensorView& indptr,
            const TensorView& x, const SpmvOptions& options = {});

}  // namespace tensorcraft
