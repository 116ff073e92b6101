// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/masked_mean/problem.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"

#include <algorithm>

namespace tensorcraft::kernel::masked_mean {
namespace {

int64_t length_at(const TensorView& lengths, int64_t b) {
  const int64_t at = b * lengths.stride(0);
  return lengths.dtype() == DType::int32 ? lengths.data_as<int32_t>()[at]
                                         : lengths.data_as<int64_t>()[at];
}

void check_lengths(const TensorView& lengths, int64_t steps) {
  for (int64_t b = 0; b < lengths.size(); ++b) {
    const int64_t length = length_at(lengths, b);
    if (length < 0 || length > steps)
      fail(ErrorKind::value, "masked_mean: lengths: element ", b, " is ", length, ", expected [0, ",
           steps, "], the steps of x");
  }
}

}  // namespace

void cpu(const Problem& q) {
  const auto& [out, x, lengths] = q;
  const int64_t steps = x.shape(1), cols = x.shape(2);
  check_lengths(lengths, steps);
  const host::Rows from(x), to(out);
  host::for_each_row(x.shape(0), steps * cols, [&](int64_t b) {
    float* sum = to.target(b, host::scratch(host::Slot::row_b, cols));
    std::fill_n(sum, cols, 0.0f);
    const int64_t n = length_at(lengths, b);
    for (int64_t s = 0; s < n; ++s)
      host::row_add(sum, from.read(b * steps + s, host::scratch(host::Slot::row_a, cols)), cols);
    for (int64_t i = 0; i < cols && n > 0; ++i) sum[i] /= float(n);
    to.commit(b, sum);
  });
}

void reference(const Problem& q) {
  const auto& [out, x, lengths] = q;
  const int64_t steps = x.shape(1), cols = x.shape(2);
  check_lengths(lengths, steps);
  const host::Elements to(out), from(x);
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t b = i / cols, n = length_at(lengths, b);
    double sum = 0;
    for (int64_t s = 0; s < n; ++s) sum += from[(b * steps + s) * cols + i % cols];
    to.set(i, n > 0 ? sum / double(n) : 0);
  }
}

}  // namespace tensorcraft::kernel::masked_mean
