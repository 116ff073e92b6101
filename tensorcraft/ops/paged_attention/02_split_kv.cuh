// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the keys of a request are divided into parts for as many blocks, so few requests
// fill the GPU too; what a block finds goes to the workspace, and a second kernel combines the
// parts in their order. If tables have room for one part alone, there is no second. How long a part
// is follows from the request's length alone, so a result does not depend on what else is in the
// batch. Bytes beside keys and values: 2 (values + 2) floats for each part of a row. Demands
// besides: a batch of requests with at most 16 queries each.
#include "tensorcraft/ops/paged_attention/combine.cuh"
#include "tensorcraft/ops/paged_attention/keys.cuh"

namespace tensorcraft::kernel::paged_attention {

struct SplitKv {
  template <class T, class Code, Config C>
  TC_DEVICE static void run(const Params& p) {
    using Part = AttentionPart<T, Code, kShape<C>, PagedKeys<Code>>;
    const int key_heads = p.heads / p.group, tiles = div_ceil(p.group * p.queries, Part::kRows);
    const SplitBlock block(int(blockIdx.x), div_ceil(p.v_dim, C.value_dim), key_parts(p).runs(),
                           tiles, key_heads);
    const int b = block.request, head = block.key_head * p.group;
    const int slice = block.slice * C.value_dim;
    const SplitRows<T> rows{
        .q = static_cast<const T*>(p.q) + b * p.q_strides.batch + head * p.q_strides.head,
        .q_row = p.q_strides.row,
        .row = int64_t(b) * p.queries * p.heads + head,
        .q_head = p.q_strides.head,
        .row_row = p.heads,
        .row_head = 1,
        .group = p.group,
        .queries = p.queries,
        .keys = length_of(p, b),
        .head_dim = p.head_dim,
        .window = window_of_request(p, b)};
    const Request request{int64_t(b) * p.queries, p.queries, rows.keys, rows.window};
    split_keys<Part>(
        rows, block.tile * Part::kRows, block.run, slice, key_parts(p), {p.scale, p.softcap},
        [&] { return PagedKeys<Code>(Pages(p, b, block.key_head), slice); },
        [&](int64_t row) { return result_row<T>(p, row); },
        tree_rows<C>(p, b, request, block.tile * Part::kRows));
  }
};

}  // namespace tensorcraft::kernel::paged_attention
