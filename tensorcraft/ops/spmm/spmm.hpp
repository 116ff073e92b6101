// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/device/semiring.h"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of spmm() besides the arrays that it needs.
struct SpmmOptions {
  std::optional<TensorView> c = {};  // added, (rows, n)
  float alpha = 1;                   // factor of the product
  std::optional<float> beta = {};    // factor of c; none: 1 if c is given
  // An expression of x, an element of the dense matrix, and a, the element of the sparse one beside
  // it.
  std::string_view combine = "x * a";
  Reduction reduce = Reduction::sum;     // what makes one number of those of a row
  int64_t longest_row = -1;              // csr_report() knows it; -1: not known
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out = alpha A x + beta c, as spmv() for each column of x. x: (cols, n) and out, c: (rows, n), any
// strides, so row-major or column-major.
void spmm(const TensorView& out, const TensorView& data, const TensorView& indices,
          const TensorView& indptr, const TensorView& x, const SpmmOptions& options = {});
Tensor spmm(const TensorView& data, const TensorView& indices, const TensorView& indptr,
            const TensorView& x, const SpmmOptions& options = {});

}  // namespace tensorcraft
