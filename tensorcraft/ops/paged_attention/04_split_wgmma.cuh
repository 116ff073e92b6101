// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: few queries of a request are multiplied by wgmma too, their keys divided into parts
// as in split_kv. If heads of keys fill the GPU, a block has all parts of one and its consumers
// fold them; else a block has a run of parts, which go to the workspace, and a second step folds
// them in the same order by the same operations. So a request's bits do not depend on which of both
// the batch asks for.
//   split_kv:  products of 16 rows, whose queries come from shared memory again for each
//   here:      64 rows at once; 4 and 16 queries of 8 heads cost the bytes of their keys
// Bytes beside keys and values: none, or 2 (values + 2) floats for each part of a row. Demands
// besides those of persistent: 16-bit caches, rows of at most 128 elements, at most 16 queries.
#include "tensorcraft/ops/paged_attention/page_producer.cuh"

namespace tensorcraft::kernel::paged_attention {

struct SplitWgmma {
  static constexpr bool begins_itself = true;
  template <class T, class Code, Config C>
  TC_DEVICE static void run(const HopperParams& p) {
    attend_by_pages<T, Code, C>(p);
  }
};

}  // namespace tensorcraft::kernel::paged_attention
