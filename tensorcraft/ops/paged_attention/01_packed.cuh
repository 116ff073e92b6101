// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: queries of the heads that share a head of keys are the rows of one block, up to 64,
// so keys and values are read once for all of them: 64 FLOP a byte instead of one, on tensor cores.
// device/attention_part.cuh has the work of a block. Rows of a ragged batch that meet in a block
// may be of several requests, whose keys come one after another. Demands: sm_80, 16-bit queries,
// blocks of 16 keys or a multiple, rows that begin at multiples of 16 bytes and are as long.
#include "tensorcraft/device/logit.cuh"
#include "tensorcraft/ops/paged_attention/keys.cuh"
#include "tensorcraft/ops/paged_attention/tokens.cuh"

namespace tensorcraft::kernel::paged_attention {

struct Packed {
  template <class T, class Code, Config C>
  TC_DEVICE static void run(const Params& p) {
    using Part = AttentionPart<T, Code, kShape<C>, PagedKeys<Code>>;
    const int slices = div_ceil(p.v_dim, C.value_dim), key_heads = p.heads / p.group;
    const int64_t rows = p.tokens * p.group, tiles = div_ceil(rows, int64_t(Part::kRows));
    int index = int(blockIdx.x);
    const int slice = index % slices * C.value_dim;
    index /= slices;
    const int key_head = index % key_heads;
    // The last queries see the most keys: they start first.
    const int64_t first = (tiles - 1 - index / key_heads) * Part::kRows;

    // Row r is a head of token r / group.
    const auto token_of = [&](int r) { return (first + r) / p.group; };
    const auto head_of = [&](int r) { return key_head * p.group + int((first + r) % p.group); };
    const auto address = [&](const Strides& s, int r) {
      const int64_t token = token_of(r), b = p.starts ? 0 : token / p.queries;
      return b * s.batch + (token - b * p.queries) * s.row + head_of(r) * s.head;
    };
    const auto row_of = [&](int r) -> const T* {
      return first + r < rows ? static_cast<const T*>(p.q) + address(p.q_strides, r) : nullptr;
    };
    Part work(dynamic_shared<typename Part::Shared>(),
              int(rows - first < Part::kRows ? rows - first : Part::kRows), row_of,
              {p.head_dim, p.v_dim - slice});

    const int64_t last_row = (first + Part::kRows < rows ? first + Part::kRows : rows) - 1;
    const int64_t end_token = last_row / p.group + 1;
    for (int64_t token = first / p.group; token < end_token;) {
      const Place place = place_of(p, token);
      if (place.b < 0) {
        ++token;
        continue;
      }
      const Request& request = place.request;
      int64_t next = request.first + request.queries;
      if (next > end_token) next = end_token;
      const auto seen = [&](int r) -> KeyRange {
        if (first + r >= rows || token_of(r) < token || token_of(r) >= next) return {0, 0};
        return keys_of(request, int(token_of(r) - request.first));
      };
      const int begin = keys_of(request, place.i).begin;
      const int end = keys_of(request, int(next - 1 - request.first)).end;
      work.add(
          PagedKeys<Code>(Pages(p, place.b, key_head), slice), begin, end, seen,
          {p.scale, p.softcap}, [](int) {},
          tree_rows<C>(p, place.b, request, int(first - request.first * p.group)));
      token = next;
    }

    work.finish([&](int r, const RowSum& found) {
      const float lse = found.sum == 0 ? -kInfinity : found.top + logf(found.sum);
      const bool is_row = first + r < rows;
      // A token of no request has no sink either.
      const bool has_sink = is_row && p.sinks && (!p.starts || place_of(p, token_of(r)).b >= 0);
      Finished with{1.f, lse};
      if (has_sink) with = with_sink(lse, p.sinks[head_of(r)]);
      if (is_row && p.lse && slice == 0 && Part::has_first_value())
        p.lse[token_of(r) * p.heads + head_of(r)] = with.lse;
      T* const out = is_row ? static_cast<T*>(p.out) + address(p.out_strides, r) + slice : nullptr;
      return [=](int d, float(&x)[Part::kGiven]) {
        if (!out) return;
        for (float& value : x) value *= with.factor;
        from_floats<T, Part::kGiven>(x).store(out + d);
      };
    });
  }
};

}  // namespace tensorcraft::kernel::paged_attention
