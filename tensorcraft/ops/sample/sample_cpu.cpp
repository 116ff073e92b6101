// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/sample/problem.hpp"

#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/ops/sample/params.h"
#include "tensorcraft/ops/sample/weight.cuh"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

namespace tensorcraft::kernel::sample {
namespace {

// A setting of one row.
double number_at(const NumberOrTensor& n, int64_t row, double otherwise) {
  if (n.tensor) return host::Elements(*n.tensor)[row];
  return n.number ? to_double(*n.number) : otherwise;
}
int64_t integer_at(const NumberOrTensor& n, int64_t row) {
  if (n.tensor) return host::Elements(*n.tensor).integer(row);
  return n.number ? std::get<int64_t>(*n.number) : 0;
}
Settings settings_at(const Problem& q, int64_t row) {
  return settings_of(float(number_at(q.temperature, row, 1)), integer_at(q.top_k, row),
                     float(number_at(q.top_p, row, 1)), float(number_at(q.min_p, row, 0)),
                     q.cols());
}
Draw draw_at(const Problem& q, int64_t row) {
  return draw_of(uint64_t(integer_at(q.seed, row)), uint64_t(integer_at(q.offset, row)),
                 q.row_counts ? uint64_t(row) : 0);
}

// One row of logits as the kernels see it.
class RowSampler {
 public:
  RowSampler(const float* x, int64_t cols, const Settings& settings)
      : x_(x), cols_(cols), settings_(settings), parts_(size_t(div_ceil(cols, kChunk))) {
    uint32_t largest = 0;
    for (size_t c = 0; c < parts_.size(); ++c) {
      for (int64_t i = first(c); i < end(c); ++i)
        parts_[c].order = std::max(parts_[c].order, order_of(x[i]));
      largest = std::max(largest, parts_[c].order);
    }
    largest_ = largest;
    most_ = value_of(largest);
  }

  int64_t pick(const Draw& draw) {
    if (settings_.scale == 0 || !is_finite(most_))
      return std::find_if(x_, x_ + cols_, [&](float x) { return order_of(x) == largest_; }) - x_;
    find_last_key();
    const uint64_t total = sum_parts();
    uint64_t left = high_of(draw.first, total);
    size_t c = 0;
    for (uint64_t own; left >= (own = share(c)); ++c) left -= own;
    left = high_of(draw.second, parts_[c].sum);
    int64_t i = first(c);
    for (uint64_t w; left >= (w = kept_weight(c, i)); ++i) left -= w;
    return i;
  }

 private:
  int64_t first(size_t c) const { return int64_t(c) * kChunk; }
  int64_t end(size_t c) const { return std::min(cols_, first(c) + kChunk); }
  uint64_t key(int64_t i) const { return key_of(order_of(x_[i]), i, cols_); }
  int64_t index_of(uint64_t key) const {
    return cols_ - 1 - int64_t(key & ((uint64_t(1) << kIndexBits) - 1));
  }
  uint64_t weight(int64_t i) const { return weight_of((most_ - x_[i]) * settings_.scale); }
  uint64_t kept_weight(size_t c, int64_t i) const {
    if (last_ != 0 && key(i) < last_) return 0;
    if (least_ != 0 && weight(i) < least_) return 0;
    return weight_of((value_of(parts_[c].order) - x_[i]) * settings_.scale);
  }
  uint64_t share(size_t c) const { return share_of(parts_[c], most_, settings_.scale); }
  // Sums the weights of what stays; returns the weight of all of it.
  uint64_t sum_parts() {
    uint64_t total = 0;
    for (size_t c = 0; c < parts_.size(); ++c) {
      parts_[c].sum = 0;
      if (parts_[c].order < last_ >> kIndexBits) continue;
      for (int64_t i = first(c); i < end(c); ++i) parts_[c].sum += kept_weight(c, i);
      total += share(c);
    }
    return total;
  }
  std::vector<uint64_t> keys_from(uint32_t lowest) const {
    std::vector<uint64_t> keys;
    for (size_t c = 0; c < parts_.size(); ++c)
      for (int64_t i = first(c); i < end(c) && parts_[c].order >= lowest; ++i)
        if (order_of(x_[i]) >= lowest) keys.push_back(key(i));
    return keys;
  }
  // The order that the largest of so many chunks reach; 0 if there are fewer.
  uint32_t order_of_parts(size_t count) const {
    if (count > parts_.size()) return 0;
    std::vector<uint32_t> orders(parts_.size());
    std::ranges::transform(parts_, orders.begin(), &Part::order);
    const auto last = orders.begin() + int64_t(count) - 1;
    std::nth_element(orders.begin(), last, orders.end(), std::greater<>());
    return *last;
  }
  // The k largest are selected; of them a heap gives the largest until their weight is enough.
  void find_last_key() {
    std::vector<uint64_t> keys;
    const bool has_top_k = settings_.top_k < cols_;
    if (has_top_k) {
      const auto k = size_t(settings_.top_k);
      keys = keys_from(order_of_parts(k));
      std::nth_element(keys.begin(), keys.begin() + int64_t(k) - 1, keys.end(), std::greater<>());
      keys.resize(k);
      last_ = keys.back();
    }
    if (settings_.share != 0) {
      const uint64_t total = sum_parts(), target = target_of(total, settings_.share);
      if (!has_top_k) keys = keys_from(bound_of(total, target, cols_, most_, settings_.scale));
      uint64_t above = 0, key = 0;
      std::ranges::make_heap(keys);
      while (above < target && !keys.empty()) {
        std::ranges::pop_heap(keys);
        key = keys.back();
        keys.pop_back();
        above += weight(index_of(key));
      }
      if (above >= target) last_ = key;
    }
    least_ = settings_.least;  // the last filter
  }

