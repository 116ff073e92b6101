// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/attention/problem.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/micro_kernel.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/host/simd.hpp"
#include "tensorcraft/device/attention/mask.cuh"
#include "tensorcraft/device/attention/request.cuh"

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

// Rows of `length` elements, next to each other inside a row.
struct RowsOf {
  const std::byte* data;
  DType dtype;
  int64_t stride, length;

  // The row as floats, in place if it already is.
  const float* read(int64_t row, float* buffer) const {
    const std::byte* from = data + row * stride * int64_t(dtype_bytes(dtype));
    if (dtype == DType::float32) return reinterpret_cast<const float*>(from);
    if (dtype == DType::float8_e4m3fn)
      for (int64_t e = 0; e < length; ++e)
        buffer[e] = float(reinterpret_cast<const e4m3*>(from)[e]);
    else
      host::load_row(buffer, from, dtype, 1, length);
    return buffer;
  }
};

RowsOf rows_of(const void* data, DType dtype, const Strides& s, int b, int h, int first,
               int length) {
  const int64_t offset = b * s.batch + h * s.head + first * s.row;
  return {static_cast<const std::byte*>(data) + offset * int64_t(dtype_bytes(dtype)), dtype, s.row,
          length};
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
                                                 int64_t v_dim) {
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
  for (int i = 0; i < count; ++i) scores[i] = softcap * host::tanh(scores[i] * inverse);
}

// Returns the factor of q k^T of a head.
float score_scale(const Params& p, int head) {
  return p.scale * scale_of(p.q_scale, head) * scale_of(p.k_scale, head / p.group);
}

// Queries of one head, and the request whose keys they see.
struct Task {
  int batch, head;
  Request request;
  int first, count;  // rows of q
};

class Block {
 public:
  Block(const Params& p, DType dtype, DType out_dtype, const Task& t)
      : p_(p),
        kernel_(host::micro_kernel()),
        task_(t),
        q_(rows_of(p.q, dtype, p.q_strides, t.batch, t.head, t.first, p.head_dim)),
        k_(rows_of(p.k, dtype, p.k_strides, t.batch, t.head / p.group, t.request.first_key,
                   p.head_dim)),
        v_(rows_of(p.v, dtype, p.v_strides, t.batch, t.head / p.group, t.request.first_key,
                   p.v_dim)),
        out_(rows_of(p.out, out_dtype, p.out_strides, t.batch, t.head, t.first, p.v_dim)),
        lse_(p.lse ? p.lse + (int64_t(t.batch) * p.heads + t.head) * p.seq_q + t.first : nullptr),
        count_(t.count),
        padded_dim_(round_up(p.v_dim, kernel_.rows)) {}

