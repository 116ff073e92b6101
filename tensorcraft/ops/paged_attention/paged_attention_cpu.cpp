// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/ops/paged_attention/problem.hpp"

#include <algorithm>
#include <array>
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

// One query of one head in double. T: of q, Code: of the caches.
template <class T, class Code>
class Row {
 public:
  explicit Row(const Params& p) : p_(p), query_(size_t(p.head_dim)), sums_(size_t(p.v_dim)) {}

  void compute(int64_t b, const Request& r, int i, int h) {
    const KeyRange range = keys_of(p_, r, i);
    const int64_t line = p_.starts ? r.first + i : i, batch = p_.starts ? 0 : b;
    const T* q = static_cast<const T*>(p_.q) + batch * p_.q_strides.batch +
                 line * p_.q_strides.row + h * p_.q_strides.head;
    for (int d = 0; d < p_.head_dim; ++d)
      query_[size_t(d)] = double(float(q[d * p_.q_strides.step]));
    const double none = -std::numeric_limits<double>::infinity();
    double top = p_.sinks ? double(p_.sinks[h]) : none;
    weights_.clear();
    for_keys(p_, b, p_.k, h / p_.group, range, [&](int, int64_t at, float scale) {
      weights_.push_back(logit(static_cast<const Code*>(p_.k.data) + at, scale));
      if (!(weights_.back() <= top)) top = weights_.back();  // a NaN stays
    });
    if (top == none) top = 0;
    double sum = p_.sinks ? std::exp(double(p_.sinks[h]) - top) : 0;
    for (double& w : weights_) sum += w = std::exp(w - top);
    std::fill(sums_.begin(), sums_.end(), double(0));
    for_keys(p_, b, p_.v, h / p_.group, range, [&](int j, int64_t at, float scale) {
      const Code* v = static_cast<const Code*>(p_.v.data) + at;
      const double weight = weights_[size_t(j - range.begin)] * double(scale);
      for (int d = 0; d < p_.v_dim; ++d)
        sums_[size_t(d)] += weight * double(float(v[d * p_.v.step]));
    });
    T* out = static_cast<T*>(p_.out) + batch * p_.out_strides.batch + line * p_.out_strides.row +
             h * p_.out_strides.head;
    for (int d = 0; d < p_.v_dim; ++d)
      out[d * p_.out_strides.step] =
          T(float(weights_.empty() || sum == 0 ? 0 : sums_[size_t(d)] / sum));
    if (p_.lse) p_.lse[(r.first + i) * p_.heads + h] = float(sum == 0 ? none : top + std::log(sum));
  }

 private:
  double logit(const Code* k, float scale) const {
    double s = 0;
    for (int d = 0; d < p_.head_dim; ++d) s += query_[size_t(d)] * double(float(k[d * p_.k.step]));
    s *= double(p_.scale) * double(scale);
    return p_.softcap > 0 ? double(p_.softcap) * std::tanh(s / double(p_.softcap)) : s;
  }

