// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a block takes C.slots 16-byte accesses of each thread out of the whole tensor, all
// loads issued before the first is used, whatever the planes are. It folds the parameters of the
// channels that it meets once, into shared memory, while the loads are on their way. An access
// finds its plane by a multiplication, and if planes are no whole accesses its elements count
// down to the next plane: a read and a write of each element and nothing else, the bytes of a copy.
// Demands: dense tensors at 16-byte boundaries, planes of which a block meets at most kMaxPlanes.
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/ops/batch_norm/channel.cuh"

namespace tensorcraft::kernel::batch_norm {

struct PlanesShared {
  Folded folded[kMaxPlanes];  // 8 KiB
};

// `count` neighbours from position `at` behind the start of the block's first plane.
template <Config C, int kCount>
TC_DEVICE void apply(const PlanesShared& shared, const Divider& by_spatial, uint32_t at,
                     float (&v)[kCount]) {
  uint32_t plane = by_spatial.quotient(at);
  uint32_t next = (plane + 1) * by_spatial.divisor - at;  // the first element of another plane
  Folded f = shared.folded[plane];
  for (int e = 0; e < kCount; ++e) {
    if constexpr (!C.whole) {
      if (uint32_t(e) == next) {
        next += by_spatial.divisor;
        f = shared.folded[++plane];
      }
    }
    v[e] = activate<C.activation>(v[e] * f.scale + f.shift);
  }
}

struct Planes {
  template <class T, class W, Config C>
  TC_DEVICE static void run(const Params& p) {
    auto& shared = static_shared<PlanesShared>();
    constexpr int kStep = C.threads * C.vector;
    const int64_t begin = int64_t(blockIdx.x) * (kStep * C.slots);
    const int64_t left = p.batch * p.channels * p.spatial - begin;  // elements from here to the end
    const T* x = static_cast<const T*>(p.x) + begin;
    T* out = static_cast<T*>(p.out) + begin;
    const int first = int(threadIdx.x) * C.vector;
    const uint64_t policy = stream_policy((left + begin) * int64_t(sizeof(T)));
    Packed<T, C.vector> v[C.slots];
#pragma unroll
    for (int s = 0; s < C.slots; ++s)
      if (first + s * kStep + C.vector <= left)
        v[s] = Packed<T, C.vector>::load_streamed(x + first + s * kStep, policy);

    const int64_t plane = begin / p.spatial;
    const auto before = uint32_t(begin - plane * p.spatial);  // elements of the first plane
    const int size = left < kStep * C.slots ? int(left) : kStep * C.slots;
    const int met = int(p.by_spatial.quotient(before + uint32_t(size) - 1)) + 1;
    for (int i = int(threadIdx.x); i < met; i += C.threads)
      shared.folded[i] = fold<W>(p, (plane + i) % p.channels);
    __syncthreads();
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      const int at = first + s * kStep;
      if (at + C.vector <= left) {
        float y[C.vector];
        to_floats(y, v[s]);
        apply<C>(shared, p.by_spatial, before + uint32_t(at), y);
        store_floats(out + at, y);
      } else if constexpr (!C.whole) {
        for (int i = at; i < left; ++i) {  // less than an access at the tensor's end
          float y[1] = {float(x[i])};
          apply<C>(shared, p.by_spatial, before + uint32_t(i), y);
          out[i] = T(y[0]);
        }
      }
    }
  }
};

}  // namespace tensorcraft::kernel::batch_norm
