// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/sparse/matrix.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/tensor_matcher.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/checks/csr.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/sparse/check.hpp"

#include <array>
#include <mutex>
#include <utility>

namespace tensorcraft {

// A matrix by one of its axes, with what products know of it.
struct Compressed {
  sparse::Arrays arrays;
  SparseAnalysis analysis;
  Tensor starts;
};

namespace {

// The CUDA work so far is done: what comes after may run on any stream.
void wait(Device device) {
  if (device.is_cuda()) synchronize(device);
}

Compressed analyzed(sparse::Arrays arrays, int64_t size, const sparse::Facts& facts) {
  const int64_t stored = arrays.indices.size();
  Tensor starts = csr_starts(arrays.indptr, {.stored = stored});
  wait(starts.device());
  return {std::move(arrays),
          {.rows = size, .stored = stored, .longest_row = facts.longest, .empty_rows = facts.empty},
          std::move(starts)};
}

sparse::Arrays owned(Tensor data, Tensor indices, Tensor indptr) {
  const auto all = std::make_shared<std::array<Tensor, 3>>(
      std::array{std::move(data), std::move(indices), std::move(indptr)});
  return {(*all)[0], (*all)[1], (*all)[2], all};
}

// Converts a matrix to the other axis, of which `other` is the size.
Compressed converted(const Compressed& from, int64_t other) {
  const sparse::Arrays& a = from.arrays;
  CsrArrays made = csr_transpose(a.data, a.indices, a.indptr, {.cols = other});
  sparse::Arrays arrays =
      owned(std::move(made.data), std::move(made.indices), std::move(made.indptr));
  const sparse::Facts facts = sparse::facts_of(arrays, from.analysis.rows);
  return analyzed(std::move(arrays), other, facts);
}

}  // namespace

// rows and cols are those of the matrix that was made first.
struct SparseMatrix::State {
  int64_t rows, cols;
  ForkSafeMutex mutex;
  std::unique_ptr<const Compressed> by_rows, by_columns;  // either is made from the other

