// SPDX-License-Identifier: Apache-2.0
#pragma once
// A thread moves an element, first its keys, then its values, in units of T. Neighbouring threads
// are an element apart, so each access of a warp touches 32 places.
#include "tensorcraft/ops/transfer_hicache/element.cuh"

namespace tensorcraft::kernel::transfer_hicache {

template <class T>
TC_DEVICE void move_units(unsigned char* to, const unsigned char* from, int64_t units) {
  for (int64_t i = 0; i < units; ++i)
    reinterpret_cast<T*>(to)[i] = reinterpret_cast<const T*>(from)[i];
}

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t items = p.count * p.layers, units = p.element_bytes / int64_t(sizeof(T));
    for (int64_t item = int64_t(blockIdx.x) * C.threads + threadIdx.x; item < items;
         item += int64_t(gridDim.x) * C.threads) {
      Element e;
      if (!find_element(e, p, item)) continue;
      move_units<T>(e.k_to, e.k_from, units);
      move_units<T>(e.v_to, e.v_from, units);
    }
  }
};

}  // namespace tensorcraft::kernel::transfer_hicache
