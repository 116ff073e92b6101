// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/rms_norm/rms_norm_cpu.hpp"

#include "tensorcraft/op/host/code_rows.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/residual_rows.hpp"

#include <cmath>
#include <vector>

namespace tensorcraft::kernel::rms_norm {

namespace {

// Where the output is codes.
std::optional<host::CodeRows> codes_of(const Problem& q) {
  if (!q.is_quantized()) return std::nullopt;
  return host::CodeRows(q.out, q.scales, q.scale);
}

}  // namespace

void cpu(const Problem& q) {
  const host::ResidualRows rows(q.x, q.residual, q.residual_out);
  std::optional<host::Rows> out;
  if (!q.is_quantized()) out.emplace(q.out);
  const auto codes = codes_of(q);
  const float* weight = host::read_vector(q.weight, host::Slot::line);
  const int64_t n = q.cols();
  host::for_each_row(q.rows(), n, [&](int64_t row) {
    const float* h = rows.read(row);
    float* y = host::scratch(host::Slot::row_b, n);
    if (out) y = out->target(row, y);
    const float mean_square = host::row_sum_of_squares(h, 0, n) / float(n);
    host::row_scale(y, h, 1.0f / std::sqrt(mean_square + q.eps), 0, n);
    if (weight) host::row_multiply(y, weight, n);
    if (out)
      out->commit(row, y);
    else
      codes->commit(row, y);
  });
}

void reference(const Problem& q) {
  using Optional = std::optional<host::Elements>;
  const host::Elements out(q.out), x(q.x);
  const auto weight = q.weight ? Optional(*q.weight) : std::nullopt,
             residual = q.residual ? Optional(*q.residual) : std::nullopt,
             residual_out = q.residual_out ? Optional(*q.residual_out) : std::nullopt;
  const int64_t cols = q.cols();
  std::vector<double> h(size_t(cols), 0.0);
  std::vector<float> rounded(size_t(cols), 0.0f);  // codes are of a float32 result
  const auto codes = codes_of(q);
  for (int64_t row = 0; row < q.rows(); ++row) {
    double squares = 0;
    for (int64_t i = 0; i < cols; ++i) {
      const int64_t at = row * cols + i;
      h[size_t(i)] = x[at] + (residual ? (*residual)[at] : 0);
      squares += h[size_t(i)] * h[size_t(i)];
      if (residual_out) residual_out->set(at, h[size_t(i)]);
    }
    const double rms = std::sqrt(squares / double(cols) + double(q.eps));
    for (int64_t i = 0; i < cols; ++i) {
      const double y = h[size_t(i)] / rms * (weight ? (*weight)[i] : 1);
      if (codes)
        rounded[size_t(i)] = float(y);
      else
        out.set(row * cols + i, y);
    }
    if (codes) codes->commit(row, rounded.data());
  }
}

}  // namespace tensorcraft::kernel::rms_norm
