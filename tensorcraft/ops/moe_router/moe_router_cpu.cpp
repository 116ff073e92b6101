// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/moe_router/problem.hpp"

#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/ops/moe_router/score.cuh"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace tensorcraft::kernel::moe_router {
namespace {

// Takes the experts of groups that the token may not use out of `orders`.
void keep_groups(const Params& p, uint32_t* orders) {
  std::array<uint64_t, kMaxGroups> keys{};
  for (int g = 0; g < p.groups; ++g) {
    std::array<uint32_t, 2> best{};
    std::partial_sort_copy(orders + g * p.group_experts, orders + (g + 1) * p.group_experts,
                           best.begin(), best.end(), std::greater<>());
    keys[size_t(g)] = ranked(group_order(p, best[0], best[1]), g);
  }
  std::partial_sort(keys.begin(), keys.begin() + p.group_k, keys.begin() + p.groups,
                    std::greater<>());
  for (int n = p.group_k; n < p.groups; ++n)
    std::fill_n(orders + ranked_index(keys[size_t(n)]) * p.group_experts, p.group_experts, 0u);
}

template <class T>
void route(const Params& p, int64_t token) {
  const Token<T> t(p, token);
  std::array<float, kMaxExperts> x;
  std::array<uint32_t, kMaxExperts> orders;
  std::array<uint64_t, kMaxExperts> keys;
  Exponentials all{-kInfinity, 0};
  for (int e = 0; e < p.experts; ++e) {
    x[size_t(e)] = t.logit(e);
    all.most = fmax_nan(all.most, x[size_t(e)]);
  }
  if (p.scoring == Scoring::softmax)
    for (int e = 0; e < p.experts; ++e) all.sum += expf(x[size_t(e)] - all.most);
  for (int e = 0; e < p.experts; ++e)
    orders[size_t(e)] = order_of(choice_of(p, e, x[size_t(e)], all));
  if (p.groups > 1) keep_groups(p, orders.data());
  for (int e = 0; e < p.experts; ++e) keys[size_t(e)] = ranked(orders[size_t(e)], e);
  std::partial_sort(keys.begin(), keys.begin() + p.k, keys.begin() + p.experts, std::greater<>());
  std::array<float, kMaxK> scores{};
  for (int slot = 0; slot < p.k; ++slot) {
    const int expert = int(ranked_index(keys[size_t(slot)]));
    t.store_id(slot, expert);
    scores[size_t(slot)] = score_of(p.scoring, x[size_t(expert)], all);
  }
  const float sum = std::accumulate(scores.begin(), scores.begin() + p.k, 0.0f);
  for (int slot = 0; slot < p.k; ++slot)
    t.weight(slot) = scaled_weight(p, scores[size_t(slot)], sum);
}

// The reference, of one token in double.
class Exact {
 public:
  Exact(const Problem& q, int64_t token) : q_(q) {
    const host::Elements logits(q.logits);
    for (int64_t e = 0; e < q.experts(); ++e) x_.push_back(logits[token * q.experts() + e]);
    most_ = -INFINITY;
    for (const double x : x_) most_ = std::isnan(x) ? x : std::max(most_, x);
    for (const double x : x_) sum_ += std::exp(x - most_);
    for (int64_t e = 0; e < q.experts(); ++e)
      choices_.push_back(q.bias ? score(e) + host::Elements(*q.bias)[e] : x_[size_t(e)]);
  }
  double score(int64_t expert) const {
    const double x = x_[size_t(expert)];
    if (q_.scoring == Scoring::softmax) return std::exp(x - most_) / sum_;
    if (q_.scoring == Scoring::sigmoid) return 1 / (1 + std::exp(-x));
    return std::sqrt(std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))));
  }
  // Experts that the token may have, the best first.
  std::vector<int64_t> ranking() const {
    const int64_t each = q_.experts() / q_.groups;
    std::vector<double> good;
    for (int64_t g = 0; g < q_.groups; ++g) {
      const std::vector<int64_t> experts = ranked_by(choices_, g * each, (g + 1) * each);
      good.push_back(choices_[size_t(experts[0])]);
      if (q_.bias && each > 1) good.back() += choices_[size_t(experts[1])];
    }
    const std::vector<int64_t> groups = ranked_by(good, 0, q_.groups);
    std::vector<int64_t> all = ranked_by(choices_, 0, q_.experts());
    std::erase_if(all, [&](int64_t e) {
      return std::find(groups.begin(), groups.begin() + q_.group_k, e / each) ==
             groups.begin() + q_.group_k;
    });
    return all;
  }

 private:
  static std::vector<int64_t> ranked_by(const std::vector<double>& values, int64_t begin,
                                        int64_t end) {
    std::vector<int64_t> order(size_t(end - begin), 0);
    std::iota(order.begin(), order.end(), begin);
    std::ranges::stable_sort(order, [&](int64_t i, int64_t j) {
      const double a = values[size_t(i)], b = values[size_t(j)];
      return a > b || (std::isnan(a) && !std::isnan(b));
    });
    return order;
  }
  const Problem& q_;
  std::vector<double> x_, choices_;
  double most_, sum_ = 0;
};

}  // namespace

void cpu(const Problem& q) {
  const Params p = params(q);
  const auto run = [&]<class T>(T*) {
    host::parallel_for(p.tokens, 32, [&](int64_t begin, int64_t end) {
      for (int64_t token = begin; token < end; ++token) route<T>(p, token);
    });
  };
  if (q.logits.dtype() == DType::float32) return run(static_cast<float*>(nullptr));
  if (q.logits.dtype() == DType::float16) return run(static_cast<f16*>(nullptr));
  run(static_cast<bf16*>(nullptr));
}

void reference(const Problem& q) {
  const host::Elements weights(q.weights), ids(q.ids ? *q.ids : q.weights);
  for (int64_t token = 0; token < q.tokens(); ++token) {
    const Exact exact(q, token);
    const std::vector<int64_t> experts = exact.ranking();
    double sum = 0;
    for (int64_t slot = 0; slot < q.k; ++slot) sum += exact.score(experts[size_t(slot)]);
    if (sum < kLeastSum) sum = kLeastSum;
    if (!q.renormalize) sum = 1;
    for (int64_t slot = 0; slot < q.k; ++slot) {
      const int64_t expert = experts[size_t(slot)];
      weights.set(token * q.k + slot, exact.score(expert) / sum * double(q.scale));
      if (q.ids) ids.set_integer(token * q.k + slot, expert);
    }
  }
}

}  // namespace tensorcraft::kernel::moe_router
