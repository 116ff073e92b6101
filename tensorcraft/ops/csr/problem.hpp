// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/checks/csr.hpp"
#include "tensorcraft/ops/csr/params.h"

#include <optional>

namespace tensorcraft::kernel::csr {

// A checked call of any operator of the folder: what it reads and writes of a matrix. data: also
// the facts of a report and the starts of a merge path.
struct Problem {
  int64_t rows = 0, cols = 0, stored = 0;
  std::optional<TensorView> data_in, indices_in, indptr_in, dense;
  std::optional<TensorView> data, indices, indptr;
  DType index = DType::int32;
};

// Host variants: `cpu` has elements of one size, `reference` any tensor element by element.
void report_cpu(const Problem& q);
void report_reference(const Problem& q);
void starts_cpu(const Problem& q);
void starts_reference(const Problem& q);
void offsets_cpu(const Problem& q);
void offsets_reference(const Problem& q);
void from_dense_cpu(const Problem& q);
void from_dense_reference(const Problem& q);
void to_dense_cpu(const Problem& q);
void to_dense_reference(const Problem& q);
void transpose_cpu(const Problem& q);
void transpose_reference(const Problem& q);

}  // namespace tensorcraft::kernel::csr