  const float* x_;
  int64_t cols_;
  Settings settings_;
  std::vector<Part> parts_;
  uint32_t largest_ = 0;
  float most_ = 0;
  uint64_t last_ = 0, least_ = 0;  // what stays has a key and a weight of this at least
};

// Does a come before b if it has the lower index?
bool comes_first(double a, double b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

// Follows the documentation in double: a sort, the filters one after the other, two draws.
int64_t sampled(const std::vector<double>& x, const Problem& q, int64_t row) {
  const auto cols = int64_t(x.size());
  std::vector<int64_t> order(x.size());
  std::iota(order.begin(), order.end(), int64_t(0));
  std::ranges::stable_sort(
      order, [&](int64_t a, int64_t b) { return comes_first(x[size_t(a)], x[size_t(b)]); });
  const double temperature = number_at(q.temperature, row, 1), most = x[size_t(order[0])];
  if (!(temperature > 0) || !std::isfinite(most)) return order[0];
  const auto weight = [&](int64_t i) {
    const double apart = x[size_t(i)] - most;
    return std::isinf(apart) ? 0.0 : std::exp(apart / temperature);
  };
  if (const int64_t k = integer_at(q.top_k, row); k > 0 && k < cols) order.resize(size_t(k));
  if (const double p = number_at(q.top_p, row, 1); p < 1) {
    double total = 0, above = 0;
    for (const int64_t i : order) total += weight(i);
    size_t count = 0;
    do above += weight(order[count++]);
    while (count < order.size() && above < double(float(p)) * total);
    order.resize(count);
  }
  std::vector<double> weights(x.size(), 0.0), chunks(size_t(div_ceil(cols, kChunk)), 0.0);
  for (const int64_t i : order)
    if (weight(i) >= std::min(double(float(number_at(q.min_p, row, 0))), 1.0)) {
      weights[size_t(i)] = weight(i);
      chunks[size_t(i / kChunk)] += weight(i);
    }
  const Draw draw = draw_at(q, row);
  // The first of `all` up to which the sum exceeds a random share.
  const auto pick = [](std::span<const double> all, uint64_t random) {
    const double target =
        std::ldexp(double(random), -64) * std::accumulate(all.begin(), all.end(), 0.0);
    size_t i = 0, last = 0;
    for (double up_to = 0; i < all.size(); ++i) {
      up_to += all[i];
      if (all[i] > 0) last = i;
      if (up_to > target) return int64_t(i);
    }
    return int64_t(last);  // the random share was rounded up to all
  };
  const int64_t first = pick(chunks, draw.first) * kChunk;
  const auto length = size_t(std::min<int64_t>(kChunk, cols - first));
  return first + pick(std::span(weights).subspan(size_t(first), length), draw.second);
}

}  // namespace

void cpu(const Problem& q) {
  const host::Rows logits(q.logits);
  const host::Elements out(q.out);
  const int64_t cols = q.cols();
  host::for_each_row(q.rows(), cols, [&](int64_t row) {
    const float* const x = logits.read(row, host::scratch(host::Slot::row_a, cols));
    out.set_integer(row, RowSampler(x, cols, settings_at(q, row)).pick(draw_at(q, row)));
  });
}

void reference(const Problem& q) {
  const host::Elements logits(q.logits), out(q.out);
  const int64_t cols = q.cols();
  std::vector<double> x(static_cast<size_t>(cols));
  for (int64_t row = 0; row < q.rows(); ++row) {
    for (int64_t i = 0; i < cols; ++i) x[size_t(i)] = logits[row * cols + i];
    out.set_integer(row, sampled(x, q, row));
  }
}

}  // namespace tensorcraft::kernel::sample