  void run() {
    start();
    // Tiles of keys begin at multiples, whatever the queries are.
    const int end = seen(count_ - 1).end;
    for (int key = seen(0).begin / kTileKeys * kTileKeys; key < end; key += kChunkKeys) {
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
  KeyRange seen(int i) const { return task_.request.seen(task_.first + i); }

  void start() {
    const int64_t width = round_up(count_, kernel_.columns);
    queries_ = host::scratch(Slot::row_a, width * p_.head_dim);
    sums_ = host::scratch(Slot::row_b, width * padded_dim_);
    stats_ = host::scratch(Slot::row_c, 2 * width);
    scores_ =
        host::scratch(Slot::tile, int64_t(round_up(kTileKeys, kernel_.rows)) * kernel_.columns);
    pack_across(queries_, kernel_.columns, q_, 0, count_, score_scale(p_, task_.head));
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
        q_.dtype == DType::float16 ? add_mask<f16>(column, key + t, m)
                                   : add_mask<bf16>(column, key + t, m);
      hide(column, key + t, m);
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

  void finish(int i) {
    const int width = kernel_.columns, column = i % width;
    const Panel from = panel(i - column);
    const float sum = from.sum[column];
    // No visible key: 0, not 0 / 0.
    const float inverse = sum == 0.0f ? 0.0f : scale_of(p_.v_scale, task_.head / p_.group) / sum;
    float* line = host::scratch(Slot::line, p_.v_dim);
    for (int e = 0; e < p_.v_dim; ++e) line[e] = from.out[e * width + column] * inverse;
    const int64_t offset = i * out_.stride * int64_t(dtype_bytes(out_.dtype));
    host::store_row(const_cast<std::byte*>(out_.data) + offset, line, out_.dtype, 1, p_.v_dim);
    if (lse_) lse_[i] = sum == 0.0f ? kMinusInfinity : from.top[column] + std::log(sum);
  }

  const Params& p_;
  const MicroKernel& kernel_;
  const Task& task_;
  RowsOf q_, k_, v_, out_;
  float* lse_;
  int count_, padded_dim_;
  float *queries_ = nullptr, *sums_ = nullptr, *stats_ = nullptr, *scores_ = nullptr;
  float *packed_k_ = nullptr, *packed_v_ = nullptr;
};

// The rows of every batch by their requests. Of a ragged batch they must be in order.
std::vector<Request> all_requests(const Params& p) {
  std::vector<Request> all;
  if (!p.q_starts) {
    for (int b = 0; b < p.batch; ++b) all.push_back(whole_request(p, b));
    return all;
  }
  const auto check = [&](const char* name, const void* starts, int32_t wide, int rows) {
    for (int b = 0; b <= p.requests; ++b) {
      const int64_t begin = integer_at(starts, b, wide);
      const int64_t end = b < p.requests ? integer_at(starts, b + 1, wide) : begin;
      if (begin < 0 || end < begin || end > rows)
        fail(ErrorKind::index, "attention: ", name, ": request ", b, " has tokens [", begin, ", ",
             end, "); they must not decrease and lie in [0, ", rows, "], the rows of ",
             name == std::string_view("cu_seqlens_q") ? "q" : "k");
    }
  };
  check("cu_seqlens_q", p.q_starts, p.wide_q_starts, p.seq_q);
  check("cu_seqlens_k", p.k_starts, p.wide_k_starts, p.seq_k);
  for (int s = 0; s < spans(p); ++s) all.push_back(request_of_span(p, s));
  return all;
}

// Few enough queries each for four tasks a thread; whole panels, so that no row's result depends on
// the choice.
std::vector<Task> all_tasks(const Params& p, int panel) {
  const int64_t rows = int64_t(p.batch) * p.heads * p.seq_q;
  const int64_t wanted = div_ceil(rows, int64_t(4) * host::num_threads());
  const int block = int(round_up(std::clamp<int64_t>(wanted, 1, kBlockQueries - panel + 1), panel));
  std::vector<Task> tasks;
  for (const Request& r : all_requests(p))
    for (int h = 0; h < p.heads; ++h)
      for (int i = 0; i < r.queries; i += block)
        tasks.push_back(
            {p.q_starts ? 0 : r.number, h, r, r.first + i, std::min(block, r.queries - i)});
  return tasks;
}

}  // namespace

void cpu(const Problem& problem) {
  const auto& [p, dtype, out_dtype] = problem;
  constexpr int64_t kGrainProducts = int64_t(1) << 17;  // less is not worth a second thread
  const std::vector<Task> tasks = all_tasks(p, host::micro_kernel().columns);
  int64_t products = 1;
  for (const Task& t : tasks)
    products = std::max(products, int64_t(t.count) * (t.request.keys + 1) * p.head_dim);
  host::parallel_for(int64_t(tasks.size()), div_ceil(kGrainProducts, products),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t t = begin; t < end; ++t)
                         Block(p, dtype, out_dtype, tasks[size_t(t)]).run();
                     });
}

namespace {

// The tensors of a call as doubles, by row-major index.
struct Doubles {
  host::Elements q, k, v, out;

  Doubles(const Params& p, DType dtype, DType out_dtype)
      : q(elements(p.q, dtype, p.q_strides, {p.batch, p.heads, p.seq_q, p.head_dim})),
        k(elements(p.k, dtype, p.k_strides, {p.batch, p.heads / p.group, p.seq_k, p.head_dim})),
        v(elements(p.v, dtype, p.v_strides, {p.batch, p.heads / p.group, p.seq_k, p.v_dim})),
        out(elements(p.out, out_dtype, p.out_strides, {p.batch, p.heads, p.seq_q, p.v_dim})) {}

