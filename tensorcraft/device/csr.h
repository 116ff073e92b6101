// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

// A matrix whose rows are compressed: row r has the elements indptr[r] to indptr[r + 1] of data, in
// the columns that indices says. Strides are in elements.
struct Csr {
  const void *data, *indices, *indptr;
  int64_t rows, cols, stored;  // stored: elements in memory
  int64_t data_stride, indices_stride, indptr_stride;
};

// The type that counts stored elements: as wide as the indices, and a step past the last stays in
// range.
template <class I>
using StoredCount = Select<sizeof(I) == 4, uint32_t, int64_t>;

// Where row r begins among the stored elements, whatever indptr holds; r may be the number of rows.
template <class I>
TC_HOST_DEVICE StoredCount<I> row_begin(const Csr& a, int64_t r) {
  const I at = static_cast<const I*>(a.indptr)[r * a.indptr_stride];
  return StoredCount<I>(at < 0 ? 0 : int64_t(at) < a.stored ? int64_t(at) : a.stored);
}

// Whether a column is one of the matrix: what lies outside counts for nothing.
template <class I>
TC_HOST_DEVICE bool is_column(const Csr& a, I column) {
  return column >= 0 && int64_t(column) < a.cols;
}

// Merge path: the ends of rows and the stored elements are two sorted lists, and merging them takes
// rows + stored steps. Equal parts of the steps are equal work, whatever the rows are like.
inline constexpr int kMergeTile = 2048;  // steps of one block
TC_HOST_DEVICE constexpr int64_t merge_tiles(int64_t rows, int64_t stored) {
  return div_ceil(rows + stored, int64_t(kMergeTile));
}

// How many rows have ended after `steps` steps, which are at most rows + stored.
template <class I>
TC_HOST_DEVICE int64_t rows_before(const Csr& a, int64_t steps) {
  int64_t low = steps > a.stored ? steps - a.stored : 0, high = steps < a.rows ? steps : a.rows;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (int64_t(row_begin<I>(a, middle + 1)) < steps - middle)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace tensorcraft
