// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/device/activation.h"
#include "tensorcraft/op/checks/gate.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

// The operators of this folder describe their results alike with these.
namespace tensorcraft::kernel::gemm {

// The dtypes of results: that of a, float32, and of 16 bits if a is; of float8 the wider ones.
inline std::span<const DType> result_dtypes(const TensorView& a) {
  static constexpr DType kFloats[] = {DType::float32, DType::float16, DType::bfloat16};
  return std::span(kFloats).first(a.dtype() == DType::float32 ? 1 : 3);
}

inline DType result_dtype(std::string_view op, const TensorView& a, std::optional<DType> wanted) {
  const bool is_narrow = dtype_bytes(a.dtype()) == 1;
  const DType dtype = wanted.value_or(is_narrow ? DType::bfloat16 : a.dtype());
  const auto all = result_dtypes(a);
  if (is_narrow && std::ranges::find(all, dtype) == all.end())
    fail(ErrorKind::type, op, ": out_dtype of ", a.dtype(),
         " operands must be float32, float16 or bfloat16, got ", dtype);
  if (dtype != a.dtype() && std::ranges::find(all, dtype) == all.end())
    fail(ErrorKind::type, op, ": out_dtype must be ", a.dtype(),
         all.size() > 1 ? " (the dtype of a), another of 16 bits, or float32, got "
                        : " (the dtype of a) or float32, got ",
         dtype);
  return dtype;
}

// The columns of the result of so many columns of b.
inline int64_t result_columns(std::string_view op, int64_t columns, Gate gated) {
  if (gated == Gate::none) return columns;
  if (columns % 2)
    fail(ErrorKind::value, op,
         ": b: gated needs an even number of columns, first the gates and then as many others, "
         "got ",
         columns);
  return columns / 2;
}

inline Activation activation_of(Gate gate) {
  constexpr Activation kAll[] = {Activation::none, Activation::silu, Activation::gelu,
                                 Activation::gelu_tanh};
  return kAll[size_t(gate)];
}

}  // namespace tensorcraft::kernel::gemm
