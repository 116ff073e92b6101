// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/append_kv/params.h"

#include <optional>

namespace tensorcraft::kernel::append_kv {

// A checked call. All caches are [blocks, block_size, heads_k, head_dim], whatever the layout was;
// q, q_out, k, k_pe and v have two axes more than slots and positions.
struct Problem {
  TensorView k_cache_out, k_cache, k, slots;
  std::optional<TensorView> v_cache_out, v_cache, v;  // all or none
  std::optional<TensorView> k_pe, k_scale, v_scale, q, q_out, cos, sin, positions, q_weight,
      k_weight;
  float eps;
  int64_t places() const { return k_cache.shape(0) * k_cache.shape(1); }
  // Pairs of a head that rotate.
  int64_t half() const { return cos ? cos->shape(1) : 0; }
  // Elements of a row of k_cache.
  int64_t row_dim() const {
    return k.shape(k.rank() - 1) + (k_pe ? k_pe->shape(k_pe->rank() - 1) : 0);
  }
};

// Host variants. Fail with kind index before they write if a slot or a position is outside.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::append_kv
