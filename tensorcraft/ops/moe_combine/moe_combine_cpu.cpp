// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/moe_combine/problem.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"

#include <algorithm>

namespace tensorcraft::kernel::moe_combine {
namespace {

void check_rows(const Problem& q) {
  const host::Elements rows(q.row_map);
  for (int64_t i = 0; i < q.row_map.size(); ++i)
    if (rows.integer(i) >= q.y.shape(0))
      fail(ErrorKind::index, "moe_combine: row_map: element ", i, " is ", rows.integer(i),
           ", expected below ", q.y.shape(0), ", the rows of y, or negative for no row");
}

}  // namespace

void cpu(const Problem& q) {
  check_rows(q);
  const Params p = params(q);
  const host::Rows from(q.y), to(q.out);
  host::for_each_row(p.tokens, p.k * p.hidden, [&](int64_t token) {
    float* const sum = to.target(token, host::scratch(host::Slot::row_b, p.hidden));
    std::fill_n(sum, p.hidden, 0.0f);
    for (int64_t s = 0; s < p.k; ++s) {
      const Slot slot = slot_of(p, token, s);
      if (slot.row < 0) continue;
      const float* const row = from.read(slot.row, host::scratch(host::Slot::row_a, p.hidden));
      host::row_add_scaled(sum, row, slot.weight, p.hidden);
    }
    to.commit(token, sum);
  });
}

void reference(const Problem& q) {
  check_rows(q);
  const host::Elements to(q.out), from(q.y), rows(q.row_map), weights(q.weights);
  const int64_t hidden = q.y.shape(1), k = q.row_map.shape(1);
  for (int64_t i = 0; i < q.out.size(); ++i) {
    double sum = 0;
    for (int64_t slot = i / hidden * k; slot < (i / hidden + 1) * k; ++slot)
      if (const int64_t row = rows.integer(slot); row >= 0)
        sum += weights[slot] * from[row * hidden + i % hidden];
    to.set(i, sum);
  }
}

}  // namespace tensorcraft::kernel::moe_combine
