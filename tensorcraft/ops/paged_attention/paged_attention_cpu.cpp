// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/line_kernels.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/op/host/simd.hpp"
#include "tensorcraft/ops/paged_attention/walk.hpp"

#include <array>
#include <cmath>

namespace tensorcraft::kernel::paged_attention {
namespace {

// A thread of the float variant takes this at once: queries [first, first + queries) of request b,
// heads [head, head + heads), which share a head of the caches.
struct Task {
  int64_t b;
  Request request;
  int first, queries, head, heads;
};

constexpr int kTaskRows = 32;  // a row is a query of a head
// Keys whose weights a row has at once. Parts begin at multiples of it, so what a row computes
// depends on its own keys alone, and different threads may take them.
constexpr int kPart = 128;

std::vector<Task> tasks_of(const Params& p, const std::vector<Request>& requests) {
  std::vector<Task> tasks;
  for (int64_t b = 0; b < p.batch; ++b) {
    if (has_tiles(p, requests[size_t(b)])) continue;
    for (int head = 0, heads; head < p.heads; head += heads) {
      heads = std::min(kTaskRows, p.group - head % p.group);
      const int step = kTaskRows / heads;
      for (int first = 0; first < requests[size_t(b)].queries; first += step)
        tasks.push_back({b, requests[size_t(b)], first,
                         std::min(step, requests[size_t(b)].queries - first), head, heads});
    }
  }
  return tasks;
}

// Holds what a row finds in some of its keys: values, each times e^(logit - top), and the sum of
// these.
struct Share {
  float* numbers;  // top, sum, values
  int64_t dim;

  static int64_t size(int64_t dim) { return dim + 2; }
  float& top() const { return numbers[0]; }
  float& sum() const { return numbers[1]; }
  float* values() const { return numbers + 2; }

  // Adds what the row finds in later keys.
  void add(const Share& later) const {
    if (later.sum() == 0) return;
    if (sum() == 0) {
      std::copy_n(later.numbers, size(dim), numbers);
      return;
    }
    const float both = host::max_nan(top(), later.top());
    const float factor = std::exp(top() - both), later_factor = std::exp(later.top() - both);
    top() = both;
    sum() = sum() * factor + later.sum() * later_factor;
    host::row_scale(values(), values(), factor, 0, dim);
    host::row_add_scaled(values(), later.values(), later_factor, dim);
  }
};

// Reads each line of the caches once for all rows of a task. Keys are taken four at a time from
// multiples of four on.
template <class T, class Code>
class TaskRows {
 public:
  TaskRows(const Params& p, const Task& task)
      : p_(p),
        task_(task),
        count_(task.queries * task.heads),
        begin_(std::numeric_limits<int>::max()) {
    for (int i = 0; i < task.queries; ++i) {
      const KeyRange seen = ranges_[size_t(i)] = keys_of(task.request, task.first + i);
      begin_ = std::min(begin_, seen.begin);
      end_ = std::max(end_, seen.end);
    }
  }

  // The parts [first_part, end_part) have all keys; there is at least one.
  int first_part() const { return begin_ / kPart; }
  int end_part() const { return std::max(first_part() + 1, (end_ + kPart - 1) / kPart); }
  int64_t shares_size() const { return count_ * Share::size(p_.v_dim); }

  // The shares of all rows in a part, to memory of shares_size().
  void compute(int part, float* shares) {
    first_ = std::max(begin_, part * kPart);
    last_ = std::min(end_, (part + 1) * kPart);
    for (int row = 0; row < count_; ++row) {
      const KeyRange all = ranges_[size_t(row / task_.heads)];
      const int begin = std::max(all.begin, first_);
      seen_[size_t(row)] = {begin, std::max(begin, std::min(all.end, last_))};
    }
    weights_ = host::scratch(host::Slot::row_b, int64_t(count_) * kPart);
    load_queries();
    const Walk<Code> keys(p_, task_.b, p_.k, task_.head / p_.group, first_),
        values(p_, task_.b, p_.v, task_.head / p_.group, first_),
        next(p_, task_.b, p_.k, task_.head / p_.group, part * kPart + kPart);
    const Walk<Code> keys_pe(p_, task_.b, p_.k_pe, task_.head / p_.group, first_);
    const Behind of_keys{keys_pe, p_.head_dim - p_.k_dim};
    for_quads(keys, of_keys, p_.k, p_.k_dim, values, last_ - first_,
              [&](int j, const host::Lines& lines) { add_logits(j, lines); });
    scale_weights(keys, p_.k, p_.scale);
    for (int row = 0; row < count_; ++row) weigh(row, share(shares, row));
    scale_weights(values, p_.v, 1);
    for_quads(values, Behind{keys_pe, 0}, p_.v, p_.v_dim, next,
              std::clamp(end_ - (part + 1) * kPart, 0, kPart),
              [&](int j, const host::Lines& lines) { add_values(j, lines, shares); });
  }
  void add(float* shares, float* later) const {
    for (int row = 0; row < count_; ++row) share(shares, row).add(share(later, row));
  }
  void finish(float* shares) const {
    for (int row = 0; row < count_; ++row) finish(row, share(shares, row));
  }

