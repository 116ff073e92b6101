// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

// Sparse matrices of compressed rows: data (stored), indices (stored), the columns of them, and
// indptr (rows + 1), where rows begin; indices and indptr are int32 or int64. Of every array any
// strides. tc.sparse has matrices that keep and check all of it.
namespace tensorcraft {

// Arguments of the functions below besides the arrays that they need.
struct CsrOptions {
  int64_t cols = 0;                  // columns of the matrix
  int64_t stored = 0;                // elements that are stored
  DType index_dtype = DType::int32;  // of indices and indptr
  // Further outputs, written if given.
  std::optional<TensorView> data = {}, indices = {};
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The elements of a matrix and their columns.
struct CsrElements {
  Tensor data;     // (stored)
  Tensor indices;  // (stored)
};
// The three arrays of one.
struct CsrArrays {
  Tensor data;     // (stored)
  Tensor indices;  // (stored)
  Tensor indptr;   // (rows + 1)
};

// Each value is an index into an int64 report of five numbers about a matrix with so many columns:
// its longest row; its empty rows; and the first row of each fault, or the number of rows: it is
// not the next part of the stored elements; an index is outside the columns or not above the one
// before; an index is that before.
enum class CsrFact : int { longest_row, empty_rows, bad_offsets, bad_indices, repeated };
inline constexpr int64_t kCsrFacts = 5;
void csr_report(const TensorView& out, const TensorView& indices, const TensorView& indptr,
                const CsrOptions& options);
Tensor csr_report(const TensorView& indices, const TensorView& indptr, const CsrOptions& options);

// Computes `starts` for spmv() of a matrix with so many stored elements; int64.
void csr_starts(const TensorView& out, const TensorView& indptr, const CsrOptions& options);
Tensor csr_starts(const TensorView& indptr, const CsrOptions& options);

// From a matrix (rows, cols) of float32, float16 or bfloat16: indptr, whose last element says how
// many elements are stored, then the others of so many. All but +0 are stored, -0 and NaN too.
void csr_offsets(const TensorView& out, const TensorView& x, const CsrOptions& options = {});
Tensor csr_offsets(const TensorView& x, const CsrOptions& options = {});
void csr_from_dense(const TensorView& data, const TensorView& x, const TensorView& indptr,
                    const CsrOptions& options);
CsrElements csr_from_dense(const TensorView& x, const TensorView& indptr,
                           const CsrOptions& options);

// The matrix with its zeros. The bits of elements are moved; a row names a column once.
void csr_to_dense(const TensorView& out, const TensorView& data, const TensorView& indices,
                  const TensorView& indptr, const CsrOptions& options);
Tensor csr_to_dense(const TensorView& data, const TensorView& indices, const TensorView& indptr,
                    const CsrOptions& options);

// The matrix by compressed columns, which is the transposed one by compressed rows: each column in
// the order of rows. Results repeat to the bit.
void csr_transpose(const TensorView& indptr_out, const TensorView& data, const TensorView& indices,
                   const TensorView& indptr, const CsrOptions& options);
CsrArrays csr_transpose(const TensorView& data, const TensorView& indices, const TensorView& indptr,
                        const CsrOptions& options);

}  // namespace tensorcraft
