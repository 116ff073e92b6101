// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_matcher.hpp"
#include "tensorcraft/ops/gemm/gemm.hpp"
#include "tensorcraft/ops/gemm/params.h"

#include <optional>
#include <span>

namespace tensorcraft::kernel::gemm {

struct Problem;

// Is it one of the operands' dtypes of 8 bits?
bool is_float8(DType dtype);
bool is_byte(DType dtype);

// The dtypes of results: those of result.hpp, and of 8 bits.
std::span<const DType> product_dtypes(DType operand);
// The one that the call asks for, or the default.
DType product_dtype(const TensorView& a, std::optional<DType> wanted);

// The scales of a call as Problem has them, and what they make of sums of float8.
struct Scales {
  std::optional<TensorView> a, b;
  Promotion promotion;
};
Scales scales_of(const GemmOptions& options, DType dtype, SymbolicSize& m, SymbolicSize& n,
                 int64_t k);

// Fails if the dtype of the result is int32 and the call asks for more than sums, or if it has 8
// bits and the call adds matrices of such.
void check_result(DType result, const GemmOptions& options);
// The factor of a result of 8 bits, as Problem has it.
std::optional<TensorView> out_scale_of(DType result, const GemmOptions& options);
// The zero points of a call as Problem has them.
struct Zeros {
  std::optional<TensorView> a, b;
};
Zeros zeros_of(const GemmOptions& options, DType dtype, SymbolicSize& m, SymbolicSize& n);
// May float32 operands be rounded to tf32?
bool may_round(const GemmOptions& options);
// Fails if a gated product has what it cannot.
void check_gate(const GemmOptions& options);
void check_bias(const std::optional<TensorView>& bias, SymbolicSize& m, SymbolicSize& n,
                DType operand, DType result);

// Merges batch dimensions that the strides of all matrices let be one, and drops those of size 1.
void merge_batch(Problem& q);

}  // namespace tensorcraft::kernel::gemm