  const Params& p_;
  std::vector<double> query_, sums_, weights_;
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

std::vector<Request> checked_requests(const Params& p) {
  std::vector<Request> requests;
  for (int64_t b = 0; b < p.batch; ++b) {
    requests.push_back(request_of(p, b));
    check_blocks(p, b, requests.back());
  }
  return requests;
}

template <class T>
void fill_tokens_of_none(const Params& p, const std::vector<Request>& requests) {
  if (!p.starts) return;
  const Request* last = requests.empty() ? nullptr : &requests.back();
  fill_others<T>(p, 0, last ? requests.front().first : p.tokens);
  if (last) fill_others<T>(p, last->first + last->queries, p.tokens);
}

// Calls f with null pointers of the types of q and of the caches.
template <class F>
void with_types(const Problem& problem, F&& f) {
  host::with_element_type(problem.dtype, [&](auto* q) {
    host::with_element_type(problem.code, [&](auto* code) {
      using T = std::remove_pointer_t<decltype(q)>;
      using Code = std::remove_pointer_t<decltype(code)>;
      constexpr bool is_float =
          std::is_same_v<T, float> || std::is_same_v<T, f16> || std::is_same_v<T, bf16>;
      constexpr bool is_code =
          std::is_same_v<Code, T> || std::is_same_v<Code, e4m3> || std::is_same_v<Code, int8_t>;
      if constexpr (is_float && is_code) f(q, code);
    });
  });
}

// What a thread of the float variant takes at once: queries [first, first + queries) of request b,
// heads [head, head + heads), which share a head of the caches.
struct Task {
  int64_t b;
  Request request;
  int first, queries, head, heads;
};

constexpr int kTaskRows = 32;  // a row is a query of a head
constexpr int kBlockKeys = 64;

std::vector<Task> tasks_of(const Params& p, const std::vector<Request>& requests) {
  int64_t rows = 0;
  for (const Request& r : requests) rows += int64_t(r.queries) * p.heads;
  // The heads of a group share what is read, unless threads would have nothing to do then.
  const int most = rows < int64_t(p.group) * host::num_threads() ? 1 : std::min(p.group, kTaskRows);
  std::vector<Task> tasks;
  for (int64_t b = 0; b < p.batch; ++b)
    for (int head = 0, heads; head < p.heads; head += heads) {
      heads = std::min(most, p.group - head % p.group);
      const int step = kTaskRows / heads;
      for (int first = 0; first < requests[size_t(b)].queries; first += step)
        tasks.push_back({b, requests[size_t(b)], first,
                         std::min(step, requests[size_t(b)].queries - first), head, heads});
    }
  return tasks;
}

// Reads each line of the caches once for all rows of a task. What a row computes depends on its own
// keys alone: they are taken four at a time from multiples of four on.
template <class T, class Code>
class TaskRows {
 public:
  TaskRows(const Params& p, const Task& task)
      : p_(p),
        task_(task),
        count_(task.queries * task.heads),
        begin_(std::numeric_limits<int>::max()) {
    for (int i = 0; i < task.queries; ++i) {
      ranges_.push_back(keys_of(p, task.request, task.first + i));
      begin_ = std::min(begin_, ranges_.back().begin);
      end_ = std::max(end_, ranges_.back().end);
    }
    width_ = std::max(0, end_ - begin_);
  }

  void compute() {
    queries_ = host::scratch(host::Slot::row_a, int64_t(count_) * p_.head_dim);
    weights_ = host::scratch(host::Slot::row_b, std::max<int64_t>(1, int64_t(count_) * width_));
    sums_ = host::scratch(host::Slot::row_c, int64_t(count_) * p_.v_dim);
    for (int row = 0; row < count_; ++row)
      read_line(static_cast<const T*>(p_.q) + offset(p_.q_strides, row), p_.q_strides.step,
                p_.head_dim, queries_ + int64_t(row) * p_.head_dim);
    std::fill_n(sums_, int64_t(count_) * p_.v_dim, 0.0f);
    for_blocks(p_.k, p_.head_dim,
               [&](int row, int begin, int end) { add_logits(row, begin, end); });
    for (int row = 0; row < count_; ++row) weigh(row);
    for_blocks(p_.v, p_.v_dim, [&](int row, int begin, int end) { add_values(row, begin, end); });
    for (int row = 0; row < count_; ++row) finish(row);
  }

 private:
  KeyRange range(int row) const { return ranges_[size_t(row / task_.heads)]; }
  int head(int row) const { return task_.head + row % task_.heads; }
  int query(int row) const { return task_.first + row / task_.heads; }
  int64_t offset(const Strides& s, int row) const {
    const int64_t line = (p_.starts ? task_.request.first : 0) + query(row);
    return (p_.starts ? 0 : task_.b) * s.batch + line * s.row + head(row) * s.head;
  }
  // The weight of a key for a row; those of further keys follow.
  float* weight(int row, int key) const {
    return weights_ + int64_t(row) * width_ + (key - begin_);
  }

  template <class Element>
  static void read_line(const Element* from, int64_t step, int64_t dim, float* to) {
    if constexpr (std::is_same_v<Element, e4m3> || std::is_same_v<Element, int8_t>)
      for (int64_t d = 0; d < dim; ++d) to[d] = float(from[d * step]);
    else
      host::load_row(to, from, dtype_of<Element>(), step, dim);
  }

