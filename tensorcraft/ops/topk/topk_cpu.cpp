// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/topk/problem.hpp"

#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace tensorcraft::kernel::topk {
namespace {

// Does a come before b if it has the lower index?
bool comes_first(double a, double b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

// Moves the axis behind the others, so that rows count alike in all three.
host::Elements by_rows(const TensorView& t, int axis) {
  std::vector<int> axes;
  for (int i = 0; i < t.rank(); ++i)
    if (i != axis) axes.push_back(i);
  axes.push_back(axis);
  return host::Elements(t.permute(axes));
}

}  // namespace

// The k best so far are kept sorted; a new one is put in where it belongs.
void cpu(const Problem& q) {
  const host::Rows from(q.x, q.axis), to(q.out, q.axis);
  const int64_t n = q.cols();
  const host::Elements places = by_rows(q.indices ? *q.indices : q.out, q.axis);
  host::map_rows(from, to, [&](int64_t row, const float* x, float* y) {
    std::vector<int64_t> best;
    best.reserve(size_t(q.k) + 1);
    for (int64_t i = 0; i < n; ++i) {
      const bool is_full = int64_t(best.size()) == q.k;
      if (is_full && !comes_first(x[i], x[best.back()])) continue;
      if (is_full) best.pop_back();
      size_t place = best.size();
      while (place > 0 && comes_first(x[i], x[best[place - 1]])) --place;
      best.insert(best.begin() + int64_t(place), i);
    }
    for (size_t place = 0; place < best.size(); ++place) y[place] = x[best[place]];
    if (!q.indices) return;
    for (size_t place = 0; place < best.size(); ++place)
      places.set_integer(row * q.k + int64_t(place), best[place]);
  });
}

void reference(const Problem& q) {
  const host::Elements from = by_rows(q.x, q.axis), to = by_rows(q.out, q.axis),
                       places = by_rows(q.indices ? *q.indices : q.out, q.axis);
  const int64_t n = q.cols();
  std::vector<int64_t> order(size_t(n), 0);
  for (int64_t row = 0; row < q.rows(); ++row) {
    std::iota(order.begin(), order.end(), int64_t(0));
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
      return comes_first(from[row * n + a], from[row * n + b]);
    });
    for (int64_t place = 0; place < q.k; ++place) {
      const int64_t i = order[size_t(place)];
      to.set(row * q.k + place, from[row * n + i]);
      if (q.indices) places.set_integer(row * q.k + place, i);
    }
  }
}

}  // namespace tensorcraft::kernel::topk
