// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/attention.hpp"

#include "tensorcraft/device/attention/mask.cuh"
#include "tensorcraft/op/host/micro_kernel.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/host/simd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tensorcraft::host {
namespace {

using namespace kernel::attention_tiles;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr int kBlockQueries = 256;  // queries of a task at most; packing K and V costs 1/256 then
constexpr int kTileKeys = 192;      // scores of a tile stay in the first-level cache
constexpr int kChunkKeys = 4 * kTileKeys;  // packed at once; stay in the second-level cache

// Panels of `panel` rows: for each element, the rows' values next to each other; 0 behind the last.
void pack_across(float* to, int panel, const AttentionRows& rows, int64_t length, int first,
                 int count, float scale) {
  float* line = scratch(Slot::line, length);
  const int64_t panel_floats = panel * length;
  if (count % panel != 0) std::fill_n(to + count / panel * panel_floats, panel_floats, 0.0f);
  for (int r = 0; r < count; ++r) {
    const float* row = rows.read(first + r, line);
    float* column = to + r / panel * panel_floats + r % panel;
    for (int64_t e = 0; e < length; ++e) column[e * panel] = row[e] * scale;
  }
}

// Panels of `panel` elements: for each row, the elements next to each other; 0 behind the last.
void pack_along(float* to, int panel, const AttentionRows& rows, int64_t length, int first,
                int count) {
  float* line = scratch(Slot::line, length);
  for (int r = 0; r < count; ++r) {
    const float* row = rows.read(first + r, line);
    for (int64_t e = 0; e < length; e += panel) {
      float* part = to + e * count + int64_t(r) * panel;
      const int64_t n = std::min<int64_t>(panel, length - e);
      std::copy_n(row + e, n, part);
      std::fill_n(part + n, panel - n, 0.0f);
    }
  }
}

// Running maximum, sum and output of `width` queries, each query a column.
struct Panel {
  float *top, *sum, *out;
};

// Turns a tile of scores (keys x kWidth) into weights and rescales what was summed before.
template <int kWidth>
[[gnu::always_inline]] inline void weigh_columns(float* scores, int keys, const Panel& panel,
                                                 int64_t v_dim) {
  float next[kWidth], shift[kWidth], keep[kWidth], part[kWidth];
  for (int c = 0; c < kWidth; ++c) next[c] = panel.top[c];
  for (int j = 0; j < keys; ++j)
    for (int c = 0; c < kWidth; ++c) next[c] = max_nan(next[c], scores[j * kWidth + c]);
  for (int c = 0; c < kWidth; ++c) {
    shift[c] = select(next[c] == kMinusInfinity, 0.0f, next[c]);  // nothing visible yet
    keep[c] = exp(panel.top[c] - shift[c]);
    panel.top[c] = next[c];
    part[c] = 0.0f;
  }
  for (int j = 0; j < keys; ++j)
    for (int c = 0; c < kWidth; ++c) {
      const float weight = exp(scores[j * kWidth + c] - shift[c]);
      scores[j * kWidth + c] = weight;
      part[c] += weight;
    }
  for (int c = 0; c < kWidth; ++c) panel.sum[c] = panel.sum[c] * keep[c] + part[c];
  for (int64_t e = 0; e < v_dim; ++e)
    for (int c = 0; c < kWidth; ++c) panel.out[e * kWidth + c] *= keep[c];
}

// Micro kernels have 32, 16 or 8 columns.
TC_HOST_CLONES void weigh(float* scores, int keys, int width, const Panel& panel, int64_t v_dim) {
  if (width == 32)
    weigh_columns<32>(scores, keys, panel, v_dim);
  else if (width == 16)
    weigh_columns<16>(scores, keys, panel, v_dim);
  else
    weigh_columns<8>(scores, keys, panel, v_dim);
}

TC_HOST_CLONES void cap(float* scores, int count, float softcap) {
  const float inverse = 1.0f / softcap;
  for (int i = 0; i < count; ++i) scores[i] = softcap * tanh(scores[i] * inverse);
}

// Returns the factor of q k^T of a head.
float score_scale(const Params& p, int head) {
  return p.scale * scale_of(p.q_scale, head) * scale_of(p.k_scale, head / p.group);
}

class Block {
 public:
  Block(const Params& p, const AttentionTask& task, const AttentionOperands& operands)
      : p_(p),
        kernel_(micro_kernel()),
        task_(task),
        rows_(operands),
        count_(task.count),
        padded_dim_(round_up(p.v_dim, kernel_.rows)) {}