  // f(row, begin, end) for each row and the keys of it in each block, whose lines are there then.
  template <class F>
  void for_blocks(const Cache& cache, int64_t dim, F&& f) {
    float* const buffer = host::scratch(host::Slot::tile, kBlockKeys * dim);
    for (int block = begin_ - begin_ % kBlockKeys; block < end_; block += kBlockKeys) {
      const int first = std::max(block, begin_), last = std::min(block + kBlockKeys, end_);
      for_keys(p_, task_.b, cache, task_.head / p_.group, {first, last},
               [&](int j, int64_t at, float scale) {
                 const Code* line = static_cast<const Code*>(cache.data) + at;
                 float* const copy = buffer + (j - block) * dim;
                 lines_[size_t(j - block)] = copy;
                 scales_[size_t(j - block)] = scale;
                 if constexpr (std::is_same_v<Code, float>)
                   if (cache.step == 1) {
                     lines_[size_t(j - block)] = line;
                     return;
                   }
                 read_line(line, cache.step, dim, copy);
               });
      for (int row = 0; row < count_; ++row) {
        const int begin = std::max(first, range(row).begin), end = std::min(last, range(row).end);
        if (begin < end) f(row, begin, end);
      }
    }
  }
  const float* line(int j) const { return lines_[size_t(j % kBlockKeys)]; }

  void add_logits(int row, int begin, int end) {
    for (int j = begin; j < end; j += host::kLines) {
      host::Lines lines;
      for (int l = 0; l < host::kLines; ++l) lines[l] = line(std::min(j + l, end - 1));
      float dots[host::kLines] = {};
      host::lines_dot(dots, queries_ + int64_t(row) * p_.head_dim, lines, p_.head_dim);
      for (int l = 0; l < std::min(host::kLines, end - j); ++l)
        weight(row, j)[l] = dots[l] * p_.scale * scales_[size_t((j + l) % kBlockKeys)];
    }
  }

  // Logits become weights; their sum and maximum are kept.
  void weigh(int row) {
    const int64_t n = range(row).end - range(row).begin;
    float* const x = weight(row, range(row).begin);
    if (p_.softcap > 0) {
      host::row_scale(x, x, 1 / p_.softcap, 0, n);
      host::row_tanh(x, x, n);
      host::row_scale(x, x, p_.softcap, 0, n);
    }
    const float none = -std::numeric_limits<float>::infinity();
    const float sink = p_.sinks ? p_.sinks[head(row)] : none;
    float top = host::row_max(x, n);
    if (top < sink || sink != sink) top = sink;
    if (top == none) top = 0;
    const float sum = host::row_exp(x, x, top, n) + std::exp(sink - top);
    if (p_.lse)
      p_.lse[(task_.request.first + query(row)) * p_.heads + head(row)] =
          sum == 0 ? none : top + std::log(sum);
    inverses_[size_t(row)] = sum == 0 ? 0 : 1 / sum;
  }

  void add_values(int row, int begin, int end) {
    float* const sums = sums_ + int64_t(row) * p_.v_dim;
    for (int j = begin; j < end; ++j) *weight(row, j) *= scales_[size_t(j % kBlockKeys)];
    const auto add_one = [&](int j) {
      host::row_add_scaled(sums, line(j), *weight(row, j), p_.v_dim);
    };
    int j = begin;
    for (; j < end && j % host::kLines != 0; ++j) add_one(j);
    for (; j + host::kLines <= end; j += host::kLines) {
      const host::Lines lines = {line(j), line(j + 1), line(j + 2), line(j + 3)};
      host::lines_add_scaled(sums, lines, weight(row, j), p_.v_dim);
    }
    for (; j < end; ++j) add_one(j);
  }

  void finish(int row) {
    float* const sums = sums_ + int64_t(row) * p_.v_dim;
    const float inverse = inverses_[size_t(row)];
    if (inverse == 0)
      std::fill_n(sums, p_.v_dim, 0.0f);
    else
      host::row_scale(sums, sums, inverse, 0, p_.v_dim);
    host::store_row(static_cast<T*>(p_.out) + offset(p_.out_strides, row), sums, dtype_of<T>(),
                    p_.out_strides.step, p_.v_dim);
  }

  const Params& p_;
  const Task& task_;
  const int count_;
  int begin_, end_ = 0;
  int64_t width_;
  std::vector<KeyRange> ranges_;
  std::array<const float*, kBlockKeys> lines_;
  std::array<float, kBlockKeys> scales_;
  std::array<float, kTaskRows> inverses_;
  float *queries_, *weights_, *sums_;
};

}  // namespace

void cpu(const Problem& problem) {
  const Params& p = problem.params;
  const std::vector<Request> requests = checked_requests(p);
  const std::vector<Task> tasks = tasks_of(p, requests);
  with_types(problem, [&]<class T, class Code>(T*, Code*) {
    fill_tokens_of_none<T>(p, requests);
    host::parallel_for(int64_t(tasks.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) TaskRows<T, Code>(p, tasks[size_t(i)]).compute();
    });
  });
}

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
