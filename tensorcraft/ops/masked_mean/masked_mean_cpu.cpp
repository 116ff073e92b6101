// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/row_sums.hpp"
#include "tensorcraft/ops/masked_mean/problem.hpp"

namespace tensorcraft::kernel::masked_mean {

static void check_lengths(const host::Elements& lengths, int64_t batch, int64_t steps) {
  for (int64_t b = 0; b < batch; ++b)
    if (const int64_t n = lengths.integer(b); n < 0 || n > steps)
      fail(ErrorKind::value, "masked_mean: lengths: element ", b, " is ", n, ", expected [0, ",
           steps, "], the steps of x");
}

void cpu(const Problem& q) {
  const int64_t batch = q.x.shape(0), steps = q.x.shape(1), cols = q.x.shape(2);
  const host::Elements lengths(q.lengths);
  check_lengths(lengths, batch, steps);
  const host::Rows from(q.x), to(q.out);
  host::for_each_row(batch, steps * cols, [&](int64_t b) {
    float* mean = to.target(b, host::scratch(host::Slot::row_b, cols));
    host::RowSums sums(cols);
    const int64_t n = lengths.integer(b);
    for (int64_t s = 0; s < n; ++s)
      sums.add(from.read(b * steps + s, host::scratch(host::Slot::row_a, cols)));
    sums.divided(mean, n);
    to.commit(b, mean);
  });
}

void reference(const Problem& q) {
  const int64_t steps = q.x.shape(1), cols = q.x.shape(2);
  const host::Elements to(q.out), from(q.x), lengths(q.lengths);
  check_lengths(lengths, q.x.shape(0), steps);
  for (int64_t i = 0; i < q.out.size(); ++i) {
    const int64_t b = i / cols, n = lengths.integer(b);
    double sum = 0;
    for (int64_t s = 0; s < n; ++s) sum += from[(b * steps + s) * cols + i % cols];
    to.set(i, n > 0 ? sum / double(n) : 0);
  }
}

}  // namespace tensorcraft::kernel::masked_mean
