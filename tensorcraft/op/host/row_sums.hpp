// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/host/rows.hpp"

#include <vector>

namespace tensorcraft::host {

// The sums of rows of n floats, however many: a few are added in float, those sums in double.
class RowSums {
 public:
  explicit RowSums(int64_t n) : few_(size_t(n)), sums_(size_t(n)) {}
  void add(const float* x) {
    row_add(few_.data(), x, int64_t(few_.size()));
    if (++rows_ % kFloatChain == 0) join();
  }
  // to = the sums / by, 0 if that is 0.
  void divided(float* to, int64_t by) {
    join();
    for (size_t i = 0; i < sums_.size(); ++i) to[i] = by ? float(sums_[i] / double(by)) : 0.0f;
  }

 private:
  void join() {
    for (size_t i = 0; i < few_.size(); ++i) sums_[i] += double(few_[i]), few_[i] = 0;
  }

  std::vector<float> few_;
  std::vector<double> sums_;
  int64_t rows_ = 0;
};

}  // namespace tensorcraft::host
