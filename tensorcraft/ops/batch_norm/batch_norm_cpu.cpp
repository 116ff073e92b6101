// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/batch_norm/problem.hpp"

#include "tensorcraft/device/scaled_row.h"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/residual_rows.hpp"

#include <cmath>

namespace tensorcraft::kernel::batch_norm {
namespace {

using host::Slot;

// A tensor as rows of which each belongs to one channel: its last axis, or, if that is the channels
// themselves, the batch.
class ChannelRows {
 public:
  explicit ChannelRows(const TensorView& t)
      : rows_(t.rank() == 2 ? t.transpose(0, 1).expand_dims(0) : t),
        samples_(t.rank() == 2 ? 1 : t.shape(0)),
        channels_(t.shape(1)),
        rows_of_plane_(samples_ && channels_ ? rows_.count() / (samples_ * channels_) : 0) {}

  int64_t count() const { return rows_.count(); }
  int64_t length() const { return rows_.length(); }
  int64_t channel_of(int64_t row) const { return row / rows_of_plane_ % channels_; }
  const float* read(int64_t row, Slot slot) const {
    return rows_.read(row, host::scratch(slot, length()));
  }
  // Calls f(target) with where to compute the row, then puts it back.
  template <class F>
  void write(int64_t row, Slot slot, F f) const {
    float* target = rows_.target(row, host::scratch(slot, length()));
    f(target);
    rows_.commit(row, target);
  }
  template <class F>
  void for_each_of(int64_t channel, F f) const {
    for (int64_t n = 0; n < samples_; ++n)
      for (int64_t i = 0; i < rows_of_plane_; ++i)
        f((n * channels_ + channel) * rows_of_plane_ + i);
  }

 private:
  host::Rows rows_;
  int64_t samples_, channels_, rows_of_plane_;
};

// Vectors of a value a channel, in double.
class Vector {
 public:
  Vector(const OptionalView& t, double fallback) : fallback_(fallback) {
    if (t) elements_.emplace(*t);
  }
  double operator[](int64_t i) const { return elements_ ? (*elements_)[i] : fallback_; }
  void set(int64_t i, double value) const {
    if (elements_) elements_->set(i, value);
  }

 private:
  std::optional<host::Elements> elements_;
  double fallback_;
};

// The vectors of a forward call.
struct Vectors {
  Vector running_mean, running_var, weight, bias, mean, rstd, running_mean_out, running_var_out;
  explicit Vectors(const Problem& q)
      : running_mean(q.running_mean, 0),
        running_var(q.running_var, 1),
        weight(q.weight, 1),
        bias(q.bias, 0),
        mean(q.mean, 0),
        rstd(q.rstd, 0),
        running_mean_out(q.running_mean_out, 0),
        running_var_out(q.running_var_out, 0) {}

