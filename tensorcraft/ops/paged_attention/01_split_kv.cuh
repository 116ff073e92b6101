// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the queries and heads that share a head of keys are rows of one block, up to 16, so
// keys and values are read once for all of them: rows FLOP a byte instead of one. The keys of a
// request are divided into parts of kPartKeys for as many blocks, so few requests fill the GPU too;
// what a block finds goes to the workspace, and a second kernel combines the parts in their order.
// A part is as long in every call, so a result does not depend on what else is in the batch.
// device/attention_part.cuh has the work of a block. Demands: sm_80, 16-bit queries, at most 16 of
// them a request, blocks of 16 keys or a multiple, head_dim in steps of 32, values in steps of 64.
#include "tensorcraft/device/attention_part.cuh"
#include "tensorcraft/ops/paged_attention/pages.cuh"

namespace tensorcraft::kernel::paged_attention {

template <Config C>
inline constexpr PartShape kShape{.warps = C.threads / 32,
                                  .head_dim = C.head_dim,
                                  .value_dim = C.value_dim,
                                  .has_softcap = C.has_softcap != 0};

// Keys and values through the table; `slice` is where the values of this block begin.
template <class Code>
struct PagedKeys {
  Pages pages;
  int slice;
  int64_t block = -1;

  TC_DEVICE bool find(int j) {
    block = pages.block_of(j);
    return block >= 0;
  }
  TC_DEVICE const Code* key(int j) const {
    return static_cast<const Code*>(pages.p.k.data) + pages.offset(pages.p.k, block, j);
  }
  TC_DEVICE const Code* value(int j) const {
    return static_cast<const Code*>(pages.p.v.data) + pages.offset(pages.p.v, block, j) + slice;
  }
  TC_DEVICE bool has_scales() const { return pages.p.k.scale || pages.p.v.scale; }
  TC_DEVICE float key_scale(int j) const { return pages.scale(pages.p.k, block, j); }
  TC_DEVICE float value_scale(int j) const { return pages.scale(pages.p.v, block, j); }
};

struct SplitKv {
  template <class T, class Code, Config C>
  TC_DEVICE static void run(const Params& p) {
    // Slices of the values are neighbours: they read the same keys.
    const int slices = p.v_dim / C.value_dim, parts = parts_of(p);
    const int rows = p.group * p.queries, tiles = div_ceil(rows, kPartRows);
    int64_t index = blockIdx.x;
    const int slice = int(index % slices) * C.value_dim;
    index /= slices;
    const int part = int(index % parts);
    index /= parts;
    const int first = int(index % tiles) * kPartRows;
    index /= tiles;
    const int key_heads = p.heads / p.group, key_head = int(index % key_heads);
    const int b = int(index / key_heads);

    const Request request{int64_t(b) * p.queries, p.queries, length_of(p, b)};
    const int last = (first + kPartRows < rows ? first + kPartRows : rows) - 1;
    int begin = keys_of(p, request, first / p.group).begin;
    int end = keys_of(p, request, last / p.group).end;
    begin = begin > part * kPartKeys ? begin : part * kPartKeys;
    end = end < (part + 1) * kPartKeys ? end : (part + 1) * kPartKeys;
    if (begin >= end) return;

    // Row r is query r / group of a head.
    const auto row_of = [&](int r) -> const T* {
      r += first;
      if (r >= rows) return nullptr;
      return static_cast<const T*>(p.q) + b * p.q_strides.batch + r / p.group * p.q_strides.row +
             (key_head * p.group + r % p.group) * p.q_strides.head;
    };
    const auto seen = [&](int r) -> SeenKeys {
      r += first;
      if (r >= rows) return {0, 0};
      const KeyRange range = keys_of(p, request, r / p.group);
      return {range.begin, range.end};
    };
    auto& shared = static_shared<PartShared<kShape<C>>>();
    AttentionPart<T, Code, kShape<C>, PagedKeys<Code>> work(shared, row_of, seen);
    work.add({Pages(p, b, key_head), slice}, begin, end, {p.scale, p.softcap});
    const auto row_at = [&](int r) {
      r += first;
      return (request.first + r / p.group) * p.heads + key_head * p.group + r % p.group;
    };
    work.finish(
        [&](int r, int d, const Vec4<float>& out) {
          if (first + r < rows) store_vector(values_of_part(p, row_at(r), part) + slice + d, out);
        },
        [&](int r, float lse) {
          if (first + r < rows && slice == 0) *lse_of_part(p, row_at(r), part) = lse;
        });
  }
};

}  // namespace tensorcraft::kernel::paged_attention