 private:
  int head(int row) const { return task_.head + row % task_.heads; }
  int query(int row) const { return task_.first + row / task_.heads; }
  int64_t offset(const Strides& s, int row) const {
    const int64_t line = (p_.starts ? task_.request.first : 0) + query(row);
    return (p_.starts ? 0 : task_.b) * s.batch + line * s.row + head(row) * s.head;
  }
  // The weight of a key for a row; those of further keys follow.
  float* weight(int row, int key) const { return weights_ + int64_t(row) * kPart + key % kPart; }
  Share share(float* shares, int row) const {
    return {shares + row * Share::size(p_.v_dim), p_.v_dim};
  }

  void load_queries() {
    queries_ = host::scratch(host::Slot::row_a, int64_t(count_) * p_.head_dim);
    for (int row = 0; row < count_; ++row) {
      float* const to = queries_ + int64_t(row) * p_.head_dim;
      load_line(to, static_cast<const T*>(p_.q) + offset(p_.q_strides, row), p_.q_strides.step,
                p_.q_dim);
      if (p_.q_dim < p_.head_dim)
        load_line(to + p_.q_dim, static_cast<const T*>(p_.q_pe) + offset(p_.q_pe_strides, row),
                  p_.q_pe_strides.step, p_.head_dim - p_.q_dim);
    }
  }
  // The elements of k_pe behind those of a line.
  struct Behind {
    Walk<Code> walk;
    int64_t dim;  // 0: none
  };
  static const float* read_lines(const Code* from, int64_t step, int64_t n, float* buffer) {
    if constexpr (std::is_same_v<Code, float>)
      if (step == 1) return from;
    load_line(buffer, from, step, n);
    return buffer;
  }
  const float* read_both(const Code* from, int64_t step, int64_t dim, Behind& behind,
                         float* buffer) const {
    load_line(buffer, from, step, dim);
    load_line(buffer + dim, behind.walk.line(), p_.k_pe.step, behind.dim);
    behind.walk.next();
    return buffer;
  }
  // Asks for a line that is read later, as pages lie anywhere and no machine foresees the next.
  static void fetch(const Code* line, int64_t dim) {
    for (int64_t d = 0; d < dim; d += 64 / int64_t(sizeof(Code))) __builtin_prefetch(line + d);
  }

  // f(j, lines of j to j + 3) for the keys of this part; a line of a key outside is another's.
  // Meanwhile fetches `ahead` lines of what is read after them.
  template <class F>
  void for_quads(Walk<Code> walk, Behind behind, const Cache& cache, int64_t own_dim,
                 Walk<Code> following, int ahead, F&& f) {
    const int64_t dim = own_dim + behind.dim;
    float* const buffer = host::scratch(host::Slot::tile, host::kLines * dim);
    const bool side_by_side = cache.step == 1 && cache.row == dim && behind.dim == 0;
    for (int j = first_ - first_ % host::kLines; j < last_; j += host::kLines) {
      const int begin = std::max(j, first_), end = std::min(j + host::kLines, last_);
      host::Lines lines;
      for (int key = begin, n; key < end; key += n) {
        n = side_by_side ? std::min(end - key, walk.left()) : 1;
        float* const to = buffer + (key - j) * dim;
        const float* const read = behind.dim
                                      ? read_both(walk.line(), cache.step, own_dim, behind, to)
                                      : read_lines(walk.line(), cache.step, n * dim, to);
        for (int l = 0; l < n; ++l) lines[key - j + l] = read + l * dim;
        walk.next(n);
      }
      for (int l = 0; l < host::kLines; ++l)
        if (j + l < begin || j + l >= end) lines[l] = lines[begin - j];
      for (int key = begin; key < end && ahead > 0; ++key, --ahead, following.next())
        fetch(following.line(), dim);
      f(j, lines);
    }
  }