  const Compressed& by(bool is_rows) {
    auto& wanted = is_rows ? by_rows : by_columns;
    const auto& other = is_rows ? by_columns : by_rows;
    {
      const std::lock_guard lock(mutex);
      if (wanted) return *wanted;
    }
    // Without the lock, since it is long; of two threads that do it the first one's stays.
    auto made = std::make_unique<const Compressed>(converted(*other, is_rows ? rows : cols));
    const std::lock_guard lock(mutex);
    if (!wanted) wanted = std::move(made);
    return *wanted;
  }
};

SparseMatrix::SparseMatrix(std::shared_ptr<State> state, SparseFormat format, bool is_transposed)
    : state_(std::move(state)), format_(format), is_transposed_(is_transposed) {}

SparseMatrix SparseMatrix::of(SparseFormat format, const TensorView& data,
                              const TensorView& indices, const TensorView& indptr, int64_t rows,
                              int64_t cols, std::shared_ptr<const void> owner,
                              const SparseOptions& options) {
  return at_line(options.where, [&] {
    const bool is_csr = format == SparseFormat::csr;
    const int64_t size = is_csr ? rows : cols, other = is_csr ? cols : rows;
    sparse::Arrays arrays = sparse::contiguous({data, indices, indptr, std::move(owner)}, is_csr);
    sparse::Facts facts = sparse::checked(arrays, size, other, is_csr, options.sum_duplicates);
    auto state = std::make_shared<State>();
    state->rows = rows;
    state->cols = cols;
    (is_csr ? state->by_rows : state->by_columns) =
        std::make_unique<const Compressed>(analyzed(std::move(arrays), size, facts));
    return SparseMatrix(std::move(state), format, false);
  });
}

SparseMatrix SparseMatrix::csr(Tensor data, Tensor indices, Tensor indptr, int64_t rows,
                               int64_t cols, const SparseOptions& options) {
  const sparse::Arrays a = owned(std::move(data), std::move(indices), std::move(indptr));
  return of(SparseFormat::csr, a.data, a.indices, a.indptr, rows, cols, a.owner, options);
}

SparseMatrix SparseMatrix::csc(Tensor data, Tensor indices, Tensor indptr, int64_t rows,
                               int64_t cols, const SparseOptions& options) {
  const sparse::Arrays a = owned(std::move(data), std::move(indices), std::move(indptr));
  return of(SparseFormat::csc, a.data, a.indices, a.indptr, rows, cols, a.owner, options);
}

SparseMatrix SparseMatrix::from_dense(const TensorView& x, SparseFormat format, DType index_dtype,
                                      std::source_location where) {
  return at_line(where, [&] {
    if (x.rank() != 2)
      fail(ErrorKind::value, "sparse.from_dense: x: expected a matrix, (rows, cols), got shape ",
           x.shape());
    const bool is_csr = format == SparseFormat::csr;
    const TensorView by_axis = is_csr ? x : x.transpose(0, 1);
    Tensor indptr = csr_offsets(by_axis, {.index_dtype = index_dtype});
    const int64_t stored = sparse::integers(indptr.slice(0, indptr.size() - 1, indptr.size()))[0];
    CsrElements made = csr_from_dense(by_axis, indptr, {.stored = stored});
    const sparse::Arrays a =
        owned(std::move(made.data), std::move(made.indices), std::move(indptr));
    return of(format, a.data, a.indices, a.indptr, x.shape(0), x.shape(1), a.owner);
  });
}

SparseFormat SparseMatrix::format() const { return format_; }
int64_t SparseMatrix::rows() const { return is_transposed_ ? state_->cols : state_->rows; }
int64_t SparseMatrix::cols() const { return is_transposed_ ? state_->rows : state_->cols; }

const Compressed& SparseMatrix::by(bool rows) const { return state_->by(rows != is_transposed_); }
const TensorView& SparseMatrix::data() const {
  return by(format_ == SparseFormat::csr).arrays.data;
}
const TensorView& SparseMatrix::indices() const {
  return by(format_ == SparseFormat::csr).arrays.indices;
}
const TensorView& SparseMatrix::indptr() const {
  return by(format_ == SparseFormat::csr).arrays.indptr;
}
const SparseAnalysis& SparseMatrix::analysis() const { return by(true).analysis; }
TensorView SparseMatrix::starts() const { return by(true).starts; }

SparseMatrix SparseMatrix::transpose() const {
  const bool is_csr = format_ == SparseFormat::csr;
  return SparseMatrix(state_, is_csr ? SparseFormat::csc : SparseFormat::csr, !is_transposed_);
}
SparseMatrix SparseMatrix::to_csr() const {
  by(true);
  return SparseMatrix(state_, SparseFormat::csr, is_transposed_);
}
SparseMatrix SparseMatrix::to_csc() const {
  by(false);
  return SparseMatrix(state_, SparseFormat::csc, is_transposed_);
}

Tensor SparseMatrix::to_dense() const {
  const bool is_csr = format_ == SparseFormat::csr;
  if (is_csr) return csr_to_dense(data(), indices(), indptr(), {.cols = cols()});
  Tensor out(dtype(), {rows(), cols()}, device());
  csr_to_dense(out.transpose(0, 1), data(), indices(), indptr(), {.cols = rows()});
  return out;
}

std::string to_string(const SparseMatrix& matrix) {
  return join(matrix.rows(), " x ", matrix.cols(), ", ", matrix.stored(), " stored, ",
              matrix.dtype(), ", ", matrix.format() == SparseFormat::csr ? "csr, " : "csc, ",
              matrix.index_dtype(), " on ", matrix.device());
}

namespace {

// The arrays of the rows, and options with what is known of them.
struct Rows {
  TensorView data, indices, indptr;
};
Rows rows_of(const SparseMatrix& a) {
  const SparseMatrix rows = a.to_csr();
  return {rows.data(), rows.indices(), rows.indptr()};
}
SpmvOptions with_knowledge(SpmvOptions options, const SparseMatrix& a) {
  options.longest_row = a.analysis().longest_row;
  options.starts = a.starts();
  return options;
}
SpmmOptions with_knowledge(SpmmOptions options, const SparseMatrix& a) {
  options.longest_row = a.analysis().longest_row;
  return options;
}

// Columns are those of the matrix: the operator takes them from x.
void check_rows_of_x(std::string_view op, const SparseMatrix& a, const TensorView& x,
                     std::source_location where) {
  if (x.rank() > 0 && x.shape(0) == a.cols()) return;
  fail({ErrorKind::value, where}, op, ": x: expected ", a.cols(),
       " elements along its first axis, the columns of the matrix, got shape ", x.shape());
}

}  // namespace

void spmv(const TensorView& out, const SparseMatrix& a, const TensorView& x, SpmvOptions options) {
  check_rows_of_x("sparse.spmv", a, x, options.where);
  const Rows rows = rows_of(a);
  spmv(out, rows.data, rows.indices, rows.indptr, x, with_knowledge(options, a));
}
Tensor spmv(const SparseMatrix& a, const TensorView& x, SpmvOptions options) {
  check_rows_of_x("sparse.spmv", a, x, options.where);
  const Rows rows = rows_of(a);
  return spmv(rows.data, rows.indices, rows.indptr, x, with_knowledge(options, a));
}
void spmm(const TensorView& out, const SparseMatrix& a, const TensorView& x, SpmmOptions options) {
  check_rows_of_x("sparse.spmm", a, x, options.where);
  const Rows rows = rows_of(a);
  spmm(out, rows.data, rows.indices, rows.indptr, x, with_knowledge(options, a));
}
Tensor spmm(const SparseMatrix& a, const TensorView& x, SpmmOptions options) {
  check_rows_of_x("sparse.spmm", a, x, options.where);
  const Rows rows = rows_of(a);
  return spmm(rows.data, rows.indices, rows.indptr, x, with_knowledge(options, a));
}

}  // namespace tensorcraft
