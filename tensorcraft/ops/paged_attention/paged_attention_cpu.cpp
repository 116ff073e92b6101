// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/ops/paged_attention/problem.hpp"

#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace tensorcraft::kernel::paged_attention {
namespace {

int64_t integer(const void* integers, int64_t i, int32_t wide) {
  return wide ? static_cast<const int64_t*>(integers)[i] : static_cast<const int32_t*>(integers)[i];
}
int64_t block_of(const Params& p, int64_t b, int64_t j) {
  return integer(p.tables, b * p.table_row + j / p.block_size * p.table_step, p.wide_tables);
}

// The queries of request b: tokens from `first` on.
Request request_of(const Params& p, int64_t b) {
  const int64_t room = int64_t(p.block_size) * p.table_size;
  const int64_t n = integer(p.lengths, b * p.lengths_step, p.wide_lengths);
  Request r{b * p.queries, p.queries, int32_t(n < 0 ? 0 : n < room ? n : room)};
  if (!p.starts) return r;
  const int64_t begin = integer(p.starts, b * p.starts_step, p.wide_starts),
                end = integer(p.starts, (b + 1) * p.starts_step, p.wide_starts);
  if (begin < 0 || end < begin || end > p.tokens)
    fail(ErrorKind::index, "paged_attention: cu_seqlens_q: request ", b, " has tokens [", begin,
         ", ", end, "); they must not decrease and lie in [0, ", p.tokens, "], the rows of q");
  r.first = begin;
  r.queries = int32_t(end - begin);
  return r;
}

// Every block that a query of the request sees.
void check_blocks(const Params& p, int64_t b, const Request& r) {
  if (r.queries == 0) return;
  int begin = r.keys, end = 0;
  for (const int i : {0, r.queries - 1}) {
    const KeyRange range = keys_of(p, r, i);
    if (range.begin == range.end) continue;
    begin = std::min(begin, range.begin);
    end = std::max(end, range.end);
  }
  for (int j = begin - begin % p.block_size; j < end; j += p.block_size)
    if (const int64_t block = block_of(p, b, j); block < 0 || block >= p.blocks)
      fail(ErrorKind::index, "paged_attention: block_tables: entry ", j / p.block_size,
           " of request ", b, " is ", block, ", expected [0, ", p.blocks,
           "), the blocks of k_cache; entries behind the keys in use may hold anything");
}

// f(offset of key j in the cache, its scale) for the keys that a query sees.
template <class F>
void for_keys(const Params& p, int64_t b, const Cache& cache, int head, KeyRange range, F&& f) {
  for (int j = range.begin; j < range.end; ++j) {
    const int64_t block = block_of(p, b, j), row = j % p.block_size;
    f(j, block * cache.block + row * cache.row + head * cache.head,
      cache.scale
          ? cache.scale[block * cache.scale_block + row * cache.scale_row + head * cache.scale_head]
          : 1.0f);
  }
}

// One query of one head, in Floats. T: of q, Code: of the caches.
template <class Float, class T, class Code>
class Row {
 public:
  explicit Row(const Params& p) : p_(p), query_(size_t(p.head_dim)), sums_(size_t(p.v_dim)) {}

