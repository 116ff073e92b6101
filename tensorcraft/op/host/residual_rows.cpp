// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/residual_rows.hpp"

#include <algorithm>

namespace tensorcraft::host {
namespace {

std::optional<Rows> rows_of(const std::optional<TensorView>& t) {
  return t ? std::optional<Rows>(*t) : std::nullopt;
}

}  // namespace

ResidualRows::ResidualRows(const TensorView& x, const std::optional<TensorView>& residual,
                           const std::optional<TensorView>& residual_out)
    : x_(x), residual_(rows_of(residual)), residual_out_(rows_of(residual_out)) {}

const float* ResidualRows::read(int64_t row) const {
  const int64_t n = x_.length();
  float* sum = scratch(Slot::row_a, n);
  const float* x = x_.read(row, sum);
  if (!residual_) return x;
  const float* residual = residual_->read(row, scratch(Slot::row_c, n));
  if (x != sum) std::copy_n(x, n, sum);
  row_add(sum, residual, n);
  if (residual_out_) {
    // If the row is stored as floats it is written here, else commit() converts it.
    float* target = residual_out_->target(row, sum);
    if (target != sum) std::copy_n(sum, n, target);
    residual_out_->commit(row, sum);
  }
  return sum;
}

const float* read_vector(const std::optional<TensorView>& t, Slot slot) {
  return t ? Rows(*t).read(0, scratch(slot, t->size())) : nullptr;
}

}  // namespace tensorcraft::host
