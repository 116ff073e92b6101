// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/op/schema.hpp"
#include "tensorcraft/ops/transfer_hicache/params.h"

#include <string_view>

namespace tensorcraft::kernel::transfer_hicache {

// A checked call. The outputs are k_dst and v_dst, or memory that becomes copies of them first.
struct Problem {
  std::string_view op;  // the caller's name for it
  TensorView k_dst_out, v_dst_out, k_dst, v_dst;
  Params params;  // of the outputs
  int unroll;
  int64_t block_quota;
};

// One side of a call, as errors name it.
struct SideNames {
  std::string_view op, indices, caches;
};
inline constexpr std::string_view kDstCaches = "k_dst and v_dst", kSrcCaches = "k_src and v_src";
inline SideNames dst_names(std::string_view op) { return {op, "idx_dst", kDstCaches}; }
inline SideNames src_names(std::string_view op) { return {op, "idx_src", kSrcCaches}; }

// Fails with kind index if one of `count` tokens, which the host can read, is none of the cache.
void check_tokens(const Side& side, int64_t count, const SideNames& names);

// Host variants. Fail with kind index before they write if a token is none of a cache.
void cpu(const Problem& q);
void reference(const Problem& q);

// Moves what kernels cannot reach through the page-locked ring of the transfer engine. What the
// host reads has been read when it returns, and what it writes is written. Fails like the host
// variants, with kind value if a cache of keys is pageable and that of its values is not, or the
// other way round, and with unsupported while the stream is recorded.
void run_pageable(const op::PageableCall<Problem>& call);

}  // namespace tensorcraft::kernel::transfer_hicache
