// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: `lanes` threads of a warp share an element, neighbours move neighbouring packages,
// and a thread has the packages of keys and of values in flight before it stores one. So an access
// of a warp is whole granules of 128 bytes, and what hides the way to the memory, which for memory
// of the host is that over the bus, is threads * kInFlight * 2 * package bytes a block. Demands:
// elements of whole granules, addresses that are multiples of a package.
#include "tensorcraft/device/package.cuh"
#include "tensorcraft/ops/transfer_hicache/element.cuh"

namespace tensorcraft::kernel::transfer_hicache {

// Packages of keys, and as many of values, that a thread loads before it stores.
inline constexpr int kInFlight = 4;

template <int kPackage, int kLanes>
TC_DEVICE void move_packages(const Element& e, int64_t bytes) {
  constexpr int kStep = kPackage * kLanes;
  for (int64_t first = int64_t(threadIdx.x % kLanes) * kPackage; first < bytes;
       first += kStep * kInFlight) {
    Package<kPackage> keys[kInFlight], values[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const int64_t at = first + i * kStep;
      if (at >= bytes) break;
      keys[i] = load_package<kPackage>(e.k_from + at);
      values[i] = load_package<kPackage>(e.v_from + at);
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const int64_t at = first + i * kStep;
      if (at >= bytes) break;
      store_package(e.k_to + at, keys[i]);
      store_package(e.v_to + at, values[i]);
    }
  }
}

struct Vectorized {
  template <class, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int kElements = C.threads / C.lanes;
    const int64_t items = p.count * p.layers;
    for (int64_t item = int64_t(blockIdx.x) * kElements + threadIdx.x / C.lanes; item < items;
         item += int64_t(gridDim.x) * kElements) {
      Element e;
      if (find_element(e, p, item)) move_packages<C.package, C.lanes>(e, p.element_bytes);
    }
  }
};

}  // namespace tensorcraft::kernel::transfer_hicache
