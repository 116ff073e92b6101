// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/transfer_hicache/params.h"

#include <algorithm>
#include <bit>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::transfer_hicache {

using Choice = op::Choice<Config>;
using Start = op::Start<Config>;

inline constexpr int64_t kGranule = 128;  // bytes that a warp reads side by side
inline constexpr int64_t kDefaultQuota = 256;

// Facts of a call that Params do not hold.
struct Given {
  int unit = 1;    // bytes of the widest access that suits every address, at most 16
  int unroll = 4;  // elements that a warp moves at once
  int64_t block_quota = kDefaultQuota;  // the most blocks
};

// The elements of a warp: the smaller they are the more, so that each thread has as many bytes in
// flight.
constexpr int default_unroll(int64_t element_bytes) {
  return element_bytes <= 512 ? 4 : element_bytes <= 1024 ? 2 : 1;
}
// One at least, as a launch has one.
constexpr int64_t blocks_of(int64_t items, int64_t items_per_block, int64_t quota) {
  return std::clamp<int64_t>(div_ceil(items, items_per_block), 1, quota);
}
// The largest power of 2, at most 16, that divides the number.
constexpr int unit_of(uint64_t number) {
  return number == 0 ? 16 : 1 << std::min(std::countr_zero(number), 4);
}
// The widest access of elements of both sides. Layers that a table gives begin at multiples of 16.
inline int unit_of(const Params& p) {
  uint64_t all = uint64_t(p.element_bytes);
  for (const Side* side : {&p.dst, &p.src})
    for (const uint64_t part : {uint64_t(reinterpret_cast<uintptr_t>(side->k)),
                                uint64_t(reinterpret_cast<uintptr_t>(side->v)),
                                uint64_t(side->layer), uint64_t(side->page), uint64_t(side->token)})
      all |= part;
  return unit_of(all);
}

inline Choice naive(const Params& p, const Given& given, const op::Gpu&) {
  const Config c{.threads = 256};
  return Start{c, blocks_of(p.count * p.layers, c.threads, given.block_quota)};
}

inline Choice vectorized(const Params& p, const Given& given, const op::Gpu&) {
  if (p.element_bytes % kGranule) return op::refuse("elements must be multiples of 128 bytes");
  if (given.unit < 4) return op::refuse("elements must begin at multiples of 4 bytes");
  const Config c{.lanes = 32 / given.unroll, .package = given.unit};
  return Start{c, blocks_of(p.count * p.layers, c.threads / c.lanes, given.block_quota)};
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "vectorized",
     .file = "01_vectorized.cuh",
     .idea = "threads of a warp share an element; packages of up to 16 bytes, all in flight",
     .choose = vectorized},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread an element of any size",
     .choose = naive},
};

}  // namespace tensorcraft::kernel::transfer_hicache
