// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/softmax/problem.hpp"

#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/checks/rows.hpp"

#include <cmath>
#include <limits>

namespace tensorcraft::kernel::softmax {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Rows of a mask along the axis of x.
class MaskRows {
 public:
  explicit MaskRows(const Problem& q) : mask_(*q.mask) {
    map_ = op::row_map(mask_, q.axis);
    stride_ = mask_.stride(q.axis);
  }

  // Applies a row to n values; `buffer` holds a row.
  void apply(float* values, int64_t row, int64_t n, float* buffer) const {
    const int64_t offset = map_.offset(row);
    if (mask_.dtype() == DType::bool_) {
      const uint8_t* keep = mask_.data_as<const uint8_t>() + offset;
      for (int64_t i = 0; i < n; ++i) values[i] = keep[i * stride_] ? values[i] : -kInfinity;
    } else {
      const auto* first =
          mask_.data_as<const std::byte>() + offset * int64_t(dtype_bytes(mask_.dtype()));
      host::load_row(buffer, first, mask_.dtype(), stride_, n);
      host::row_add(values, buffer, n);
    }
  }

 private:
  TensorView mask_;
  RowMap map_;
  int64_t stride_;
};

// The logits of one row: itself, or a scaled and masked copy.
const float* logits(const Problem& q, int64_t row, const float* values) {
  if (q.scale == 1 && !q.mask) return values;
  const int64_t n = q.cols();
  float* const buffer = host::scratch(host::Slot::row_a, n);
  host::row_scale(buffer, values, q.scale, 0.0f, n);
  if (q.mask) MaskRows(q).apply(buffer, row, n, host::scratch(host::Slot::row_c, n));
  return buffer;
}

bool hides_all(const Problem& q, float top) {
  return q.mask && q.mask->dtype() == DType::bool_ && top == -kInfinity;
}

// Weights or their logarithms, from the logits of a row into `result`.
void finish(const Problem& q, float* result, const float* values, int64_t n) {
  const float top = host::row_max(values, n);
  if (hides_all(q, top)) {
    std::fill_n(result, n, q.form == Form::softmax ? 0.0f : -kInfinity);
    return;
  }
  // inf - inf is NaN, but a vector exponential may take the difference as 0: say it plainly.
  const float shift = std::isfinite(top) ? top : std::numeric_limits<float>::quiet_NaN();
  if (q.form == Form::softmax) {
    const float sum = host::row_exp(result, values, shift, n);
    host::row_scale(result, result, 1.0f / sum, 0.0f, n);
  } else {
    const float sum = host::row_exp(host::scratch(host::Slot::row_c, n), values, shift, n);
    host::row_scale(result, values, 1.0f, -shift, n);
    host::row_scale(result, result, 1.0f, -std::log(sum), n);
  }
}

float logsumexp(const float* values, int64_t n) {
  const float top = host::row_max(values, n);
  if (!std::isfinite(top)) return top;
  return top + std::log(host::row_exp(host::scratch(host::Slot::row_c, n), values, top, n));
}

}  // namespace

void cpu(const Problem& q) {
  const int64_t n = q.cols();
  host::map_rows(host::Rows(q.x, q.axis), host::Rows(q.out, q.axis),
                 [&](int64_t row, const float* x, float* y) {
                   if (q.form == Form::logsumexp)
                     *y = logsumexp(x, n);
                   else
                     finish(q, y, logits(q, row, x), n);
                 });
}

void reference(const Problem& q) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const host::Elements to(q.out.transpose(q.axis, -1)), from(q.x.transpose(q.axis, -1));
  const host::Elements mask(q.mask.value_or(q.x).transpose(q.axis, -1));
  const bool is_bool = q.mask && q.mask->dtype() == DType::bool_;
  const auto logit = [&](int64_t i) {
    const double x = from[i] * double(q.scale);
    if (!q.mask) return x;
    return is_bool ? (mask[i] != 0 ? x : -kInf) : x + mask[i];
  };
  const int64_t rows = q.rows(), cols = q.cols();
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t first = row * cols;
    double top = -kInf, sum = 0;
    for (int64_t i = first; i < first + cols; ++i)
      if (logit(i) > top || std::isnan(logit(i))) top = logit(i);
    for (int64_t i = first; i < first + cols; ++i) sum += std::exp(logit(i) - top);
    if (q.form == Form::logsumexp) {
      to.set(row, std::isinf(top) ? top : top + std::log(sum));
      continue;
    }
    const bool is_empty = is_bool && top == -kInf;
    for (int64_t i = first; i < first + cols; ++i) {
      if (q.form == Form::softmax)
        to.set(i, is_empty ? 0 : std::exp(logit(i) - top) / sum);
      else
        to.set(i, is_empty ? -kInf : logit(i) - top - std::log(sum));
    }
  }
}

}  // namespace tensorcraft::kernel::softmax
