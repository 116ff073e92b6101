// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/group_norm/problem.hpp"

#include "tensorcraft/device/scaled_row.h"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/residual_rows.hpp"

#include <cmath>

namespace tensorcraft::kernel::group_norm {

// A group is some rows along the last axis, one behind another: those of its channels.
void cpu(const Problem& q) {
  using host::Slot;
  const auto rows_of = [](const TensorView& t) {
    return host::Rows(t.rank() == 2 ? t.expand_dims(2) : t);
  };
  const host::Rows x = rows_of(q.x), out = rows_of(q.out);
  const float* weight = host::read_vector(q.weight, Slot::line);
  const float* bias = host::read_vector(q.bias, Slot::bias);
  const int64_t n = x.length(), channels = q.group_channels();
  const int64_t rows_of_channel = q.spatial() / std::max<int64_t>(1, n);
  host::for_each_row(q.rows(), q.cols(), [&](int64_t group) {
    const int64_t first = group * channels * rows_of_channel, count = channels * rows_of_channel;
    const auto cols = double(q.cols());
    const auto read = [&](int64_t row) { return x.read(row, host::scratch(Slot::row_a, n)); };
    float* y = host::scratch(Slot::row_b, n);
    float mean = 0, correction = 0, rstd = 0, unit = 1;
    const auto find = [&] {  // the statistics of the values times `unit`
      double sum = 0, rest = 0, squares = 0;
      for (int64_t row = first; row < first + count; ++row) {
        const float* values = read(row);
        if (unit != 1) host::row_scale(y, values, unit, 0, n), values = y;
        sum += double(host::row_sum(values, n));
      }
      mean = float(sum / cols);
      for (int64_t row = first; row < first + count; ++row) {
        host::row_scale(y, read(row), unit, -mean, n);
        rest += double(host::row_sum(y, n));
        squares += double(host::row_sum_of_squares(y, 0, n));
      }
      correction = float(rest / cols);  // of the mean's rounding
      const double variance = (squares - rest * rest / cols) / cols;
      rstd = float(1 / std::sqrt(variance + double(unit == 1 ? q.eps : scaled_eps(q.eps, unit))));
    };
    find();
    if (!is_ordinary_rstd(rstd)) {
      float largest = 0;
      for (int64_t row = first; row < first + count; ++row)
        largest = std::max(largest, host::row_max_magnitude(read(row), n));
      unit = scale_of_row(largest);
      find();
    }
    for (int64_t row = first; row < first + count; ++row) {
      const int64_t channel = group % q.groups * channels + (row - first) / rows_of_channel;
      const float scale = rstd * (weight ? weight[channel] : 1);
      float* target = out.target(row, y);
      host::row_scale(target, read(row), unit, -mean, n);
      host::row_scale(target, target, scale, (bias ? bias[channel] : 0) - correction * scale, n);
      out.commit(row, target);
    }
  });
}

void reference(const Problem& q) {
  using Optional = std::optional<host::Elements>;
  const host::Elements out(q.out), x(q.x);
  const auto weight = q.weight ? Optional(*q.weight) : std::nullopt,
             bias = q.bias ? Optional(*q.bias) : std::nullopt;
  const int64_t cols = q.cols(), spatial = q.spatial();
  for (int64_t group = 0; group < q.rows(); ++group) {
    const int64_t first = group * cols;
    double sum = 0, squares = 0;
    for (int64_t i = first; i < first + cols; ++i) sum += x[i];
    const double mean = sum / double(cols);
    for (int64_t i = first; i < first + cols; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double rstd = 1 / std::sqrt(squares / double(cols) + double(q.eps));
    for (int64_t i = first; i < first + cols; ++i) {
      const int64_t channel = i / spatial % q.x.shape(1);
      const double y = (x[i] - mean) * rstd * (weight ? (*weight)[channel] : 1);
      out.set(i, y + (bias ? (*bias)[channel] : 0));
    }
  }
}

}  // namespace tensorcraft::kernel::group_norm
