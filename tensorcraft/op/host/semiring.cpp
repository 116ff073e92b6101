// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/semiring.hpp"

#include "tensorcraft/op/expression/evaluate.hpp"
#include "tensorcraft/op/host/elements.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tensorcraft::host {
namespace {

double identity_of(Reduction reduction) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (reduction == Reduction::max) return -kInfinity;
  if (reduction == Reduction::min) return kInfinity;
  return reduction == Reduction::prod ? 1 : 0;
}

template <class T>
T reduced(Reduction reduction, T a, T b) {
  if (reduction == Reduction::sum) return a + b;
  if (reduction == Reduction::prod) return a * b;
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  return reduction == Reduction::max ? std::max(a, b) : std::min(a, b);
}

bool is_wide(const op::CsrView& a) { return a.indices.dtype() == DType::int64; }

int64_t begin_of(const op::CsrView& a, int64_t row) {
  const Csr csr = op::csr_params(a);
  return is_wide(a) ? row_begin<int64_t>(csr, row) : int64_t(row_begin<int32_t>(csr, row));
}

// Holds what an expression reads: for each stored element the one of x, and its own; 0 outside the
// matrix.
struct Operands {
  Operands(const op::CsrView& a, const TensorView& x)
      : xs(DType::float32, {a.stored()}), as(DType::float32, {a.stored()}) {
    const Elements columns(a.indices), data(a.data), vector(x);
    parallel_for(a.stored(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t column = columns.integer(k);
        const bool is_inside = column >= 0 && column < a.cols;
        xs.data_as<float>()[k] = is_inside ? float(vector[column]) : 0.0f;
        as.data_as<float>()[k] = float(data[k]);
      }
    });
  }
  Tensor xs, as;
};

// The expression of each stored element; outside the matrix what changes nothing.
Tensor combined(const op::SemiringProgram& semiring, const op::CsrView& a, const TensorView& x,
                void (*evaluate)(const expression::ExpressionProblem&)) {
  const Operands operands(a, x);
  Tensor values(DType::float32, {a.stored()});
  if (a.stored() == 0) return values;
  evaluate({*semiring.combine, values, {operands.xs, operands.as}});
  const Elements columns(a.indices);
  const auto nothing = float(identity_of(semiring.reduction));
  for (int64_t k = 0; k < a.stored(); ++k)
    if (const int64_t column = columns.integer(k); column < 0 || column >= a.cols)
      values.data_as<float>()[k] = nothing;
  return values;
}

}  // namespace

TensorView contiguous(const TensorView& t, Tensor& memory) {
  if (t.is_contiguous()) return t;
  memory = Tensor(t.dtype(), t.shape());
  const size_t bytes = dtype_bytes(t.dtype());
  const Elements from(t), to(memory);
  for (int64_t i = 0; i < t.size(); ++i) std::memcpy(to.address(i), from.address(i), bytes);
  return memory;
}

Tensor row_results(const op::SemiringProgram& semiring, const op::CsrView& a, const TensorView& x) {
  const Tensor values = combined(semiring, a, x, expression::evaluate);
  Tensor results(DType::float32, {a.rows()});
  const auto some_rows = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      double result = identity_of(semiring.reduction);
      const int64_t last = begin_of(a, row + 1);
      for (int64_t k = begin_of(a, row); k < last; ++k)
        result = reduced(semiring.reduction, result, double(values.data_as<float>()[k]));
      results.data_as<float>()[row] = float(result);
    }
  };
  const Csr csr = op::csr_params(a);
  is_wide(a) ? for_rows_of_equal_work<int64_t>(csr, some_rows)
             : for_rows_of_equal_work<int32_t>(csr, some_rows);
  return results;
}

std::vector<double> exact_row_results(const op::SemiringProgram& semiring, const op::CsrView& a,
                                      const TensorView& x) {
  Tensor values;
  if (semiring.combine) values = combined(semiring, a, x, expression::evaluate_reference);
  const Elements columns(a.indices), data(a.data), vector(x);
  std::vector<double> results;
  for (int64_t row = 0; row < a.rows(); ++row) {
    double result = identity_of(semiring.reduction);
    for (int64_t k = begin_of(a, row); k < begin_of(a, row + 1); ++k) {
      const int64_t column = columns.integer(k);
      if (column < 0 || column >= a.cols) continue;
      const double value =
          semiring.combine ? double(values.data_as<float>()[k]) : data[k] * vector[column];
      result = reduced(semiring.reduction, result, value);
    }
    results.push_back(result);
  }
  return results;
}

}  // namespace tensorcraft::host