  static host::Elements elements(const void* data, DType dtype, const Strides& s,
                                 const Dims& shape) {
    return host::Elements(TensorView(const_cast<void*>(data), dtype, shape,
                                     {s.batch, s.head, s.row, 1}, Device::cpu()));
  }
};

// The elements of a request's keys and values of one head.
struct KeysOfHead {
  std::vector<double> keys, values;

  KeysOfHead(const Params& p, const Doubles& t, const Request& r, int b, int h) {
    const int64_t first = (int64_t(b) * (p.heads / p.group) + h / p.group) * p.seq_k + r.first_key;
    for (int64_t e = 0; e < int64_t(r.keys) * p.head_dim; ++e)
      keys.push_back(t.k[first * p.head_dim + e]);
    for (int64_t e = 0; e < int64_t(r.keys) * p.v_dim; ++e)
      values.push_back(t.v[first * p.v_dim + e]);
  }
};

// Query i of a head.
void compute_row(const Problem& problem, const Doubles& t, const KeysOfHead& of_head,
                 const Request& r, int b, int h, int i) {
  const Params& p = problem.params;
  const bool is_half = problem.dtype == DType::float16;
  const int64_t row = (int64_t(b) * p.heads + h) * p.seq_q + i;
  const KeyRange seen = r.seen(i);
  const int64_t mask = mask_row(p.mask, b, h, i);
  const double sink = sink_of(p, r.number, h);
  const double scale = double(p.scale) * scale_of(p.q_scale, h) * scale_of(p.k_scale, h / p.group);
  const double v_scale = scale_of(p.v_scale, h / p.group);
  std::vector<double> query, weights, out(size_t(p.v_dim));
  for (int e = 0; e < p.head_dim; ++e) query.push_back(t.q[row * p.head_dim + e]);
  std::vector<int> keys;
  double top = sink;
  for (int j = seen.begin; j < seen.end; ++j) {
    const int64_t at = mask + j * p.mask.key;
    const double added = is_half ? mask_at<f16>(p.mask, at) : mask_at<bf16>(p.mask, at);
    if (added == kMinusInfinity) continue;
    const double* key = of_head.keys.data() + int64_t(j) * p.head_dim;
    double score = 0;
    for (int e = 0; e < p.head_dim; ++e) score += query[size_t(e)] * key[e];
    score *= scale;
    if (p.softcap > 0) score = p.softcap * std::tanh(score / p.softcap);
    keys.push_back(j);
    weights.push_back(score + added);
    top = std::max(top, weights.back());
  }
  if (top == kMinusInfinity) top = 0;
  double sum = std::exp(sink - top);
  for (size_t n = 0; n < keys.size(); ++n) {
    const double* value = of_head.values.data() + int64_t(keys[n]) * p.v_dim;
    const double weight = std::exp(weights[n] - top);
    sum += weight;
    for (int e = 0; e < p.v_dim; ++e) out[size_t(e)] += weight * value[e];
  }
  for (int e = 0; e < p.v_dim; ++e)
    t.out.set(row * p.v_dim + e, keys.empty() || sum == 0 ? 0 : out[size_t(e)] / sum * v_scale);
  if (p.lse) p.lse[row] = float(sum == 0 ? kMinusInfinity : top + std::log(sum));
}

}  // namespace

void reference(const Problem& problem) {
  const Params& p = problem.params;
  const Doubles tensors(p, problem.dtype, problem.out_dtype);
  for (const Request& r : all_requests(p))
    for (int h = 0; h < p.heads; ++h) {
      const int b = p.q_starts ? 0 : r.number;
      const KeysOfHead of_head(p, tensors, r, b, h);
      for (int i = 0; i < r.queries; ++i)
        compute_row(problem, tensors, of_head, r, b, h, r.first + i);
    }
}

}  // namespace tensorcraft::kernel::attention