  // Do all rows see the keys j to j + 3?
  bool all_see(int j) const {
    const auto sees = [j](const KeyRange& r) { return r.begin <= j && j + host::kLines <= r.end; };
    return std::all_of(seen_.begin(), seen_.begin() + count_, sees);
  }

  void add_logits(int j, const host::Lines& lines) {
    if (all_see(j))
      return host::line_kernels().dot({weight(0, j), kPart}, {queries_, p_.head_dim}, count_, lines,
                                      p_.head_dim);
    for (int row = 0; row < count_; ++row) {
      const auto [begin, end] = seen_[size_t(row)];
      float dots[host::kLines];
      host::line_kernels().dot({dots, host::kLines},
                               {queries_ + int64_t(row) * p_.head_dim, p_.head_dim}, 1, lines,
                               p_.head_dim);
      for (int key = std::max(begin, j); key < std::min(end, j + host::kLines); ++key)
        *weight(row, key) = dots[key - j];
    }
  }

  // Weights of the keys of this part, times `scale` and each key's own.
  void scale_weights(Walk<Code> walk, const Cache& cache, float scale) {
    float scales[kPart];
    if (cache.scale)
      for (int key = first_; key < last_; ++key, walk.next()) scales[key % kPart] = walk.scale();
    for (int row = 0; row < count_; ++row) {
      const auto [begin, end] = seen_[size_t(row)];
      float* const x = weight(row, begin);
      if (scale != 1) host::row_scale(x, x, scale, 0, end - begin);
      if (cache.scale) host::row_multiply(x, scales + begin % kPart, end - begin);
    }
  }

  // Logits become weights.
  void weigh(int row, const Share& to) {
    const auto [begin, end] = seen_[size_t(row)];
    const int64_t n = end - begin;
    float* const x = weight(row, begin);
    if (p_.softcap > 0) {
      host::row_scale(x, x, 1 / p_.softcap, 0, n);
      host::row_tanh(x, x, n);
      host::row_scale(x, x, p_.softcap, 0, n);
    }
    if (p_.tree.data) hide(row, x, begin, end);
    to.top() = host::row_max(x, n);
    to.sum() = host::row_exp(x, x, to.top() == kNone ? 0 : to.top(), n);
    std::fill_n(to.values(), to.dim, 0.0f);
  }

  // The tree hides some of the row's keys [begin, end), whose logits are x.
  void hide(int row, float* x, int begin, int end) const {
    const TreeRow tree = tree_row(p_, task_.b, task_.request, query(row));
    for (int key = std::max(begin, tree.newest); key < end; ++key)
      if (!tree.sees(key)) x[key - begin] = kNone;
  }

  void add_values(int j, const host::Lines& lines, float* shares) {
    if (all_see(j))
      return host::line_kernels().add_scaled({share(shares, 0).values(), Share::size(p_.v_dim)},
                                             {weight(0, j), kPart}, count_, lines, p_.v_dim);
    for (int row = 0; row < count_; ++row) {
      const int begin = std::max(seen_[size_t(row)].begin, j),
                end = std::min(seen_[size_t(row)].end, j + host::kLines);
      float* const sums = share(shares, row).values();
      if (end - begin == host::kLines)
        host::line_kernels().add_scaled({sums, p_.v_dim}, {weight(row, j), kPart}, 1, lines,
                                        p_.v_dim);
      else
        for (int key = begin; key < end; ++key)
          host::row_add_scaled(sums, lines[key - j], *weight(row, key), p_.v_dim);
    }
  }