  void compute(int64_t b, const Request& r, int i, int h) {
    const KeyRange range = keys_of(p_, r, i);
    const int64_t line = p_.starts ? r.first + i : i, batch = p_.starts ? 0 : b;
    const T* q = static_cast<const T*>(p_.q) + batch * p_.q_strides.batch +
                 line * p_.q_strides.row + h * p_.q_strides.head;
    for (int d = 0; d < p_.head_dim; ++d)
      query_[size_t(d)] = Float(float(q[d * p_.q_strides.step]));
    const Float none = -std::numeric_limits<Float>::infinity();
    Float top = p_.sinks ? Float(p_.sinks[h]) : none;
    weights_.clear();
    for_keys(p_, b, p_.k, h / p_.group, range, [&](int, int64_t at, float scale) {
      weights_.push_back(logit(static_cast<const Code*>(p_.k.data) + at, scale));
      if (!(weights_.back() <= top)) top = weights_.back();  // a NaN stays
    });
    if (top == none) top = 0;
    Float sum = p_.sinks ? std::exp(Float(p_.sinks[h]) - top) : 0;
    for (Float& w : weights_) sum += w = std::exp(w - top);
    std::fill(sums_.begin(), sums_.end(), Float(0));
    for_keys(p_, b, p_.v, h / p_.group, range, [&](int j, int64_t at, float scale) {
      const Code* v = static_cast<const Code*>(p_.v.data) + at;
      const Float weight = weights_[size_t(j - range.begin)] * Float(scale);
      for (int d = 0; d < p_.v_dim; ++d)
        sums_[size_t(d)] += weight * Float(float(v[d * p_.v.step]));
    });
    T* out = static_cast<T*>(p_.out) + batch * p_.out_strides.batch + line * p_.out_strides.row +
             h * p_.out_strides.head;
    for (int d = 0; d < p_.v_dim; ++d)
      out[d * p_.out_strides.step] =
          T(float(weights_.empty() || sum == 0 ? 0 : sums_[size_t(d)] / sum));
    if (p_.lse) p_.lse[(r.first + i) * p_.heads + h] = float(sum == 0 ? none : top + std::log(sum));
  }

 private:
  Float logit(const Code* k, float scale) const {
    Float s = 0;
    for (int d = 0; d < p_.head_dim; ++d) s += query_[size_t(d)] * Float(float(k[d * p_.k.step]));
    s *= Float(p_.scale) * Float(scale);
    return p_.softcap > 0 ? Float(p_.softcap) * std::tanh(s / Float(p_.softcap)) : s;
  }

  const Params& p_;
  std::vector<Float> query_, sums_, weights_;
};

// Tokens of no request, in front of the first and behind the last: 0, and -inf in lse.
template <class T>
void fill_others(const Params& p, int64_t begin, int64_t end) {
  for (int64_t token = begin; token < end; ++token)
    for (int h = 0; h < p.heads; ++h) {
      T* out = static_cast<T*>(p.out) + token * p.out_strides.row + h * p.out_strides.head;
      for (int d = 0; d < p.v_dim; ++d) out[d * p.out_strides.step] = T(0.0f);
      if (p.lse) p.lse[token * p.heads + h] = -std::numeric_limits<float>::infinity();
    }
}

template <class Float>
void compute_all(const Problem& problem, bool on_all_cores) {
  const Params& p = problem.params;
  std::vector<Request> requests;
  for (int64_t b = 0; b < p.batch; ++b) {
    requests.push_back(request_of(p, b));
    check_blocks(p, b, requests.back());
  }
  const auto compute = [&]<class T, class Code>(T*, Code*) {
    const auto heads = [&](int64_t begin, int64_t end) {
      Row<Float, T, Code> row(p);
      for (int64_t n = begin; n < end; ++n) {
        const Request& r = requests[size_t(n / p.heads)];
        for (int i = 0; i < r.queries; ++i) row.compute(n / p.heads, r, i, int(n % p.heads));
      }
    };
    if (p.starts) {
      const Request* last = requests.empty() ? nullptr : &requests.back();
      fill_others<T>(p, 0, last ? requests.front().first : p.tokens);
      if (last) fill_others<T>(p, last->first + last->queries, p.tokens);
    }
    const int64_t count = int64_t(p.batch) * p.heads;
    on_all_cores ? host::parallel_for(count, 1, heads) : heads(0, count);
  };
  host::with_element_type(problem.dtype, [&](auto* q) {
    host::with_element_type(problem.code, [&](auto* code) {
      using T = std::remove_pointer_t<decltype(q)>;
      using Code = std::remove_pointer_t<decltype(code)>;
      constexpr bool is_float =
          std::is_same_v<T, float> || std::is_same_v<T, f16> || std::is_same_v<T, bf16>;
      constexpr bool is_code =
          std::is_same_v<Code, T> || std::is_same_v<Code, e4m3> || std::is_same_v<Code, int8_t>;
      if constexpr (is_float && is_code) compute(q, code);
    });
  });
}

}  // namespace

void cpu(const Problem& q) { compute_all<float>(q, true); }

void reference(const Problem& q) { compute_all<double>(q, false); }

}  // namespace tensorcraft::kernel::paged_attention
