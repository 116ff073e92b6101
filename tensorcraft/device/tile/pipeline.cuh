// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/begin_kernel.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/swizzle.cuh"
#include "tensorcraft/device/vec.cuh"

// Shared by kernels whose copies run ahead of their products: the barriers of a ring of stages,
// and the slots from which the copy engine stores results.
namespace tensorcraft {

// Barriers that say who may go on at each stage of a ring.
template <int stages>
struct Barriers {
  uint64_t full[stages];   // the bytes of a stage have come
  uint64_t empty[stages];  // no warp reads it any more

  // By one thread; `readers`: arrivals that give a stage back, `writers`: that hand it on.
  TC_DEVICE void init(int readers, int writers = 1) {
    for (int i = 0; i < stages; ++i) {
      ptx::mbarrier_init(&full[i], uint32_t(writers));
      ptx::mbarrier_init(&empty[i], uint32_t(readers));
    }
  }
};

// Thread 0 makes barriers by make() while the kernels before this one may still run; then all
// threads wait for those kernels. The block has yet to meet before it uses a barrier.
template <class Make>
TC_DEVICE void begin_with_barriers(const Make& make) {
  if (threadIdx.x == 0) {
    make();
    ptx::fence_mbarrier_init();
  }
  begin_kernel();
}

// Lines of `kLineBytes`, swizzled as the copy engine stores them.
template <int kLineBytes, int kBytes>
struct alignas(1024) StoreSlot {
  static constexpr int line_bytes = kLineBytes;
  static constexpr Swizzle swizzle = line_bytes == 128  ? Swizzle::bytes_128
                                     : line_bytes == 64 ? Swizzle::bytes_64
                                                        : Swizzle::bytes_32;
  Vec4<uint32_t> at[kBytes / kVectorBytes];

  TC_DEVICE unsigned char* place(int line, int chunk) {
    return reinterpret_cast<unsigned char*>(at) +
           swizzled(swizzle, uint32_t(line * line_bytes + chunk * kVectorBytes));
  }
};

}  // namespace tensorcraft
