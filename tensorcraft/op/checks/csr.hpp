// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/device/csr.h"

#include <string_view>

// A matrix of compressed rows among the arguments of an operator.
namespace tensorcraft::op {

struct CsrView {
  TensorView data, indices, indptr;
  int64_t cols;
  int64_t rows() const { return indptr.size() - 1; }
  int64_t stored() const { return indices.size(); }
};

// Checks shapes and dtypes, which say nothing of what the arrays hold: data (stored), float32,
// float16 or bfloat16; indices (stored) and indptr (rows + 1), both int32 or both int64.
CsrView checked_csr(std::string_view op, const TensorView& data, const TensorView& indices,
                    const TensorView& indptr, int64_t cols);
// The parts of it: indptr alone, and with indices.
void check_offsets(std::string_view op, const TensorView& indptr);
void check_structure(std::string_view op, const TensorView& indices, const TensorView& indptr);

// Checks the starts of a merge path: int64, contiguous, one for each tile and one more.
void check_starts(std::string_view op, const TensorView& starts, const CsrView& a);

// As kernels are given it.
Csr csr_params(const CsrView& a);

// The bytes that a product reads of it.
double csr_bytes(const CsrView& a);

}  // namespace tensorcraft::op
