// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/attention/problem.hpp"

#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/micro_kernel.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/host/simd.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace tensorcraft::kernel::attention {
namespace {

using host::MicroKernel;
using host::Slot;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr int kBlockQueries = 256;  // queries of a task at most; packing K and V costs 1/256 then
constexpr int kTileKeys = 192;      // scores of a tile stay in the first-level cache
constexpr int kChunkKeys = 4 * kTileKeys;  // packed at once; stay in the second-level cache

// Rows of head_dim elements, next to each other inside a row.
struct RowsOf {
  const std::byte* data;
  DType dtype;
  int64_t stride, length;

  // The row as floats, in place if it already is.
  const float* read(int64_t row, float* buffer) const {
    const std::byte* from = data + row * stride * int64_t(dtype_bytes(dtype));
    if (dtype == DType::float32) return reinterpret_cast<const float*>(from);
    host::load_row(buffer, from, dtype, 1, length);
    return buffer;
  }
};

RowsOf rows_of(const void* data, DType dtype, const Strides& s, int b, int h, const Params& p) {
  const int64_t offset = b * s.batch + h * s.head;
  return {static_cast<const std::byte*>(data) + offset * int64_t(dtype_bytes(dtype)), dtype, s.row,
          p.head_dim};
}

// Panels of `panel` rows: for each element, the rows' values next to each other; 0 behind the last.
void pack_across(float* to, int panel, const RowsOf& rows, int first, int count, float scale) {
  float* line = host::scratch(Slot::line, rows.length);
  const int64_t panel_floats = panel * rows.length;
  if (count % panel != 0) std::fill_n(to + count / panel * panel_floats, panel_floats, 0.0f);
  for (int r = 0; r < count; ++r) {
    const float* row = rows.read(first + r, line);
    float* column = to + r / panel * panel_floats + r % panel;
    for (int64_t e = 0; e < rows.length; ++e) column[e * panel] = row[e] * scale;
  }
}

// Panels of `panel` elements: for each row, the elements next to each other; 0 behind the last.
void pack_along(float* to, int panel, const RowsOf& rows, int first, int count) {
  float* line = host::scratch(Slot::line, rows.length);
  for (int r = 0; r < count; ++r) {
    const float* row = rows.read(first + r, line);
    for (int64_t e = 0; e < rows.length; e += panel) {
      float* part = to + e * count + int64_t(r) * panel;
      const int64_t n = std::min<int64_t>(panel, rows.length - e);
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
                                                 int64_t head_dim) {
  float next[kWidth], shift[kWidth], keep[kWidth], part[kWidth];
  for (int c = 0; c < kWidth; ++c) next[c] = panel.top[c];
  for (int j = 0; j < keys; ++j)
    for (int c = 0; c < kWidth; ++c) next[c] = host::max_nan(next[c], scores[j * kWidth + c]);
  for (int c = 0; c < kWidth; ++c) {
    shift[c] = host::select(next[c] == kMinusInfinity, 0.0f, next[c]);  // nothing visible yet
    keep[c] = host::exp(panel.top[c] - shift[c]);
    panel.top[c] = next[c];
    part[c] = 0.0f;
  }
  for (int j = 0; j < keys; ++j)
    for (int c = 0; c < kWidth; ++c) {
      const float weight = host::exp(scores[j * kWidth + c] - shift[c]);
      scores[j * kWidth + c] = weight;
      part[c] += weight;
    }
  for (int c = 0; c < kWidth; ++c) panel.sum[c] = panel.sum[c] * keep[c] + part[c];
  for (int64_t e = 0; e < head_dim; ++e)
    for (int c = 0; c < kWidth; ++c) panel.out[e * kWidth + c] *= keep[c];
}

// Micro kernels have 32, 16 or 8 columns.
TC_HOST_CLONES void weigh(float* scores, int keys, int width, const Panel& panel,
                          int64_t head_dim) {
  if (width == 32)
    weigh_columns<32>(scores, keys, panel, head_dim);
  else if (width == 16)
    weigh_columns<16>(scores, keys, panel, head_dim);
  else
    weigh_columns<8>(scores, keys, panel, head_dim);
}

// One (batch, head) and a block of its queries.
class Block {
 public:
  Block(const Params& p, DType dtype, int bh, int first, int count)
      : p_(p),
        kernel_(host::micro_kernel()),
        q_(rows_of(p.q, dtype, p.q_strides, bh / p.heads, bh % p.heads, p)),
        k_(rows_of(p.k, dtype, p.k_strides, bh / p.heads, bh % p.heads / p.group, p)),
        v_(rows_of(p.v, dtype, p.v_strides, bh / p.heads, bh % p.heads / p.group, p)),
        out_(rows_of(p.out, dtype, p.out_strides, bh / p.heads, bh % p.heads, p)),
        lse_(p.lse ? p.lse + int64_t(bh) * p.seq_q : nullptr),
        keys_(visible_keys(p, bh / p.heads)),
        first_(first),
        count_(count),
        padded_dim_(round_up(p.head_dim, kernel_.rows)) {}

  void run() {
    start();
    const int end = key_limit(p_, keys_, first_ + count_ - 1);
    for (int key = 0; key < end; key += kChunkKeys) {
      const int n = std::min(kChunkKeys, end - key);
      packed_k_ = host::scratch(Slot::pack_a, int64_t(round_up(n, kernel_.rows)) * p_.head_dim);
      packed_v_ = host::scratch(Slot::pack_b, int64_t(n) * padded_dim_);
      pack_across(packed_k_, kernel_.rows, k_, key, n, 1.0f);
      pack_along(packed_v_, kernel_.rows, v_, key, n);
      for (int c = 0; c < count_; c += kernel_.columns) add_chunk(c, key, n);
    }
    for (int i = 0; i < count_; ++i) finish(i);
  }

 private:
  void start() {
    const int64_t width = round_up(count_, kernel_.columns);
    queries_ = host::scratch(Slot::row_a, width * p_.head_dim);
    sums_ = host::scratch(Slot::row_b, width * padded_dim_);
    stats_ = host::scratch(Slot::row_c, 2 * width);
    scores_ =
        host::scratch(Slot::tile, int64_t(round_up(kTileKeys, kernel_.rows)) * kernel_.columns);
    pack_across(queries_, kernel_.columns, q_, first_, count_, p_.scale);
    std::fill_n(sums_, width * padded_dim_, 0.0f);
    std::fill_n(stats_, width, kMinusInfinity);
    std::fill_n(stats_ + width, width, 0.0f);
  }

  Panel panel(int column) const {
    const int64_t width = round_up(count_, kernel_.columns);
    return {stats_ + column, stats_ + width + column, sums_ + int64_t(column) * padded_dim_};
  }

  // The queries from `column` on meet keys [key, key + n), which are packed.
  void add_chunk(int column, int key, int n) {
    const int last = std::min(column + kernel_.columns, count_) - 1;
    const int end = std::min(n, key_limit(p_, keys_, first_ + last) - key);
    for (int t = 0; t < end; t += kTileKeys) {
      const int m = std::min(kTileKeys, end - t);
      for (int j = 0; j < m; j += kernel_.rows)
        kernel_.run(p_.head_dim, packed_k_ + int64_t(t + j) * p_.head_dim,
                    queries_ + int64_t(column) * p_.head_dim, scores_ + j * kernel_.columns,
                    kernel_.columns, false);
      hide(column, key + t, m);
      const Panel to = panel(column);
      weigh(scores_, m, kernel_.columns, to, p_.head_dim);
      for (int e = 0; e < padded_dim_; e += kernel_.rows)
        kernel_.run(m, packed_v_ + int64_t(e) * n + int64_t(t) * kernel_.rows, scores_,
                    to.out + int64_t(e) * kernel_.columns, kernel_.columns, true);
    }
  }

  // Under a causal limit, the queries before a key do not see it.
  void hide(int column, int key, int n) {
    if (!p_.causal) return;
    const int first_query = keys_ - p_.seq_q + first_ + column;
    for (int j = 0; j < n; ++j) {
      const int hidden = std::clamp(key + j - first_query, 0, kernel_.columns);
      std::fill_n(scores_ + j * kernel_.columns, hidden, kMinusInfinity);
    }
  }

  void finish(int i) {
    const int width = kernel_.columns, column = i % width;
    const Panel from = panel(i - column);
    const float sum = from.sum[column];
    const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;  // no visible key: 0, not 0 / 0
    float* line = host::scratch(Slot::line, p_.head_dim);
    for (int e = 0; e < p_.head_dim; ++e) line[e] = from.out[e * width + column] * inverse;
    const int64_t offset = (first_ + i) * out_.stride * int64_t(dtype_bytes(out_.dtype));
    host::store_row(const_cast<std::byte*>(out_.data) + offset, line, out_.dtype, 1, p_.head_dim);
    if (lse_) lse_[first_ + i] = sum == 0.0f ? kMinusInfinity : from.top[column] + std::log(sum);
  }

  const Params& p_;
  const MicroKernel& kernel_;
  RowsOf q_, k_, v_, out_;
  float* lse_;
  int keys_, first_, count_, padded_dim_;
  float *queries_ = nullptr, *sums_ = nullptr, *stats_ = nullptr, *scores_ = nullptr;
  float *packed_k_ = nullptr, *packed_v_ = nullptr;
};

// Queries of a task: few enough for four tasks a thread, whole panels so that no row's result
// depends on the choice.
int block_queries(const Params& p, int panel) {
  const int64_t rows = int64_t(p.batch) * p.heads * p.seq_q;
  const int64_t wanted = div_ceil(rows, int64_t(4) * host::num_threads());
  return int(round_up(std::clamp<int64_t>(wanted, 1, kBlockQueries - panel + 1), panel));
}

}  // namespace

void cpu(const Problem& problem) {
  const auto& [p, dtype] = problem;
  constexpr int64_t kGrainProducts = int64_t(1) << 17;  // less is not worth a second thread
  const int block = block_queries(p, host::micro_kernel().columns);
  const int64_t blocks = div_ceil(p.seq_q, block);
  const int64_t products = int64_t(std::min(block, p.seq_q)) * (p.seq_k + 1) * p.head_dim;
  host::parallel_for(
      int64_t(p.batch) * p.heads * blocks, div_ceil(kGrainProducts, products),
      [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          const int first = int(t % blocks) * block;
          Block(p, dtype, int(t / blocks), first, std::min(block, p.seq_q - first)).run();
        }
      });
}

void reference(const Problem& problem) {
  const auto& [p, dtype] = problem;
  const int d = p.head_dim;
  const auto elements = [&](const void* data, const Strides& s, int heads, int rows) {
    return host::Elements(TensorView(const_cast<void*>(data), dtype, {p.batch, heads, rows, d},
                                     {s.batch, s.head, s.row, 1}, Device::cpu()));
  };
  const int heads_k = p.heads / p.group;
  const auto q = elements(p.q, p.q_strides, p.heads, p.seq_q);
  const auto k = elements(p.k, p.k_strides, heads_k, p.seq_k);
  const auto v = elements(p.v, p.v_strides, heads_k, p.seq_k);
  const auto out = elements(p.out, p.out_strides, p.heads, p.seq_q);
  std::vector<double> query(d), weights(p.seq_k), keys, values;
  for (int64_t bh = 0; bh < int64_t(p.batch) * p.heads; ++bh) {
    const int b = int(bh / p.heads), h = int(bh % p.heads);
    const int visible = visible_keys(p, b);
    const int64_t first_key = (int64_t(b) * heads_k + h / p.group) * p.seq_k * d;
    keys.clear();
    values.clear();
    for (int64_t e = 0; e < int64_t(visible) * d; ++e) {
      keys.push_back(k[first_key + e]);
      values.push_back(v[first_key + e]);
    }
    for (int i = 0; i < p.seq_q; ++i) {
      const int64_t row = bh * p.seq_q + i;
      for (int e = 0; e < d; ++e) query[e] = q[row * d + e];
      const int limit = key_limit(p, visible, i);
      double top = kMinusInfinity, sum = 0;
      for (int j = 0; j < limit; ++j) {
        double score = 0;
        for (int e = 0; e < d; ++e) score += query[e] * keys[int64_t(j) * d + e];
        weights[j] = score * p.scale;
        top = std::max(top, weights[j]);
      }
      for (int j = 0; j < limit; ++j)
        sum += weights[j] = std::exp(weights[j] - (std::isinf(top) && top < 0 ? 0 : top));
      for (int e = 0; e < d; ++e) {
        double total = 0;
        for (int j = 0; j < limit; ++j) total += weights[j] * values[int64_t(j) * d + e];
        out.set(row * d + e, sum == 0 ? 0 : total / sum);
      }
      if (p.lse) p.lse[row] = float(sum == 0 ? kMinusInfinity : top + std::log(sum));
    }
  }
}

}  // namespace tensorcraft::kernel::attention
