// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/checks/csr.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/tensor_matcher.hpp"

#include <limits>

namespace tensorcraft::op {

namespace {

void check_offsets(std::string_view op, const TensorView& indptr, SymbolicDType& integer) {
  SymbolicSize more_than_rows("rows + 1");
  TensorMatcher({more_than_rows})
      .with_any_strides()
      .with_dtype(integer)
      .verify(indptr, op, "indptr");
  if (indptr.size() == 0)
    fail(ErrorKind::value, op,
         ": indptr must have an element more than the matrix has rows, got none; a matrix without "
         "rows has [0]");
}

}  // namespace

void check_offsets(std::string_view op, const TensorView& indptr) {
  SymbolicDType integer({DType::int32, DType::int64});
  check_offsets(op, indptr, integer);
}

void check_structure(std::string_view op, const TensorView& indices, const TensorView& indptr) {
  SymbolicSize stored("stored");
  SymbolicDType integer({DType::int32, DType::int64});
  TensorMatcher({stored}).with_any_strides().with_dtype(integer).verify(indices, op, "indices");
  check_offsets(op, indptr, integer);
  if (indices.dtype() == DType::int32 && indices.size() > std::numeric_limits<int32_t>::max())
    fail(ErrorKind::value, op, ": indices: int32 counts below 2^31 stored elements, got ",
         indices.size(), "; use int64");
}

CsrView checked_csr(std::string_view op, const TensorView& data, const TensorView& indices,
                    const TensorView& indptr, int64_t cols) {
  check_structure(op, indices, indptr);
  SymbolicSize stored("stored");
  stored.set_value(indices.size());
  TensorMatcher({stored})
      .with_any_strides()
      .with_dtype({DType::float32, DType::float16, DType::bfloat16})
      .verify(data, op, "data");
  return {data, indices, indptr, cols};
}

void check_starts(std::string_view op, const TensorView& starts, const CsrView& a) {
  TensorMatcher({merge_tiles(a.rows(), a.stored()) + 1})
      .with_dtype({DType::int64})
      .verify(starts, op, "starts");
}

Csr csr_params(const CsrView& a) {
  return {.data = a.data.data(),
          .indices = a.indices.data(),
          .indptr = a.indptr.data(),
          .rows = a.rows(),
          .cols = a.cols,
          .stored = a.stored(),
          .data_stride = a.data.stride(0),
          .indices_stride = a.indices.stride(0),
          .indptr_stride = a.indptr.stride(0)};
}

double csr_bytes(const CsrView& a) {
  return double(a.data.nbytes()) + double(a.indices.nbytes()) + double(a.indptr.nbytes());
}

}  // namespace tensorcraft::op
