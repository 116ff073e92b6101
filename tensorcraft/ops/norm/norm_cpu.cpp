// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/norm/problem.hpp"

#include "tensorcraft/device/scaled_row.h"
#include "tensorcraft/op/host/code_rows.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/residual_rows.hpp"

#include <cmath>
#include <vector>

namespace tensorcraft::kernel::norm {
namespace {

// y = h - mean; returns the mean. The first mean is off by a rounding, the second corrects it.
float subtract_mean(float* y, const float* h, int64_t n) {
  const float mean = host::row_sum(h, n) / float(n);
  host::row_scale(y, h, 1, -mean, n);
  const float correction = host::row_sum(y, n) / float(n);
  if (!std::isfinite(correction)) return mean;
  if (correction != 0) host::row_scale(y, y, 1, -correction, n);
  return mean + correction;
}

// Describes centered values, which are h times `scale` less their mean.
struct RowStatistics {
  float mean, rstd, scale;
};

// y = h scale, less its mean if the form is layer.
RowStatistics center(float* y, const float* h, float scale, const Problem& q) {
  const int64_t n = q.cols();
  if (scale != 1) {
    host::row_scale(y, h, scale, 0, n);
    h = y;
  }
  const float mean = q.form == Form::layer ? subtract_mean(y, h, n) : 0;
  if (q.form == Form::layer) h = y;
  const float squares = host::row_sum_of_squares(h, 0, n) / float(n);
  return {mean, 1.0f / std::sqrt(squares + (scale == 1 ? q.eps : scaled_eps(q.eps, scale))), scale};
}

using OptionalElements = std::optional<host::Elements>;

OptionalElements elements_of(const std::optional<TensorView>& t) {
  return t ? OptionalElements(*t) : std::nullopt;
}

// None if the output is no codes.
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
  const float* bias = host::read_vector(q.bias, host::Slot::bias);
  const int64_t n = q.cols();
  host::for_each_row(q.rows(), n, [&](int64_t row) {
    const float* h = rows.read(row);
    float* y = host::scratch(host::Slot::row_b, n);
    if (out) y = out->target(row, y);
    float* centered = host::scratch(host::Slot::row_d, n);  // y may be h, which is needed again
    RowStatistics s = center(centered, h, 1, q);
    if (!is_ordinary_rstd(s.rstd))
      s = center(centered, h, scale_of_row(host::row_max_magnitude(h, n)), q);
    const bool is_centered = q.form == Form::layer || s.scale != 1;
    host::row_scale(y, is_centered ? centered : h, s.rstd, 0, n);
    if (weight) host::row_multiply(y, weight, n);
    if (bias) host::row_add(y, bias, n);
    if (q.activation != Activation::none) host::row_activate(y, y, q.activation, n);
    if (out)
      out->commit(row, y);
    else
      codes->commit(row, y);
    if (q.mean) q.mean->data_as<float>()[row] = s.mean * inverse_of_power(s.scale);
    if (q.rstd) q.rstd->data_as<float>()[row] = s.rstd * s.scale;
  });
}

void reference(const Problem& q) {
  const host::Elements out(q.out), x(q.x);
  const auto weight = elements_of(q.weight), bias = elements_of(q.bias),
             residual = elements_of(q.residual), residual_out = elements_of(q.residual_out);
  const int64_t cols = q.cols();
  std::vector<double> h(size_t(cols), 0.0);
  std::vector<float> rounded(size_t(cols), 0.0f);  // codes are of a float32 result
  const auto codes = codes_of(q);
  for (int64_t row = 0; row < q.rows(); ++row) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < cols; ++i) {
      const int64_t at = row * cols + i;
      sum += h[size_t(i)] = x[at] + (residual ? (*residual)[at] : 0);
      if (residual_out) residual_out->set(at, h[size_t(i)]);
    }
    const double mean = q.form == Form::layer ? sum / double(cols) : 0;
    for (const double v : h) squares += (v - mean) * (v - mean);
    const double rstd = 1 / std::sqrt(squares / double(cols) + double(q.eps));
    for (int64_t i = 0; i < cols; ++i) {
      const double scaled = (h[size_t(i)] - mean) * rstd * (weight ? (*weight)[i] : 1);
      const double y = host::activate(q.activation, scaled + (bias ? (*bias)[i] : 0));
      if (codes)
        rounded[size_t(i)] = float(y);
      else
        out.set(row * cols + i, y);
    }
    if (codes) codes->commit(row, rounded.data());
    if (q.mean) q.mean->data_as<float>()[row] = float(mean);
    if (q.rstd) q.rstd->data_as<float>()[row] = float(rstd);
  }
}

}  // namespace tensorcraft::kernel::norm
