// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/device/index.h"
#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/ops/paged_attention/problem.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

// The requests of a call, as the host variants read and check them.
namespace tensorcraft::kernel::paged_attention {

inline int64_t block_of(const Params& p, int64_t b, int64_t j) {
  return integer_at(p.tables, b * p.table_row + j / p.block_size * p.table_step, p.wide_tables);
}

// The queries of request b: tokens from `first` on.
inline Request request_of(const Params& p, int64_t b) {
  const int64_t length = integer_at(p.lengths, b * p.lengths_step, p.wide_lengths);
  const int room = p.block_size * p.table_size;
  if (length > room)
    fail(ErrorKind::value, "paged_attention: lengths: element ", b, " is ", length,
         ", expected [0, ", room, "], the keys that a row of block_tables has room for");
  Request r{b * p.queries, p.queries, clamped(length, 0, room), window_of_request(p, b)};
  if (!p.starts) return r;
  const int64_t begin = integer_at(p.starts, b * p.starts_step, p.wide_starts),
                end = integer_at(p.starts, (b + 1) * p.starts_step, p.wide_starts);
  if (begin < 0 || end < begin || end > p.tokens)
    fail(ErrorKind::index, "paged_attention: cu_seqlens_q: request ", b, " has tokens [", begin,
         ", ", end, "); they must not decrease and lie in [0, ", p.tokens, "], the rows of q");
  r.first = begin;
  r.queries = int32_t(end - begin);
  if (p.tree.words > 0 && (r.queries + 31) / 32 > p.tree.words)
    fail(ErrorKind::value, "paged_attention: mask: request ", b, " has ", r.queries,
         " queries, which need ", (r.queries + 31) / 32, " words of 32 bits a token, got ",
         p.tree.words);
  return r;
}

// Every block that a query of the request sees.
inline void check_blocks(const Params& p, int64_t b, const Request& r) {
  if (r.queries == 0) return;
  int begin = r.keys, end = 0;
  for (const int i : {0, r.queries - 1}) {
    const KeyRange range = keys_of(r, i);
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

inline std::vector<Request> checked_requests(const Params& p) {
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

// Requests of so many queries go by tiles of scores, which reads keys once for all of them, if
// queries and keys are in one array each.
inline bool has_tiles(const Params& p, const Request& r) {
  return r.queries >= 64 && p.q_dim == p.head_dim && p.k_dim == p.head_dim;
}
void compute_tiles(const Problem& problem, const std::vector<Request>& requests);

// Calls f with null pointers of the types of q and of the caches.
template <class F>
void with_types(const Problem& problem, F&& f) {
  host::with_element_type(problem.dtype, [&](auto* q) {
    host::with_element_type(problem.code, [&](auto* code) {
      using T = std::remove_pointer_t<decltype(q)>;
      using Code = std::remove_pointer_t<decltype(code)>;
      constexpr bool is_float =
          std::is_same_v<T, float> || std::is_same_v<T, f16> || std::is_same_v<T, bf16>;
      constexpr bool is_code = std::is_same_v<Code, T> || std::is_same_v<Code, e4m3> ||
                               std::is_same_v<Code, e5m2> || std::is_same_v<Code, int8_t> ||
                               std::is_same_v<Code, uint8_t>;
      if constexpr (is_float && is_code) f(q, code);
    });
  });
}

}  // namespace tensorcraft::kernel::paged_attention
