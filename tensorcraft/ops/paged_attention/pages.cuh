// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/checked_index.cuh"
#include "tensorcraft/device/index.h"
#include "tensorcraft/ops/paged_attention/params.h"

namespace tensorcraft::kernel::paged_attention {

// Keys in use of request b: those that its table has room for at most.
TC_DEVICE int length_of(const Params& p, int b) {
  const int64_t length = integer_at(p.lengths, b * p.lengths_step, p.wide_lengths);
  const int room = p.block_size * p.table_size;
  checked_count(length < 0 ? 0 : length, room, b, "paged_attention", "lengths",
                "the keys that a row of block_tables has room for");
  return clamped(length, 0, room);
}

// Where keys and values lie that are read through a table of pages. How a key is found is all that
// this type says; a kernel that is a template over it reads a strided array as well.
struct Pages {
  const Params& p;
  int64_t table;  // where the request's row of the table begins
  int head;       // of k and v

  TC_DEVICE Pages(const Params& params, int b, int key_head)
      : p(params), table(b * params.table_row), head(key_head) {}

  // The block of key j; -1 if the table names none that the cache has: then it is not read.
  TC_DEVICE int64_t block_of(int j) const {
    const int64_t block =
        integer_at(p.tables, table + j / p.block_size * p.table_step, p.wide_tables);
    return is_index(block, p.blocks, "paged_attention", "an entry of block_tables") ? block : -1;
  }
  // Where key j of a block begins in a cache, and where its scale is.
  TC_DEVICE int64_t offset(const Cache& cache, int64_t block, int j) const {
    return block * cache.block + int64_t(j % p.block_size) * cache.row + head * cache.head;
  }
  TC_DEVICE int64_t scale_offset(const Cache& cache, int64_t block, int j) const {
    return block * cache.scale_block + j % p.block_size * cache.scale_row + head * cache.scale_head;
  }
  TC_DEVICE float scale(const Cache& cache, int64_t block, int j) const {
    return cache.scale ? cache.scale[scale_offset(cache, block, j)] : 1.f;
  }
  // The number of all keys of the head; 1 if scales differ by key: a cache without blocks has none.
  TC_DEVICE float scale_of_all(const Cache& cache) const {
    return cache.has_key_scales() ? 1.f : scale(cache, 0, 0);
  }
};

}  // namespace tensorcraft::kernel::paged_attention
