// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/checks/cache_layout.hpp"
#include "tensorcraft/op/checks/value_or_tensor.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>
#include <utility>

namespace tensorcraft {

// Arguments of paged_attention() besides the arrays that it needs.
struct PagedAttentionOptions {
  // The registry's form of arguments that the functions take by position.
  std::optional<TensorView> v_cache = {}, block_tables = {}, lengths = {};
  // Elements of queries behind those of q, and of keys behind those of k_cache: shapes of these but
  // for head_dim, which is the sum then.
  std::optional<TensorView> q_pe = {}, k_pe = {};
  std::optional<float> scale = {};  // of q k^T; 1 / sqrt(head_dim) if not given
  // query i sees keys j <= i + lengths[b] - queries; bool [batch], contiguous: is each request
  // causal
  BooleanOrTensor causal = true;
  // left and right: keys from i + lengths[b] - queries - left to that + right; -1 is unlimited.
  std::optional<Dims> window = {};
  // A tree of draft tokens: which of the newest keys, as many as the request has queries, each of
  // these sees, besides what causal and window hide; all see earlier keys. bool [batch, queries,
  // queries], or bits int32 [tokens, words]: bit j % 32 of word j / 32, words = ceil(queries / 32)
  // at least; with cu_seqlens_q bits alone.
  std::optional<TensorView> mask = {};
  std::optional<float> softcap = {};     // scores become softcap tanh(score / softcap)
  std::optional<TensorView> sinks = {};  // float32 [heads]: a logit in the denominator alone
  // int32 or int64 [batch + 1], contiguous: q is [tokens, heads, head_dim], request b has tokens
  // [cu_seqlens_q[b], cu_seqlens_q[b + 1])
  std::optional<TensorView> cu_seqlens_q = {};
  // float32 [], or [heads_k], or one for each key and head, in the order of the cache without
  // head_dim
  std::optional<TensorView> k_scale = {}, v_scale = {};
  CacheLayout layout = CacheLayout::nhd;  // of the caches
  int64_t v_dim = 512;      // without v_cache: values are the first v_dim elements of keys
  bool return_lse = false;  // the allocating form computes lse too
  // float32, the shape of out without head_dim, contiguous: log(sum(exp(s))), the sink included
  std::optional<TensorView> lse = {};
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The allocating form returns this.
struct PagedAttentionResult {
  Tensor out;  // shape of q but for head_dim, its dtype
  Tensor lse;  // if return_lse, else empty
  // Converts to out, so the result can be passed as a tensor.
  operator TensorView() const { return out; }  // NOLINT
  // Hands it over: Tensor y = ... takes the memory.
  operator Tensor() && { return std::move(out); }  // NOLINT
};

// Attention of the newest tokens of each request to its keys, which lie in pages: key j of request
// b is row j % block_size of block block_tables[b, j / block_size]. q: [batch, heads, head_dim] or
// [batch, queries, heads, head_dim], or ragged by cu_seqlens_q; float32, float16 or bfloat16.
// Caches: [blocks, block_size, heads_k, head_dim], or as layout says, of the dtype of q, or
// float8_e4m3fn, float8_e5m2 or int8 codes that scales multiply; v may have a head_dim of its own.
// heads is a multiple of heads_k. block_tables: int32 or int64 [batch, max_blocks]; lengths: int32
// or int64 [batch], the keys in use. head_dim is at most 576, that of v 512. Any strides. Without
// v_cache, latent attention: values are the first v_dim elements of k_cache's. Its cache may be of
// uint8 [blocks, block_size, 656], also [blocks, block_size, 1, 656] in the order of layout, with
// rows of device/latent_row.h, contiguous and at multiples of 16 bytes: an element is its code
// times its scale, so a scale of 0 makes 128 elements 0, an infinite one makes them infinite, or
// NaN if their code is 0, and a NaN makes them NaN; what sees such a key follows from that, and
// nothing else. With q_pe and k_pe elements of queries and keys lie in two arrays, of either
// without the other if their sums agree; k_pe has the dtype of k_cache and its scale. Contents
// behind lengths, in other pages or in other entries of the table have no effect, NaN included. A
// query that sees no key gives 0, and in lse -inf, or the sink; a token of no request gives 0 and
// -inf. Scores and sums are float32. The bits of a request do not depend on what else is in the
// batch. Blocks outside the cache are an error of kind index on a host device; a GPU reads no such
// block. Lengths that a row of the table has no room for are an error of kind value on a host
// device; a GPU takes them as its room. Read on the device, so that a captured graph serves growing
// sequences: lengths, block_tables, cu_seqlens_q, causal, mask and scales.
void paged_attention(const TensorView& out, const TensorView& q, const TensorView& k_cache,
                     const std::optional<TensorView>& v_cache, const TensorView& block_tables,
                     const TensorView& lengths, const PagedAttentionOptions& options = {});
PagedAttentionResult paged_attention(const TensorView& q, const TensorView& k_cache,
                                     const std::optional<TensorView>& v_cache,
                                     const TensorView& block_tables, const TensorView& lengths,
                                     const PagedAttentionOptions& options = {});

}  // namespace tensorcraft
