// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft::kernel::moe_permute {

inline constexpr int kMaxExperts = 1024;

// Run time, of the kernels that sort. Strides are in elements. row_map and sources lie in the
// workspace if the caller does not want them; offsets is null then.
struct SortParams {
  const void* ids;
  int32_t *offsets, *row_map, *sources;
  int32_t* workspace;  // the ids of each chunk by expert, then the maps that nobody wants
  int64_t ids_strides[2], offsets_stride, row_map_strides[2], sources_stride;
  int64_t row_map_at, sources_at;  // in the workspace
  int32_t wide;                    // ids are int64_t, else int32_t
  int32_t entries, k, experts, align, rows;
  int32_t chunks, chunk;  // chunks: how many, and the ids of one, which are whole warps
  int32_t expert_bits;    // that tell experts apart
};

// The same of the kernels that move rows.
struct Params {
  SortParams sort;
  const void* x;
  void* out;
  int64_t hidden, x_strides[2], out_strides[2];
  int64_t moving_blocks;  // rows: those that move; the others write zeros
  int32_t pieces;         // rows: of a row, a block moves one
};

// Rows that a block looks through for some without a token.
inline constexpr int kZeroRows = 32;

struct Config {
  int threads = 256;
};

// The expert of entry i = token * k + slot; -1: it is not here.
TC_HOST_DEVICE int32_t expert_of(const SortParams& p, int32_t i) {
  const int32_t token = i / p.k;
  const int64_t at = token * p.ids_strides[0] + (i - token * p.k) * p.ids_strides[1];
  const int64_t id = p.wide ? static_cast<const int64_t*>(p.ids)[at]
                            : int64_t(static_cast<const int32_t*>(p.ids)[at]);
  return id >= 0 && id < p.experts ? int32_t(id) : -1;
}

TC_HOST_DEVICE int32_t& row_of(const SortParams& p, int32_t token, int32_t slot) {
  if (!p.row_map) return (p.workspace + p.row_map_at)[int64_t(token) * p.k + slot];
  return p.row_map[token * p.row_map_strides[0] + slot * p.row_map_strides[1]];
}
TC_HOST_DEVICE int32_t& row_of(const SortParams& p, int32_t i) {
  const int32_t token = i / p.k;
  return row_of(p, token, i - token * p.k);
}
TC_HOST_DEVICE int32_t& source_of(const SortParams& p, int32_t row) {
  if (!p.sources) return (p.workspace + p.sources_at)[row];
  return p.sources[row * p.sources_stride];
}
TC_HOST_DEVICE void store_offset(const SortParams& p, int32_t expert, int32_t row) {
  if (p.offsets) p.offsets[expert * p.offsets_stride] = row;
}

}  // namespace tensorcraft::kernel::moe_permute
