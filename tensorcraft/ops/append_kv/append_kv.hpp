// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/checks/cache_layout.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of append_kv() besides the arrays that it needs.
struct AppendKvOptions {
  // float32 [], or [heads_k], or one for each token and head, k's shape without head_dim: a code is
  // k / it
  std::optional<TensorView> k_scale = {}, v_scale = {};
  std::optional<TensorView> k_pe = {};           // [..., heads_k, rope_dim]: behind k in its rows
  std::optional<TensorView> q = {};              // [..., heads, row of k_cache], prepared as k is
  std::optional<TensorView> cos = {}, sin = {};  // [max_seq, rotated / 2]; both, and positions
  std::optional<TensorView> positions = {};  // int32 or int64 [...], a row of cos for each token
  // [head_dim]: each head of q, of k, is divided by its root mean square and multiplied by it; k_pe
  // is not.
  std::optional<TensorView> q_weight = {}, k_weight = {};
  float eps = 1e-6f;                      // added to the mean square
  CacheLayout layout = CacheLayout::nhd;  // of the caches
  // Where the caches with the tokens go, and the prepared q; not given: into themselves.
  std::optional<TensorView> v_cache_out = {}, q_out = {};
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Writes keys and values of tokens, or latent rows, into paged caches: token t goes to row slots[t]
// % block_size of block slots[t] / block_size. Caches: [blocks, block_size, heads_k, head_dim] or,
// as layout says, [blocks, heads_k, block_size, head_dim]; k: [..., heads_k, head_dim], float32,
// float16 or bfloat16; v the same, its head_dim may differ; slots: int32 or int64 [...]. A cache
// has the dtype of k, or float8_e4m3fn, float8_e5m2 or int8 codes: k / k_scale rounded to nearest
// even and saturated. Any strides, but weights are contiguous. A negative slot skips its token.
// Before, k and q are normalised by head if there are weights, then rotated as rope() does if there
// are cos, sin and positions, the first `rotated` elements of a head: all in float32, rounded once.
// cos, sin and weights have one dtype, that of k or float32. Two tokens of one slot are the
// caller's error. A slot behind the cache or a position behind cos is an error of kind index on a
// host device, before anything is written on the CPU; a GPU leaves such a token out, and makes one
// with such a position NaN. k_cache_out: k_cache, or memory that becomes a copy of it with the
// tokens.
//
// Without v_cache and v k_cache is a latent cache: k is its rows, or with k_pe the part of them in
// front of it, and the last `rotated` elements of a row, of q too, are those that rotate.
//
// A k_cache of uint8 [blocks, block_size, 656], also [blocks, block_size, 1, 656] in the order of
// layout, has rows as device/latent_row.h says: 512 latent values in 4 groups of 128, codes of
// float8_e4m3fn with a float32 scale each, and 64 values in bfloat16. The scale of a group is its
// largest magnitude / 448, or 1 if that is 0, so zeros become codes of 0; a code is x / scale,
// rounded to nearest even and saturated. All 128 values of a group with a NaN or an infinity read
// as NaN: its scale is a NaN, or infinite, and what is finite then has code 0. What rotates is
// rounded once, from float32 to bfloat16. Rows are contiguous and begin at multiples of 16 bytes.
void append_kv(const TensorView& k_cache_out, const TensorView& k_cache,
               const std::optional<TensorView>& v_cache, const TensorView& k,
               const std::optional<TensorView>& v, const TensorView& slots,
               const AppendKvOptions& options = {});
// Writes likewise, but in place.
void append_kv(const TensorView& k_cache, const std::optional<TensorView>& v_cache,
               const TensorView& k, const std::optional<TensorView>& v, const TensorView& slots,
               const AppendKvOptions& options = {});

}  // namespace tensorcraft
