// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/cumulative_sum/problem.hpp"

#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"

#include <cmath>

namespace tensorcraft::kernel::cumulative_sum {
namespace {

// Sums and products of integers wrap, those of float_prod are taken as floats.
void total_integers(const Problem& q, const host::Elements& to, const host::Elements& from,
                    int64_t first, int64_t n) {
  if (q.operation == Operation::float_prod) {
    float product = 1;
    for (int64_t i = first; i < first + n; ++i)
      to.set(i, double(product *= float(from.integer(i))));
    return;
  }
  const bool is_float = is_floating(q.out.dtype()), adds = q.operation == Operation::sum;
  uint64_t total = adds ? 0 : 1;
  for (int64_t i = first; i < first + n; ++i) {
    const auto x = uint64_t(from.integer(i));
    total = adds ? total + x : total * x;
    is_float ? to.set(i, double(int64_t(total))) : to.set_integer(i, int64_t(total));
  }
}

void set_initial(const Problem& q) {
  if (!q.initial) return;
  const host::Elements to(*q.initial);
  for (int64_t i = 0; i < q.initial->size(); ++i) to.set(i, q.operation == Operation::sum ? 0 : 1);
}

// A product that exceeds float32 is an infinity for what follows, and one that vanishes there 0.
double in_range(double product) {
  const auto single = float(product);
  return std::isinf(single) || single == 0 ? double(single) : product;
}

}  // namespace

void cpu(const Problem& q) {
  set_initial(q);
  const int64_t n = q.cols();
  if (q.x.size() == 0) return;
  if (!is_floating(q.x.dtype())) {
    const host::Elements to(q.out.transpose(q.axis, -1)), from(q.x.transpose(q.axis, -1));
    return host::for_each_row(q.rows(), n,
                              [&](int64_t row) { total_integers(q, to, from, row * n, n); });
  }
  const auto add = [n](int64_t, const float* x, float* y) {
    double sum = 0;  // costs nothing: each addition waits for the last
    for (int64_t i = 0; i < n; ++i) y[i] = float(sum += double(x[i]));
  };
  const auto multiply = [n](int64_t, const float* x, float* y) {
    float product = 1;
    for (int64_t i = 0; i < n; ++i) y[i] = product *= x[i];
  };
  const host::Rows from(q.x, q.axis), to(q.out, q.axis);
  q.operation == Operation::sum ? host::map_rows(from, to, add)
                                : host::map_rows(from, to, multiply);
}

void reference(const Problem& q) {
  set_initial(q);
  const host::Elements to(q.out.transpose(q.axis, -1)), from(q.x.transpose(q.axis, -1));
  const int64_t n = q.cols();
  for (int64_t row = 0; row < q.rows(); ++row) {
    if (!is_floating(q.x.dtype())) {
      total_integers(q, to, from, row * n, n);
      continue;
    }
    double sum = 0, product = 1;
    for (int64_t i = row * n; i < row * n + n; ++i)
      to.set(i, q.operation == Operation::sum ? sum += from[i]
                                              : product = in_range(product * from[i]));
  }
}

}  // namespace tensorcraft::kernel::cumulative_sum