  void run() {
    start();
    // Tiles of keys begin at multiples, whatever the queries are.
    const int end = seen(count_ - 1).end;
    for (int key = seen(0).begin / kTileKeys * kTileKeys; key < end; key += kChunkKeys) {
      const int n = std::min(kChunkKeys, end - key);
      packed_k_ = scratch(Slot::pack_a, int64_t(round_up(n, kernel_.rows)) * p_.head_dim);
      packed_v_ = scratch(Slot::pack_b, int64_t(n) * padded_dim_);
      pack_across(packed_k_, kernel_.rows, rows_.keys, p_.head_dim, key, n, 1.0f);
      pack_along(packed_v_, kernel_.rows, rows_.values, p_.v_dim, key, n);
      for (int c = 0; c < count_; c += kernel_.columns) add_chunk(c, key, n);
    }
    for (int i = 0; i < count_; ++i) finish(i);
  }

 private:
  KeyRange seen(int i) const { return task_.request.seen(task_.first + i); }

  void start() {
    const int64_t width = round_up(count_, kernel_.columns);
    queries_ = scratch(Slot::row_a, width * p_.head_dim);
    sums_ = scratch(Slot::row_b, width * padded_dim_);
    stats_ = scratch(Slot::row_c, 2 * width);
    scores_ = scratch(Slot::tile, int64_t(round_up(kTileKeys, kernel_.rows)) * kernel_.columns);
    pack_across(queries_, kernel_.columns, rows_.q, p_.head_dim, 0, count_,
                score_scale(p_, task_.head));
    std::fill_n(sums_, width * padded_dim_, 0.0f);
    // A sink is a logit without a value that comes first.
    const float sink = sink_of(p_, task_.request.number, task_.head);
    std::fill_n(stats_, width, sink);
    std::fill_n(stats_ + width, width, sink == kMinusInfinity ? 0.0f : 1.0f);
  }

  Panel panel(int column) const {
    const int64_t width = round_up(count_, kernel_.columns);
    return {stats_ + column, stats_ + width + column, sums_ + int64_t(column) * padded_dim_};
  }

  // The queries from `column` on meet keys [key, key + n), which are packed.
  void add_chunk(int column, int key, int n) {
    const int last = std::min(column + kernel_.columns, count_) - 1;
    const int end = std::min(n, seen(last).end - key);
    for (int t = 0; t < end; t += kTileKeys) {
      const int m = std::min(kTileKeys, end - t);
      for (int j = 0; j < m; j += kernel_.rows)
        kernel_.run(p_.head_dim, packed_k_ + int64_t(t + j) * p_.head_dim,
                    queries_ + int64_t(column) * p_.head_dim, scores_ + j * kernel_.columns,
                    kernel_.columns, false);
      if (p_.softcap > 0) cap(scores_, m * kernel_.columns, p_.softcap);
      if (p_.mask.type != MaskType::none)
        rows_.q.dtype == DType::float16 ? add_mask<f16>(column, key + t, m)
                                        : add_mask<bf16>(column, key + t, m);
      hide(column, key + t, m);
      if (rows_.tree.data) hide_by_tree(column, key + t, m);
      const Panel to = panel(column);
      weigh(scores_, m, kernel_.columns, to, p_.v_dim);
      for (int e = 0; e < padded_dim_; e += kernel_.rows)
        kernel_.run(m, packed_v_ + int64_t(e) * n + int64_t(t) * kernel_.rows, scores_,
                    to.out + int64_t(e) * kernel_.columns, kernel_.columns, true);
    }
  }

  template <class T>
  void add_mask(int column, int key, int n) {
    const int columns = std::min(kernel_.columns, count_ - column);
    for (int c = 0; c < columns; ++c) {
      const int64_t row =
          mask_row(p_.mask, task_.batch, task_.head, task_.first + column + c) + key * p_.mask.key;
      for (int j = 0; j < n; ++j) {
        float& score = scores_[j * kernel_.columns + c];
        const float added = mask_at<T>(p_.mask, row + j * p_.mask.key);
        score = added == kMinusInfinity ? added : score + added;
      }
    }
  }

