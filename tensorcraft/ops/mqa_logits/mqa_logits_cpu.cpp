// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/host/simd.hpp"
#include "tensorcraft/ops/mqa_logits/problem.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace tensorcraft::kernel::mqa_logits {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

// Lengths, and every block that a query sees.
void check_pages(const Params& p) {
  if (!p.tables.data) return;
  for (int64_t b = 0; b < p.batch; ++b) {
    if (const int64_t length = p.lengths.at(b, 0); length > p.keys)
      fail(ErrorKind::value, "mqa_logits: lengths: element ", b, " is ", length, ", expected [0, ",
           p.keys, "], the keys that a row of block_tables has room for");
    for (int64_t i = 0; i < p.queries; ++i) {
      const KeyRange range = keys_of(p, b, i);
      for (int j = range.begin; j < range.end; j += p.block_size - j % p.block_size)
        if (const int64_t block = place_of(p, b, j).block; block < 0 || block >= p.blocks)
          fail(ErrorKind::index, "mqa_logits: block_tables: entry ", j / p.block_size,
               " of request ", b, " is ", block, ", expected [0, ", p.blocks,
               "), the blocks of k; entries behind the keys that queries see may hold anything");
    }
  }
}

float scale_of(const Params& p, const KeyPlace& place) {
  return p.k_scale ? p.k_scale[offset(p.scale_strides, place)] : 1.0f;
}

constexpr int64_t kChunk = 64;  // keys that a thread takes at once, so that they stay in its cache

// Keys [begin, end) of query i of request b.
void compute_chunk(const Problem& problem, int64_t b, int64_t i, int begin, int end) {
  const Params& p = problem.params;
  const KeyRange range = keys_of(p, b, i);
  float* const out = p.out + offset(p.out_strides, b, i);
  for (int j = begin; j < end; ++j) out[j * p.out_strides.step] = kNone;
  begin = std::max(begin, range.begin);
  end = std::min(end, range.end);
  if (begin >= end) return;
  const int64_t dim = p.head_dim, bytes = int64_t(dtype_bytes(problem.dtype));
  const auto load = [&](float* to, const void* from, int64_t at, int64_t step) {
    host::load_elements(to, static_cast<const std::byte*>(from) + at * bytes, problem.dtype, step,
                        dim);
  };
  float* const heads = host::scratch(host::Slot::row_a, std::max(int64_t(1), p.heads * dim));
  for (int h = 0; h < p.heads; ++h)
    load(heads + h * dim, p.q, offset(p.q_strides, b, i) + h * p.q_strides.head, p.q_strides.step);
  float* const key = host::scratch(host::Slot::row_b, std::max(int64_t(1), dim));
  const float* const weights = p.weights + offset(p.weights_strides, b, i);
  for (int j = begin; j < end; ++j) {
    const KeyPlace place = place_of(p, b, j);
    load(key, p.k, offset(p.k_strides, place), p.k_strides.step);
    float sum = 0;
    for (int h = 0; h < p.heads; ++h)
      sum += weights[h * p.weights_strides.head] *
             host::max_nan(host::row_dot(heads + h * dim, key, dim), 0.0f);
    out[j * p.out_strides.step] = sum * scale_of(p, place);
  }
}

// One query, in double.
template <class T>
void compute_reference(const Params& p, int64_t b, int64_t i) {
  const KeyRange range = keys_of(p, b, i);
  float* const out = p.out + offset(p.out_strides, b, i);
  for (int j = 0; j < p.keys; ++j) {
    float& logit = out[j * p.out_strides.step];
    logit = kNone;
    if (j < range.begin || j >= range.end) continue;
    const KeyPlace place = place_of(p, b, j);
    const T* const k = static_cast<const T*>(p.k) + offset(p.k_strides, place);
    double sum = 0;
    for (int h = 0; h < p.heads; ++h) {
      const T* const q =
          static_cast<const T*>(p.q) + offset(p.q_strides, b, i) + h * p.q_strides.head;
      double dot = 0;
      for (int d = 0; d < p.head_dim; ++d)
        dot += double(float(q[d * p.q_strides.step])) * double(float(k[d * p.k_strides.step]));
      if (dot < 0) dot = 0;  // a NaN stays
      sum += dot * double(p.weights[offset(p.weights_strides, b, i) + h * p.weights_strides.head]);
    }
    logit = float(sum * double(scale_of(p, place)));
  }
}

}  // namespace

void cpu(const Problem& problem) {
  const Params& p = problem.params;
  check_pages(p);
  const int64_t chunks = div_ceil(int64_t(p.keys), kChunk);
  host::parallel_for(int64_t(p.batch) * p.queries * chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t at = first; at < last; ++at) {
      const int64_t row = at / chunks, begin = at % chunks * kChunk;
      compute_chunk(problem, row / p.queries, row % p.queries, int(begin),
                    int(std::min<int64_t>(begin + kChunk, p.keys)));
    }
  });
}

void reference(const Problem& problem) {
  const Params& p = problem.params;
  check_pages(p);
  host::with_element_type(problem.dtype, [&]<class T>(T*) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, f16> || std::is_same_v<T, bf16> ||
                  std::is_same_v<T, e4m3>)
      for (int64_t row = 0; row < int64_t(p.batch) * p.queries; ++row)
        compute_reference<T>(p, row / p.queries, row % p.queries);
  });
}

}  // namespace tensorcraft::kernel::mqa_logits
