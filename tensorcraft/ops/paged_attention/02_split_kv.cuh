// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the keys of a request are divided into parts of kPartKeys for as many blocks, so
// few requests fill the GPU too; what a block finds goes to the workspace, and a second kernel
// combines the parts in their order. A part is as long in every call, so a result does not depend
// on what else is in the batch. Bytes beside keys and values: 2 (values + 1) floats for each part
// of a row. Demands besides: a batch of requests with at most 16 queries each.
#include "tensorcraft/ops/paged_attention/rows.cuh"

namespace tensorcraft::kernel::paged_attention {

struct SplitKv {
  template <class T, class Code, Config C>
  TC_DEVICE static void run(const Params& p) {
    // Slices of the values are neighbours: they read the same keys.
    const int slices = p.v_dim / C.value_dim, parts = parts_of(p);
    const int rows = p.group * p.queries, tiles = div_ceil(rows, kPartRows);
    int index = int(blockIdx.x);
    const int slice = index % slices * C.value_dim;
    index /= slices;
    const int part = index % parts;
    index /= parts;
    const int first = index % tiles * kPartRows;
    index /= tiles;
    const int key_heads = p.heads / p.group, key_head = index % key_heads;
    const int b = index / key_heads;

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
    AttentionPart<T, Code, kShape<C>, PagedKeys<Code>> work(shared, rows - first, row_of);
    work.add(PagedKeys<Code>(Pages(p, b, key_head), slice), begin, end, seen, {p.scale, p.softcap});
    const auto row_at = [&](int r) {
      r += first;
      return (request.first + r / p.group) * p.heads + key_head * p.group + r % p.group;
    };
    work.finish([&](int r, int d, const Vec4<float>& out, float lse) {
      if (first + r >= rows) return;
      store_vector(values_of_part(p, row_at(r), part) + slice + d, out);
      if (slice + d == 0) *lse_of_part(p, row_at(r), part) = lse;
    });
  }
};

}  // namespace tensorcraft::kernel::paged_attention
