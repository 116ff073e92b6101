// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/attention_part.cuh"
#include "tensorcraft/ops/paged_attention/pages.cuh"

// What the rungs share whose rows are queries of heads that share keys.
namespace tensorcraft::kernel::paged_attention {

template <Config C>
inline constexpr PartShape kShape{.warps = C.threads / 32,
                                  .head_dim = C.head_dim,
                                  .value_dim = C.value_dim,
                                  .has_softcap = C.has_softcap != 0};

// Keys and values through the table, of which the 16 that a warp takes lie in one page: one lookup
// and one division for all of them. `slice` is where the values of this block begin.
template <class Code>
class PagedKeys {
 public:
  TC_DEVICE PagedKeys(const Pages& pages, int slice) : pages_(pages), slice_(slice) {}

  TC_DEVICE bool find(int j) {
    const Params& p = pages_.p;
    const int64_t block = pages_.block_of(j);
    if (block < 0) return false;
    first_ = j;
    key_ = static_cast<const Code*>(p.k.data) + pages_.offset(p.k, block, j);
    value_ = static_cast<const Code*>(p.v.data) + pages_.offset(p.v, block, j) + slice_;
    if (p.k.scale) key_scale_ = pages_.scale_address(p.k, block, j);
    if (p.v.scale) value_scale_ = pages_.scale_address(p.v, block, j);
    return true;
  }
  TC_DEVICE const Code* key(int j) const { return key_ + (j - first_) * pages_.p.k.row; }
  TC_DEVICE const Code* value(int j) const { return value_ + (j - first_) * pages_.p.v.row; }
  TC_DEVICE bool has_scales() const { return pages_.p.k.scale || pages_.p.v.scale; }
  TC_DEVICE float key_scale(int j) const {
    return key_scale_ ? key_scale_[(j - first_) * pages_.p.k.scale_row] : 1.f;
  }
  TC_DEVICE float value_scale(int j) const {
    return value_scale_ ? value_scale_[(j - first_) * pages_.p.v.scale_row] : 1.f;
  }

 private:
  Pages pages_;
  int slice_, first_ = 0;
  const Code *key_ = nullptr, *value_ = nullptr;
  const float *key_scale_ = nullptr, *value_scale_ = nullptr;
};

}  // namespace tensorcraft::kernel::paged_attention
