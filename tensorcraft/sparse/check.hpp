// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

#include <memory>
#include <vector>

// Checks once what holds of every sparse matrix. Not installed.
namespace tensorcraft::sparse {

// The arrays of a matrix by one of its axes, and who keeps them.
struct Arrays {
  TensorView data, indices, indptr;
  std::shared_ptr<const void> owner;
};

// Says what was found of the lengths along the axis.
struct Facts {
  int64_t longest, empty;
};

// Integers of any device.
std::vector<int64_t> integers(const TensorView& t);

// Checks shapes, dtypes and devices, and copies what is not contiguous. is_csr: the axis is rows.
Arrays contiguous(Arrays arrays, bool is_csr);

// The facts of arrays that are known to be right; `other` is the size of the axis that indices
// count.
Facts facts_of(const Arrays& arrays, int64_t other);

// Returns the facts of any arrays; kind value, with the row and the index, for what a matrix is
// not. Indices that follow themselves are an error, or with `sums` become one element, in new
// arrays.
Facts checked(Arrays& arrays, int64_t size, int64_t other, bool is_csr, bool sums);

}  // namespace tensorcraft::sparse
