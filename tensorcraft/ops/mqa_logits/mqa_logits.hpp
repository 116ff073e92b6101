// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of mqa_logits() besides the arrays that it needs.
struct MqaLogitsOptions {
  // float32, a number for each key, shape of k without head_dim: it multiplies the key's logits.
  std::optional<TensorView> k_scale = {};
  // int32 or int64, shape of q without heads and head_dim: the query sees keys [k_start, k_end).
  std::optional<TensorView> k_start = {}, k_end = {};
  // int32 or int64 [batch, max_blocks] and [batch]: keys lie in pages, of which so many are in use.
  std::optional<TensorView> block_tables = {}, lengths = {};
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Scores of an indexer, whose heads of queries share one head of keys:
// out[i, j] = k_scale[j] * sum over heads h of weights[i, h] * relu(q[i, h, :] . k[j, :])
// for keys that query i sees, else -inf. q: [queries, heads, head_dim]; k: [keys, head_dim], dtype
// of q: float8_e4m3fn, float16, bfloat16 or float32; weights: float32 [queries, heads]; out:
// float32 [queries, keys]. A scale of q is a factor of its weights.
// With block_tables keys lie in pages: key j of request b is row j % block_size of block
// block_tables[b, j / block_size] of k, [blocks, block_size, head_dim]. q is [batch, heads,
// head_dim] or [batch, queries, heads, head_dim], out has max_blocks * block_size columns, and
// without k_end query i sees none after its own key, i + lengths[b] - queries.
// Any strides. Ranges are cut to the keys in use; an empty one gives a row of -inf. Sums are
// float32, but variant wgmma leaves those over head_dim of float8 to tensor cores, which keep about
// 14 bits; relu keeps NaN. What no query sees has no effect, NaN included. A logit has the same
// bits whatever else is in the batch, in pages or not. Blocks outside k are an error of kind index
// on a host device; a GPU gives their keys -inf. Lengths that a row of the table has no room for
// are an error of kind value on a host device; a GPU takes them as its room. Ranges, tables and
// lengths are read on the device, so that a captured graph serves growing sequences.
void mqa_logits(const TensorView& out, const TensorView& q, const TensorView& k,
                const TensorView& weights, const MqaLogitsOptions& options = {});
Tensor mqa_logits(const TensorView& q, const TensorView& k, const TensorView& weights,
                  const MqaLogitsOptions& options = {});

}  // namespace tensorcraft