  void store_statistics(const Problem& q, int64_t c, double batch_mean, double squares,
                        double count) const {
    const double m = q.momentum;
    mean.set(c, batch_mean);
    rstd.set(c, 1 / std::sqrt(squares / count + double(q.eps)));
    running_mean_out.set(c, (1 - m) * running_mean[c] + m * batch_mean);
    running_var_out.set(c, (1 - m) * running_var[c] + m * squares / (count - 1));
  }
};

// Mean and squares about it of values times `unit`: a first mean, then what its rounding left.
struct Statistics {
  double mean = 0, squares = 0;
  float unit = 1;
};
Statistics statistics_of(const ChannelRows& x, int64_t channel, double count, double eps,
                         float unit = 1) {
  const int64_t n = x.length();
  double sum = 0, rest = 0, squares = 0;
  x.for_each_of(channel, [&](int64_t row) {
    const float* values = x.read(row, Slot::row_a);
    if (unit != 1) {
      float* const scaled = host::scratch(Slot::row_b, n);
      host::row_scale(scaled, values, unit, 0, n);
      values = scaled;
    }
    sum += double(host::row_sum(values, n));
  });
  const auto mean = float(sum / count);
  x.for_each_of(channel, [&](int64_t row) {
    float* centered = host::scratch(Slot::row_b, n);
    host::row_scale(centered, x.read(row, Slot::row_a), unit, -mean, n);
    rest += double(host::row_sum(centered, n));
    squares += double(host::row_sum_of_squares(centered, 0, n));
  });
  const Statistics found{double(mean) + rest / count, squares - rest * rest / count, unit};
  const bool is_held = is_ordinary_rstd(float(1 / std::sqrt(found.squares / count + eps)));
  if (is_held || unit != 1) return found;
  float largest = 0;
  x.for_each_of(channel, [&](int64_t row) {
    largest = std::max(largest, host::row_max_magnitude(x.read(row, Slot::row_a), n));
  });
  return statistics_of(x, channel, count, eps, scale_of_row(largest));
}

void normalise_row(const Problem& q, const ChannelRows& x, const ChannelRows& out, int64_t row,
                   float unit, float mean, float scale, float shift) {
  const int64_t n = x.length();
  out.write(row, Slot::row_b, [&](float* y) {
    host::row_scale(y, x.read(row, Slot::row_a), unit, -mean, n);
    host::row_scale(y, y, scale, shift, n);
    if (q.activation != Activation::none) host::row_activate(y, y, q.activation, n);
  });
}

}  // namespace

void cpu(const Problem& q) {
  const ChannelRows x(q.x), out(q.out);
  const Vectors v(q);
  const double eps = double(q.eps);
  if (!q.training) {
    host::for_each_row(x.count(), x.length(), [&](int64_t row) {
      const int64_t c = x.channel_of(row);
      const double scale = v.weight[c] / std::sqrt(v.running_var[c] + eps);
      normalise_row(q, x, out, row, 1, float(v.running_mean[c]), float(scale), float(v.bias[c]));
    });
    return;
  }
  const int64_t channels = q.x.shape(1), elements = q.x.size() / std::max<int64_t>(1, channels);
  host::for_each_row(channels, elements, [&](int64_t c) {
    const Statistics s = statistics_of(x, c, double(elements), eps);
    const double unit = double(s.unit);  // eps is of the values themselves
    const double scale = v.weight[c] / std::sqrt(s.squares / double(elements) + eps * unit * unit);
    x.for_each_of(c, [&](int64_t row) {
      // The addend carries the rounding error of the mean.
      const double shift = v.bias[c] - (s.mean - double(float(s.mean))) * scale;
      normalise_row(q, x, out, row, s.unit, float(s.mean), float(scale), float(shift));
    });
    v.store_statistics(q, c, s.mean / unit, s.squares / unit / unit, double(elements));
  });
}

void reference(const Problem& q) {
  const host::Elements out(q.out), x(q.x);
  const Vectors v(q);
  const int64_t batch = q.x.shape(0), channels = q.x.shape(1), plane = plane_size(q.x);
  for (int64_t c = 0; c < channels; ++c) {
    const auto for_each = [&](auto f) {
      for (int64_t n = 0; n < batch; ++n)
        for (int64_t s = 0; s < plane; ++s) f((n * channels + c) * plane + s);
    };
    double mean = v.running_mean[c], variance = v.running_var[c];
    if (q.training) {
      const double count = double(batch * plane);
      double sum = 0, squares = 0;
      for_each([&](int64_t i) { sum += x[i]; });
      mean = sum / count;
      for_each([&](int64_t i) { squares += (x[i] - mean) * (x[i] - mean); });
      variance = squares / count;
      v.store_statistics(q, c, mean, squares, count);
    }
    const double rstd = 1 / std::sqrt(variance + double(q.eps));
    for_each([&](int64_t i) {
      out.set(i, host::activate(q.activation, (x[i] - mean) * rstd * v.weight[c] + v.bias[c]));
    });
  }
}

void backward_cpu(const BackwardProblem& q) {
  const ChannelRows grad(q.grad), x(q.x), out(q.grad_input);
  const Vector weight(q.weight, 1), grad_weight(q.grad_weight, 0), grad_bias(q.grad_bias, 0);
  const float *means = q.mean.data_as<const float>(), *rstds = q.rstd.data_as<const float>();
  const int64_t channels = q.x.shape(1), elements = q.x.size() / std::max<int64_t>(1, channels);
  const int64_t n = x.length();
  host::for_each_row(channels, elements, [&](int64_t c) {
    const double rstd = double(rstds[c]);
    float* centered = host::scratch(Slot::row_c, n);
    const auto center = [&](int64_t row) {  // and scale to a deviation of 1
      host::row_scale(centered, x.read(row, Slot::row_a), 1, -means[c], n);
      host::row_scale(centered, centered, rstds[c], 0, n);
    };
    double sum = 0, product = 0;
    x.for_each_of(c, [&](int64_t row) {
      const float* g = grad.read(row, Slot::row_b);
      center(row);
      sum += double(host::row_sum(g, n));
      product += double(host::row_dot(g, centered, n));
    });
    const double count = double(elements), scale = weight[c] * rstd;
    const auto slope = float(product / count);
    x.for_each_of(c, [&](int64_t row) {
      const float* g = grad.read(row, Slot::row_b);
      center(row);
      out.write(row, Slot::row_d, [&](float* y) {
        host::row_scale(y, g, 1, -float(sum / count), n);
        host::row_add_scaled(y, centered, -slope, n);
        host::row_scale(y, y, float(scale), 0, n);
      });
    });
    grad_weight.set(c, product);
    grad_bias.set(c, sum);
  });
}

void backward_reference(const BackwardProblem& q) {
  const host::Elements out(q.grad_input), grad(q.grad), x(q.x), mean(q.mean), rstd(q.rstd);
  const Vector weight(q.weight, 1), grad_weight(q.grad_weight, 0), grad_bias(q.grad_bias, 0);
  const int64_t batch = q.x.shape(0), channels = q.x.shape(1), plane = plane_size(q.x);
  for (int64_t c = 0; c < channels; ++c) {
    const auto for_each = [&](auto f) {
      for (int64_t n = 0; n < batch; ++n)
        for (int64_t s = 0; s < plane; ++s) f((n * channels + c) * plane + s);
    };
    const auto xhat = [&](int64_t i) { return (x[i] - mean[c]) * rstd[c]; };
    double sum = 0, product = 0;
    for_each([&](int64_t i) { sum += grad[i], product += grad[i] * xhat(i); });
    const double count = double(batch * plane);
    // grad_input may be grad or x: an element is read before it is written, and not again.
    for_each([&](int64_t i) {
      const double g = grad[i] - sum / count - xhat(i) * product / count;
      out.set(i, weight[c] * rstd[c] * g);
    });
    grad_weight.set(c, product);
    grad_bias.set(c, sum);
  }
}

}  // namespace tensorcraft::kernel::batch_norm
