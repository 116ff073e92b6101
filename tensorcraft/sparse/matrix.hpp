// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/ops/spmm/spmm.hpp"
#include "tensorcraft/ops/spmv/spmv.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <memory>
#include <string>

namespace tensorcraft {

// By which axis a matrix is compressed: rows or columns.
enum class SparseFormat : int { csr, csc };

// A product knows this of the rows of a matrix.
struct SparseAnalysis {
  // How many there are, and how many elements they store.
  int64_t rows = 0, stored = 0;
  // The most elements of one, and how many have none.
  int64_t longest_row = 0, empty_rows = 0;
  double mean_row() const { return rows ? double(stored) / double(rows) : 0; }
  // How much longer the longest row is than the mean; 0 if nothing is stored.
  double skew() const { return stored ? double(longest_row) / mean_row() : 0; }
};

// How a matrix is made.
struct SparseOptions {
  // A column that a row names more than once gets the sum, once; else it is an error.
  bool sum_duplicates = false;
  std::source_location where = std::source_location::current();  // the line that errors name
};

// A sparse matrix that was checked when it was made: every row (of csc: column) has the indices of
// its elements in ascending order, once each, inside the matrix. It never changes, and neither may
// the arrays that it was made of. Copies share everything, and what one of them finds out, such as
// the other format, the others know. Any thread may use it.
class SparseMatrix {
 public:
  // From the three arrays (ops/csr/csr.hpp says what they hold); csc: of columns. Kind value, with
  // the row and the index, if they are no such matrix. Waits for the device.
  static SparseMatrix csr(Tensor data, Tensor indices, Tensor indptr, int64_t rows, int64_t cols,
                          const SparseOptions& options = {});
  static SparseMatrix csc(Tensor data, Tensor indices, Tensor indptr, int64_t rows, int64_t cols,
                          const SparseOptions& options = {});
  // Likewise from arrays that `owner` keeps; what is not contiguous is copied.
  static SparseMatrix of(SparseFormat format, const TensorView& data, const TensorView& indices,
                         const TensorView& indptr, int64_t rows, int64_t cols,
                         std::shared_ptr<const void> owner, const SparseOptions& options = {});
  // All elements of a matrix but +0: -0 and NaN are stored. Waits for the device.
  static SparseMatrix from_dense(const TensorView& x, SparseFormat format = SparseFormat::csr,
                                 DType index_dtype = DType::int32,
                                 std::source_location where = std::source_location::current());

  // These describe the matrix. The arrays are those of its format; they live as long as any copy.
  SparseFormat format() const;
  int64_t rows() const;
  int64_t cols() const;
  int64_t stored() const { return data().size(); }
  DType dtype() const { return data().dtype(); }
  DType index_dtype() const { return indices().dtype(); }
  Device device() const { return data().device(); }
  const TensorView& data() const;
  const TensorView& indices() const;
  const TensorView& indptr() const;
  // Describes the rows, by which products choose. A csc matrix is converted for it, once.
  const SparseAnalysis& analysis() const;
  // Returns the `starts` of the rows that spmv() takes.
  TensorView starts() const;

  // The transposed matrix, which shares the arrays: of csr it is csc.
  SparseMatrix transpose() const;
  // These return the same matrix in a format; converted once, and kept.
  SparseMatrix to_csr() const;
  SparseMatrix to_csc() const;
  Tensor to_dense() const;

 private:
  struct State;
  explicit SparseMatrix(std::shared_ptr<State> state, SparseFormat format, bool is_transposed);
  const struct Compressed& by(bool rows) const;
  std::shared_ptr<State> state_;
  SparseFormat format_;
  bool is_transposed_;  // rows of this matrix are columns of the state
};

// "2 x 3, 4 stored, float32, csr, int32 on cpu".
std::string to_string(const SparseMatrix& matrix);

// spmv() and spmm() of a matrix, by what it knows of itself; options.longest_row and starts are its
// own. A csc matrix is converted once; results repeat to the bit.
void spmv(const TensorView& out, const SparseMatrix& a, const TensorView& x,
          SpmvOptions options = {});
Tensor spmv(const SparseMatrix& a, const TensorView& x, SpmvOptions options = {});
void spmm(const TensorView& out, const SparseMatrix& a, const TensorView& x,
          SpmmOptions options = {});
Tensor spmm(const SparseMatrix& a, const TensorView& x, SpmmOptions options = {});

}  // namespace tensorcraft