  void finish(int row, const Share& all) const {
    const float sink = p_.sinks ? p_.sinks[head(row)] : kNone;
    float top = all.top() < sink || sink != sink ? sink : all.top();
    if (top == kNone) top = 0;
    const float factor = all.sum() == 0 ? 0 : std::exp(all.top() - top);
    const float sum = all.sum() * factor + std::exp(sink - top);
    if (p_.lse)
      p_.lse[(task_.request.first + query(row)) * p_.heads + head(row)] =
          sum == 0 ? kNone : top + std::log(sum);
    if (factor == 0 || sum == 0)
      std::fill_n(all.values(), all.dim, 0.0f);
    else
      host::row_scale(all.values(), all.values(), factor / sum, 0, all.dim);
    host::store_row(static_cast<T*>(p_.out) + offset(p_.out_strides, row), all.values(),
                    dtype_of<T>(), p_.out_strides.step, p_.v_dim);
  }

  static constexpr float kNone = -std::numeric_limits<float>::infinity();
  const Params& p_;
  const Task& task_;
  const int count_;
  int begin_, end_ = 0;                     // keys that some row sees
  int first_, last_;                        // those of the part
  std::array<KeyRange, kTaskRows> ranges_;  // of each query
  std::array<KeyRange, kTaskRows> seen_;    // of each row in the part
  float *queries_, *weights_;
};

// All parts of a task, one after the other.
template <class T, class Code>
void compute_alone(const Params& p, const Task& task) {
  TaskRows<T, Code> rows(p, task);
  float* const shares = host::scratch(host::Slot::row_c, rows.shares_size());
  float* const later = host::scratch(host::Slot::row_d, rows.shares_size());
  rows.compute(rows.first_part(), shares);
  for (int part = rows.first_part() + 1; part < rows.end_part(); ++part) {
    rows.compute(part, later);
    rows.add(shares, later);
  }
  rows.finish(shares);
}

// A part of a task, and where its shares are.
struct Piece {
  const Task* task;
  int part;
  int64_t shares, size;
};

template <class T, class Code>
std::vector<Piece> pieces_of(const Params& p, const std::vector<Task>& tasks) {
  std::vector<Piece> pieces;
  int64_t at = 0;
  for (const Task& task : tasks) {
    const TaskRows<T, Code> rows(p, task);
    for (int part = rows.first_part(); part < rows.end_part(); ++part, at += rows.shares_size())
      pieces.push_back({&task, part, at, rows.shares_size()});
  }
  return pieces;
}

// Gives the same bits as compute_alone() of each task. Threads share the parts.
template <class T, class Code>
void compute_parts(const Params& p, const std::vector<Piece>& pieces) {
  float* const shares =
      host::scratch(host::Slot::pack_b, pieces.back().shares + pieces.back().size);
  host::parallel_for(int64_t(pieces.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Piece& piece = pieces[size_t(i)];
      TaskRows<T, Code>(p, *piece.task).compute(piece.part, shares + piece.shares);
    }
  });
  for (size_t i = 0, next; i < pieces.size(); i = next) {
    const TaskRows<T, Code> rows(p, *pieces[i].task);
    for (next = i + 1; next < pieces.size() && pieces[next].task == pieces[i].task; ++next)
      rows.add(shares + pieces[i].shares, shares + pieces[next].shares);
    rows.finish(shares + pieces[i].shares);
  }
}

}  // namespace

void cpu(const Problem& problem) {
  constexpr int kTasksPerThread = 4;                 // with fewer, threads share their parts
  constexpr int64_t kMostShares = int64_t(1) << 24;  // floats: not if these would take more
  const Params& p = problem.params;
  const std::vector<Request> requests = checked_requests(p);
  const std::vector<Task> tasks = tasks_of(p, requests);
  compute_tiles(problem, requests);
  with_types(problem, [&]<class T, class Code>(T*, Code*) {
    fill_tokens_of_none<T>(p, requests);
    if (tasks.empty()) return;
    if (int64_t(tasks.size()) < int64_t(kTasksPerThread) * host::num_threads()) {
      const std::vector<Piece> pieces = pieces_of<T, Code>(p, tasks);
      if (pieces.back().shares <= kMostShares) return compute_parts<T, Code>(p, pieces);
    }
    host::parallel_for(int64_t(tasks.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) compute_alone<T, Code>(p, tasks[size_t(i)]);
    });
  });
}

}  // namespace tensorcraft::kernel::paged_attention
