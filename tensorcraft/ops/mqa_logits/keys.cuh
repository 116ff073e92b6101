// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/checked_index.cuh"
#include "tensorcraft/ops/mqa_logits/params.h"

namespace tensorcraft::kernel::mqa_logits {

// keys_of(), where the emulator refuses a length that the row of the table has no room for.
TC_DEVICE KeyRange checked_keys_of(const Params& p, int64_t b, int64_t i) {
  if (p.lengths.data)
    checked_count(p.lengths.at(b, 0) < 0 ? 0 : p.lengths.at(b, 0), p.keys, b, "mqa_logits",
                  "lengths", "the keys that a row of block_tables has room for");
  return keys_of(p, b, i);
}

// Does a query see one of the keys [begin, end), of which there is one at least?
TC_DEVICE bool meets(const KeyRange& range, int begin, int end) {
  return range.begin < end && begin < range.end && range.begin < range.end;
}

// Whether k has the block that a table names; if not its key is not read.
TC_DEVICE bool is_there(const Params& p, const KeyPlace& place) {
  return is_index(place.block, p.blocks, "mqa_logits", "an entry of block_tables");
}

// What the logits of a key are multiplied by.
TC_DEVICE float scale_of(const Params& p, const KeyPlace& place) {
  return p.k_scale ? p.k_scale[offset(p.scale_strides, place)] : 1.f;
}

}  // namespace tensorcraft::kernel::mqa_logits
