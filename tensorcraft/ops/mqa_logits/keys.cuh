// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/checked_index.cuh"
#include "tensorcraft/ops/mqa_logits/params.h"

namespace tensorcraft::kernel::mqa_logits {

// Whether k has the block that a table names; if not its key is not read.
TC_DEVICE bool is_there(const Params& p, const KeyPlace& place) {
  return is_index(place.block, p.blocks, "mqa_logits", "an entry of block_tables");
}

// What the logits of a key are multiplied by.
TC_DEVICE float scale_of(const Params& p, const KeyPlace& place) {
  return p.k_scale ? p.k_scale[offset(p.scale_strides, place)] : 1.f;
}

}  // namespace tensorcraft::kernel::mqa_logits