  // Queries whose windows end before a key, and those whose windows begin after it, do not see it.
  void hide(int column, int key, int n) {
    const Window& window = task_.request.window;
    if (window.left == kUnlimited && window.right == kUnlimited) return;
    const Request& r = task_.request;
    const int64_t at = place_of_query(r.queries, r.keys, task_.first + column - r.first);
    const int64_t columns = kernel_.columns;
    for (int j = 0; j < n; ++j) {
      const int64_t distance = key + j - at;
      float* row = scores_ + j * columns;
      std::fill_n(row, std::clamp<int64_t>(distance - window.right, 0, columns), kMinusInfinity);
      const auto kept = std::clamp<int64_t>(distance + window.left + 1, 0, columns);
      std::fill_n(row + kept, columns - kept, kMinusInfinity);
    }
  }

  // A query does not see those of the newest keys that the tree keeps from it.
  void hide_by_tree(int column, int key, int n) {
    const Request& r = task_.request;
    const int newest = r.keys - r.queries, columns = std::min(kernel_.columns, count_ - column);
    for (int c = 0; c < columns; ++c) {
      const int i = task_.first + column + c;
      const TreeRow row{rows_.tree, task_.batch * rows_.tree.batch + i * rows_.tree.row, newest};
      for (int j = std::max(key, newest); j < std::min(key + n, r.seen(i).end); ++j)
        if (!row.sees(j)) scores_[(j - key) * kernel_.columns + c] = kMinusInfinity;
    }
  }

  void finish(int i) {
    const int width = kernel_.columns, column = i % width;
    const Panel from = panel(i - column);
    const float sum = from.sum[column];
    // No visible key: 0, not 0 / 0.
    const float inverse = sum == 0.0f ? 0.0f : scale_of(p_.v_scale, task_.head / p_.group) / sum;
    float* line = scratch(Slot::line, p_.v_dim);
    for (int e = 0; e < p_.v_dim; ++e) line[e] = from.out[e * width + column] * inverse;
    const int64_t offset = i * rows_.out.stride * int64_t(dtype_bytes(rows_.out.dtype));
    store_row(const_cast<std::byte*>(rows_.out.data) + offset, line, rows_.out.dtype,
              rows_.out.step, p_.v_dim);
    if (rows_.lse)
      rows_.lse[i * rows_.lse_step] =
          sum == 0.0f ? kMinusInfinity : from.top[column] + std::log(sum);
  }

  const Params& p_;
  const MicroKernel& kernel_;
  const AttentionTask& task_;
  const AttentionOperands& rows_;
  int count_, padded_dim_;
  float *queries_ = nullptr, *sums_ = nullptr, *stats_ = nullptr, *scores_ = nullptr;
  float *packed_k_ = nullptr, *packed_v_ = nullptr;
};

}  // namespace

StridedRows::StridedRows(const void* of, DType type, int64_t offset, int64_t row_stride,
                         int64_t row_step, int64_t row_length)
    : data(static_cast<const std::byte*>(of) + offset * int64_t(dtype_bytes(type))),
      dtype(type),
      stride(row_stride),
      step(row_step),
      length(row_length) {}

const float* StridedRows::read(int64_t row, float* buffer) const {
  const std::byte* from = data + row * stride * int64_t(dtype_bytes(dtype));
  if (dtype == DType::float32 && step == 1) return reinterpret_cast<const float*>(from);
  load_elements(buffer, from, dtype, step, length);
  return buffer;
}

void attend(const Params& p, const AttentionTask& task, const AttentionOperands& operands) {
  Block(p, task, operands).run();
}

int attention_task_rows(int64_t rows) {
  const int panel = micro_kernel().columns;
  const int64_t wanted = div_ceil(rows, int64_t(4) * num_threads());
  return int(round_up(std::clamp<int64_t>(wanted, 1, kBlockQueries - panel + 1), panel));
}

}  // namespace tensorcraft::host
