// SPDX-License-Identifier: Apache-2.0
// Requests of many queries on the host: tiles of scores, as in attention.
#include "tensorcraft/op/host/attention.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/ops/paged_attention/plan.h"
#include "tensorcraft/ops/paged_attention/walk.hpp"

namespace tensorcraft::kernel::paged_attention {
namespace {

// Keys or values of a head of a request, times their scales. Rows in front of `first` are 0: no
// query sees them, and their pages are not read.
template <class Code>
class PagedRows final : public host::AttentionRows {
 public:
  PagedRows(const Params& p, int64_t b, const Cache& cache, int head, int64_t length, int first)
      : p_(p), b_(b), cache_(cache), head_(head), length_(length), first_(first) {}

  const float* read(int64_t row, float* buffer) const override {
    if (row < first_) return std::fill_n(buffer, length_, 0.0f), buffer;
    Walk<Code> walk(p_, b_, cache_, head_, int(row));
    const Code* const from = walk.line();
    if constexpr (std::is_same_v<Code, float>)
      if (cache_.step == 1 && !cache_.scale) return from;
    load_line(buffer, from, cache_.step, length_);
    if (cache_.scale) host::row_scale(buffer, buffer, walk.scale(), 0, length_);
    return buffer;
  }

 private:
  const Params& p_;
  const int64_t b_;
  const Cache& cache_;
  const int head_;
  const int64_t length_;
  const int first_;
};

// The call as attention has it, but for scales, which come with the rows.
attention_tiles::Params without_scales(const Params& p) {
  attention_tiles::Params a = as_attention(p);
  a.k_scale = a.v_scale = {};
  return a;
}

std::vector<host::AttentionTask> tile_tasks(const Params& p, const std::vector<Request>& requests) {
  const int rows = host::attention_task_rows(p.tokens * p.heads);
  std::vector<host::AttentionTask> tasks;
  for (int b = 0; b < p.batch; ++b) {
    const Request& r = requests[size_t(b)];
    if (!has_tiles(p, r)) continue;
    const int first = p.starts ? int(r.first) : 0;
    for (int head = 0; head < p.heads; ++head)
      for (int i = 0; i < r.queries; i += rows)
        tasks.push_back({p.starts ? 0 : b,
                         head,
                         {b, first, r.queries, 0, r.keys, r.window},
                         first + i,
                         std::min(rows, r.queries - i)});
  }
  return tasks;
}

template <class T, class Code>
void run_tiles(const Params& p, const attention_tiles::Params& a, const host::AttentionTask& t) {
  const int b = t.request.number, key_head = t.head / p.group,
            first = t.request.seen(t.first).begin;
  const PagedRows<Code> keys(p, b, p.k, key_head, p.head_dim, first),
      values(p, b, p.v, key_head, p.v_dim, first);
  const auto rows = [&](const void* data, const Strides& s, int length) {
    const int64_t at = t.batch * s.batch + t.first * s.row + t.head * s.head;
    return host::StridedRows(data, dtype_of<T>(), at, s.row, s.step, length);
  };
  const int64_t token = int64_t(t.batch) * p.queries + t.first;
  host::attend(a, t,
               {.q = rows(p.q, p.q_strides, p.head_dim),
                .out = rows(p.out, p.out_strides, p.v_dim),
                .keys = keys,
                .values = values,
                .lse = p.lse ? p.lse + token * p.heads + t.head : nullptr,
                .lse_step = p.heads,
                .tree = p.tree});
}

}  // namespace

void compute_tiles(const Problem& problem, const std::vector<Request>& requests) {
  const Params& p = problem.params;
  const std::vector<host::AttentionTask> tasks = tile_tasks(p, requests);
  const attention_tiles::Params a = without_scales(p);
  with_types(problem, [&]<class T, class Code>(T*, Code*) {
    host::parallel_for(int64_t(tasks.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run_tiles<T, Code>(p, a, tasks[size_t(i)]);
    });
  });
}

}  // namespace tensorcraft::kernel::paged_attention
