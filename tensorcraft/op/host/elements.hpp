// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/op/value.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensorcraft::host {

// Reads and writes a strided host tensor of any dtype as double, by row-major index. Slow and
// obvious: what `reference` rows are written with.
class Elements {
 public:
  explicit Elements(const TensorView& view) : view_(view), has_gaps_(!view.is_contiguous()) {}
  double operator[](int64_t index) const;
  void set(int64_t index, double value) const;  // rounds to the dtype, once
  std::vector<double> all() const;              // for loops that read each of them often
  // These access an integer dtype or bool, as a double does not hold every value. Setting keeps the
  // low bits; a bool becomes != 0.
  int64_t integer(int64_t index) const;
  void set_integer(int64_t index, int64_t value) const;
  std::byte* address(int64_t index) const;

 private:
  int64_t offset(int64_t index) const;
  TensorView view_;
  bool has_gaps_;
};

// In double; NaN stays NaN.
double activate(Activation activation, double x);

}  // namespace tensorcraft::host
