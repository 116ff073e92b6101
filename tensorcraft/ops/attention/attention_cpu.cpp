// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/attention/problem.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/attention.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/device/attention/mask.cuh"
#include "tensorcraft/device/attention/request.cuh"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

namespace tensorcraft::kernel::attention {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

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

std::vector<host::AttentionTask> all_tasks(const Params& p) {
  const int block = host::attention_task_rows(int64_t(p.batch) * p.heads * p.seq_q);
  std::vector<host::AttentionTask> tasks;
  for (const Request& r : all_requests(p))
    for (int h = 0; h < p.heads; ++h)
      for (int i = 0; i < r.queries; i += block)
        tasks.push_back(
            {p.q_starts ? 0 : r.number, h, r, r.first + i, std::min(block, r.queries - i)});
  return tasks;
}

host::StridedRows rows_of(const void* data, DType dtype, const Strides& s, int b, int h, int first,
                          int length) {
  return {data, dtype, b * s.batch + h * s.head + first * s.row, s.row, 1, length};
}

void run_task(const Problem& problem, const host::AttentionTask& t) {
  const auto& [p, dtype, out_dtype] = problem;
  const int of_keys = t.head / p.group, first_key = t.request.first_key;
  const auto keys = rows_of(p.k, dtype, p.k_strides, t.batch, of_keys, first_key, p.head_dim);
  const auto values = rows_of(p.v, dtype, p.v_strides, t.batch, of_keys, first_key, p.v_dim);
  host::attend(
      p, t,
      {.q = rows_of(p.q, dtype, p.q_strides, t.batch, t.head, t.first, p.head_dim),
       .out = rows_of(p.out, out_dtype, p.out_strides, t.batch, t.head, t.first, p.v_dim),
       .keys = keys,
       .values = values,
       .lse = p.lse ? p.lse + (int64_t(t.batch) * p.heads + t.head) * p.seq_q + t.first : nullptr});
}

}  // namespace

void cpu(const Problem& problem) {
  const Params& p = problem.params;
  constexpr int64_t kGrainProducts = int64_t(1) << 17;  // less is not worth a second thread
  const std::vector<host::AttentionTask> tasks = all_tasks(p);
  int64_t products = 1;
  for (const host::AttentionTask& t : tasks)
    products = std::max(products, int64_t(t.count) * (t.request.keys + 1) * p.head_dim);
  host::parallel_for(int64_t(tasks.size()), div_ceil(kGrainProducts, products),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t t = begin; t < end; ++t) run_task(problem, tasks[size_t(t)]);
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
