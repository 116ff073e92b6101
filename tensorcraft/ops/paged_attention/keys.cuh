// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/attention_part.cuh"
#include "tensorcraft/ops/paged_attention/pages.cuh"

// What the rungs share whose rows are queries of heads that share keys.
namespace tensorcraft::kernel::paged_attention {

template <Config C>
inline constexpr PartShape kShape{.row_tiles = C.row_tiles,
                                  .warps = C.threads / 32,
                                  .stages = C.stages,
                                  .head_dim = C.head_dim,
                                  .value_dim = C.value_dim,
                                  .has_softcap = C.has_softcap != 0,
                                  .has_key_scales = C.has_key_scales != 0,
                                  .is_padded = C.padded != 0};

// The tree of request b as its rows from `first_row` on see it.
template <Config C>
TC_DEVICE auto tree_rows(const Params& p, int64_t b, const Request& r, int first_row) {
  if constexpr (C.has_tree)
    return TreeRows{tree_row(p, b, r, 0), first_row, p.group};
  else
    return NoTree{};
}

// Keys and values through the table, of which the 16 of a step lie in one page: one lookup and one
// division for all of them. `slice` is where the values of this block begin.
template <class Code>
struct PagedKeys {
  Pages pages;
  const Code *keys, *values;
  int64_t key_row, value_row;
  const float *key_scales, *value_scales;
  int64_t key_scale_row, value_scale_row;
  float key_scale, value_scale;

  TC_DEVICE PagedKeys(const Pages& of, int slice)
      : pages(of),
        keys(static_cast<const Code*>(of.p.k.data)),
        values(static_cast<const Code*>(of.p.v.data) + slice),
        key_row(of.p.k.row),
        value_row(of.p.v.row),
        key_scales(of.p.k.scale),
        value_scales(of.p.v.scale),
        key_scale_row(of.p.k.scale_row),
        value_scale_row(of.p.v.scale_row),
        key_scale(of.scale_of_all(of.p.k)),
        value_scale(of.scale_of_all(of.p.v)) {}

  TC_DEVICE StepPlace look_up(int j) const {
    const int64_t block = pages.block_of(j);
    if (block < 0) return {kUnreadable, 0};
    const Params& p = pages.p;
    StepPlace place{pages.offset(p.k, block, j), pages.offset(p.v, block, j)};
    if (key_scales) place.key_scales = pages.scale_offset(p.k, block, j);
    if (value_scales) place.value_scales = pages.scale_offset(p.v, block, j);
    return place;
  }
};

}  // namespace tensorcraft::kernel::paged_attention
