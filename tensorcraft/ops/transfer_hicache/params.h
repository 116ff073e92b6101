// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/copy.h"
#include "tensorcraft/device/index.h"

namespace tensorcraft::kernel::transfer_hicache {

// The caches of keys and of values on one side of a transfer, and which of their tokens take part.
// Strides are in bytes, those of the indices in elements.
struct Side {
  unsigned char *k, *v;                // null: a layer begins where its table says
  const int64_t *k_layers, *v_layers;  // the address of each layer
  const void* indices;
  int64_t index_step;
  int64_t layer, page, token;  // strides
  int64_t places;              // tokens of a cache; of tables all that 64 bits count
  int32_t page_size;           // tokens of a page; 1: the stride of tokens is that of pages
  int32_t wide;                // indices are int64_t, else int32_t
};

// Run time.
struct Params {
  Side dst, src;
  int64_t count;  // of elements in a layer
  int64_t layers;
  int64_t element_bytes;  // what a token has in a layer of a cache
};

struct Config {
  int threads = 1024;
  int lanes = 1;    // vectorized: threads that share an element
  int package = 1;  // vectorized: bytes of an access
};

TC_HOST_DEVICE int64_t token_at(const Side& side, int64_t i) {
  return integer_at(side.indices, i * side.index_step, side.wide);
}
// Where a token lies in a layer.
TC_HOST_DEVICE int64_t offset_of(const Side& side, int64_t token) {
  if (side.page_size == 1) return token * side.page;
  return token / side.page_size * side.page + token % side.page_size * side.token;
}
TC_HOST_DEVICE unsigned char* keys_of(const Side& side, int64_t layer) {
  if (!side.k_layers) return side.k + layer * side.layer;
  return reinterpret_cast<unsigned char*>(side.k_layers[layer]);
}
TC_HOST_DEVICE unsigned char* values_of(const Side& side, int64_t layer) {
  if (!side.v_layers) return side.v + layer * side.layer;
  return reinterpret_cast<unsigned char*>(side.v_layers[layer]);
}

}  // namespace tensorcraft::kernel::transfer_hicache
