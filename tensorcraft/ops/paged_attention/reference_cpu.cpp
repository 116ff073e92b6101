// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/paged_attention/elements.cuh"
#include "tensorcraft/ops/paged_attention/requests.hpp"

#include <cmath>

namespace tensorcraft::kernel::paged_attention {
namespace {

// f(j, its block, its scale) for the keys that a query sees.
template <class F>
void for_keys(const Params& p, int64_t b, const Cache& cache, int head, KeyRange range, F&& f) {
  for (int j = range.begin; j < range.end; ++j) {
    const int64_t block = block_of(p, b, j), row = j % p.block_size;
    f(j, block,
      cache.scale
          ? cache.scale[block * cache.scale_block + row * cache.scale_row + head * cache.scale_head]
          : 1.0f);
  }
}

// One query of one head in double. T: of q, Code: of the caches.
template <class T, class Code>
class Row {
 public:
  explicit Row(const Params& p) : p_(p), query_(size_t(p.head_dim)), sums_(size_t(p.v_dim)) {}

  void compute(int64_t b, const Request& r, int i, int h) {
    const KeyRange range = keys_of(r, i);
    const int64_t line = p_.starts ? r.first + i : i, batch = p_.starts ? 0 : b;
    const T* q = static_cast<const T*>(p_.q) + batch * p_.q_strides.batch +
                 line * p_.q_strides.row + h * p_.q_strides.head;
    const T* q_pe = static_cast<const T*>(p_.q_pe) + batch * p_.q_pe_strides.batch +
                    line * p_.q_pe_strides.row + h * p_.q_pe_strides.head;
    for (int d = 0; d < p_.head_dim; ++d)
      query_[size_t(d)] =
          double(element(q, p_.q_strides.step, p_.q_dim, q_pe, p_.q_pe_strides.step, d));
    const double none = -std::numeric_limits<double>::infinity();
    double top = p_.sinks ? double(p_.sinks[h]) : none;
    weights_.clear();
    const TreeRow tree = tree_row(p_, b, r, i);
    const auto line_of = [&](const Cache& cache, int64_t block, int j) {
      return static_cast<const Code*>(cache.data) + block * cache.block +
             j % p_.block_size * cache.row + h / p_.group * cache.head;
    };
    for_keys(p_, b, p_.k, h / p_.group, range, [&](int j, int64_t block, float scale) {
      const bool is_seen = !p_.tree.data || tree.sees(j);
      weights_.push_back(is_seen ? logit(line_of(p_.k, block, j), line_of(p_.k_pe, block, j), scale)
                                 : none);
      if (!(weights_.back() <= top)) top = weights_.back();  // a NaN stays
    });
    if (top == none) top = 0;
    double sum = p_.sinks ? std::exp(double(p_.sinks[h]) - top) : 0;
    for (double& w : weights_) sum += w = std::exp(w - top);
    std::fill(sums_.begin(), sums_.end(), double(0));
    for_keys(p_, b, p_.v, h / p_.group, range, [&](int j, int64_t block, float scale) {
      const Code* v = line_of(p_.v, block, j);
      const double weight = weights_[size_t(j - range.begin)] * double(scale);
      for (int d = 0; d < p_.v_dim; ++d)
        sums_[size_t(d)] += weight * double(element(v, p_.v.step, d));
    });
    T* out = static_cast<T*>(p_.out) + batch * p_.out_strides.batch + line * p_.out_strides.row +
             h * p_.out_strides.head;
    for (int d = 0; d < p_.v_dim; ++d)
      out[d * p_.out_strides.step] =
          T(float(weights_.empty() || sum == 0 ? 0 : sums_[size_t(d)] / sum));
    if (p_.lse) p_.lse[(r.first + i) * p_.heads + h] = float(sum == 0 ? none : top + std::log(sum));
  }

 private:
  double logit(const Code* k, const Code* k_pe, float scale) const {
    double s = 0;
    for (int d = 0; d < p_.head_dim; ++d)
      s += query_[size_t(d)] * double(element(k, p_.k.step, p_.k_dim, k_pe, p_.k_pe.step, d));
    s *= double(p_.scale) * double(scale);
    return p_.softcap > 0 ? double(p_.softcap) * std::tanh(s / double(p_.softcap)) : s;
  }

  const Params& p_;
  std::vector<double> query_, sums_, weights_;
};

}  // namespace

void reference(const Problem& problem) {
  const Params& p = problem.params;
  const std::vector<Request> requests = checked_requests(p);
  with_types(problem, [&]<class T, class Code>(T*, Code*) {
    fill_tokens_of_none<T>(p, requests);
    Row<T, Code> row(p);
    for (int64_t n = 0; n < int64_t(p.batch) * p.heads; ++n) {
      const Request& r = requests[size_t(n / p.heads)];
      for (int i = 0; i < r.queries; ++i) row.compute(n / p.heads, r, i, int(n % p.heads));
    }
  });
}

}  // namespace tensorcraft::kernel::paged_attention
