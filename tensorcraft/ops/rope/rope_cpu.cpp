// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/rope/problem.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"

#include <cmath>
#include <vector>

namespace tensorcraft::kernel::rope {
namespace {

struct Turn {
  double cos, sin;
};

// The positions and rotations of a call.
class Turns {
 public:
  explicit Turns(const Problem& q) : start_(q.start_pos), seq_(q.seq()), half_(q.dim() / 2) {
    if (q.positions) positions_.emplace(*q.positions);
    if (q.cos) {
      cos_.emplace(*q.cos);
      sin_.emplace(*q.sin);
      check(q.tokens(), q.cos->shape(0));
    }
    for (int64_t i = 0; i < half_; ++i)
      frequencies_.push_back(std::pow(q.base, -double(i) / double(half_)));
  }
  Turn at(int64_t token, int64_t pair) const {
    const int64_t p = position(token);
    if (cos_) return {(*cos_)[p * half_ + pair], (*sin_)[p * half_ + pair]};
    const double angle = double(p) * frequencies_[size_t(pair)];
    return {std::cos(angle), std::sin(angle)};
  }

 private:
  int64_t position(int64_t token) const {
    return positions_ ? positions_->integer(token) : start_ + token % seq_;
  }
  void check(int64_t tokens, int64_t max_seq) const {
    if (!positions_) return;
    for (int64_t i = 0; i < tokens; ++i)
      if (const int64_t p = position(i); p < 0 || p >= max_seq)
        fail(ErrorKind::index, "rope: positions: that of token ", i, " is ", p, ", expected [0, ",
             max_seq, "), the rows of cos");
  }

  int64_t start_, seq_, half_;
  std::optional<host::Elements> positions_, cos_, sin_;
  std::vector<double> frequencies_;
};

// The elements of pair i.
int64_t first_of(const Problem& q, int64_t i) { return q.style == Style::half ? i : 2 * i; }
int64_t second_of(const Problem& q, int64_t i) {
  return q.style == Style::half ? i + q.dim() / 2 : 2 * i + 1;
}

// All heads of one token; cos and sin hold its rotations.
void rotate_heads(const Problem& q, const host::Rows& in, const host::Rows& out, int64_t token,
                  int64_t heads, const float* cos, const float* sin) {
  const int64_t dim = q.dim();
  for (int64_t row = token * heads; row < (token + 1) * heads; ++row) {
    const float* x = in.read(row, host::scratch(host::Slot::row_c, dim));
    float* y = out.target(row, host::scratch(host::Slot::row_d, dim));
    for (int64_t i = 0; i < dim / 2; ++i) {
      const int64_t a = first_of(q, i), b = second_of(q, i);
      const float first = x[a], second = x[b];  // y may be x
      y[a] = first * cos[i] - second * sin[i];
      y[b] = second * cos[i] + first * sin[i];
    }
    out.commit(row, y);
  }
}

void rotate_all(const Problem& q, const Turns& turns, const TensorView& in, const TensorView& out) {
  const host::Elements from(in), to(out);
  const int64_t dim = q.dim(), heads = in.shape(in.rank() - 2);
  for (int64_t row = 0; row < q.tokens() * heads; ++row)
    for (int64_t i = 0; i < dim / 2; ++i) {
      const int64_t a = row * dim + first_of(q, i), b = row * dim + second_of(q, i);
      const auto [cos, sin] = turns.at(row / heads, i);
      const double x = from[a], y = from[b];
      to.set(a, x * cos - y * sin);
      to.set(b, y * cos + x * sin);
    }
}

// Fills the rows [begin, end) of a cache.
void fill_cache(const CacheProblem& q, int64_t begin, int64_t end) {
  const host::Elements positions(q.positions), out(q.out);
  const int64_t half = q.half(), count = q.positions.size();
  for (int64_t row = begin; row < end; ++row)
    for (int64_t i = 0; i < half; ++i) {
      const double angle =
          double(positions.integer(row)) * std::pow(q.base, -double(i) / double(half));
      out.set(row * half + i, std::cos(angle));
      out.set((count + row) * half + i, std::sin(angle));
    }
}

}  // namespace

int64_t Problem::tokens() const {
  int64_t count = 1;
  for (int i = 0; i < x.rank() - 2; ++i) count *= x.shape(i);
  return count;
}

void cpu(const Problem& q) {
  const Turns turns(q);
  const host::Rows x(q.x), out(q.out);
  const auto k = q.k ? std::optional<host::Rows>(*q.k) : std::nullopt,
             k_out = q.k ? std::optional<host::Rows>(*q.k_out) : std::nullopt;
  const auto heads_of = [](const TensorView& t) { return t.shape(t.rank() - 2); };
  const int64_t half = q.dim() / 2;
  host::for_each_row(q.tokens(), heads_of(q.x) * q.dim(), [&](int64_t token) {
    float* cos = host::scratch(host::Slot::row_a, half);
    float* sin = host::scratch(host::Slot::row_b, half);
    for (int64_t i = 0; i < half; ++i) {
      const Turn turn = turns.at(token, i);
      cos[i] = float(turn.cos);
      sin[i] = float(turn.sin);
    }
    rotate_heads(q, x, out, token, heads_of(q.x), cos, sin);
    if (k) rotate_heads(q, *k, *k_out, token, heads_of(*q.k), cos, sin);
  });
}

void reference(const Problem& q) {
  const Turns turns(q);
  rotate_all(q, turns, q.x, q.out);
  if (q.k) rotate_all(q, turns, *q.k, *q.k_out);
}

void cpu(const CacheProblem& q) {
  host::parallel_for(q.positions.size(), 16,
                     [&](int64_t begin, int64_t end) { fill_cache(q, begin, end); });
}

void reference(const CacheProblem& q) { fill_cache(q, 0, q.positions.size()); }

}  // namespace tensorcraft::kernel::rope
