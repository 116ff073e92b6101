// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/wait_kernel.hpp"

#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/launch.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>

namespace tensorcraft::cuda {
namespace {

static_assert(sizeof(WaitKernelParams) == 40 && offsetof(WaitKernelParams, limit_ns) == 24 &&
              offsetof(WaitKernelParams, condition) == 36);

// In C:
//   for (begin = globaltimer;; nanosleep(100)) {
//     x = load_acquire_system(flag);
//     if (condition == 0 ? int(x - value) >= 0 : condition == 1 ? x == value
//         : condition == 2 ? (x & value) != 0 : ~(x | value) != 0) return;
//     if (abort && load_acquire_system(abort)) return;
//     if (limit && globaltimer - begin >= limit) { if (timed_out) *timed_out = 1; return; }
//   }
constexpr std::string_view kText = R"(.version 6.4
.target sm_70
.address_size 64
.visible .entry wait_flag_kernel(.param .align 8 .b8 params[40]) {
  .reg .pred %met, %is, %limited, %aborts, %told;
  .reg .b32 %x, %value, %condition, %y;
  .reg .b64 %flag, %abort, %timed_out, %limit, %begin, %now;
  ld.param.u64 %flag, [params];
  ld.param.u64 %abort, [params+8];
  ld.param.u64 %timed_out, [params+16];
  ld.param.u64 %limit, [params+24];
  ld.param.u32 %value, [params+32];
  ld.param.u32 %condition, [params+36];
  setp.ne.u64 %aborts, %abort, 0;
  setp.ne.u64 %limited, %limit, 0;
  setp.ne.u64 %told, %timed_out, 0;
  mov.u64 %begin, %globaltimer;
AGAIN:
  ld.acquire.sys.u32 %x, [%flag];
  setp.eq.u32 %is, %condition, 1;
  @%is bra EQUAL;
  setp.eq.u32 %is, %condition, 2;
  @%is bra AND;
  setp.eq.u32 %is, %condition, 3;
  @%is bra NOR;
  sub.s32 %y, %x, %value;
  setp.ge.s32 %met, %y, 0;
  bra LOOKED;
EQUAL:
  setp.eq.u32 %met, %x, %value;
  bra LOOKED;
AND:
  and.b32 %y, %x, %value;
  setp.ne.u32 %met, %y, 0;
  bra LOOKED;
NOR:
  or.b32 %y, %x, %value;
  not.b32 %y, %y;
  setp.ne.u32 %met, %y, 0;
LOOKED:
  @%met bra DONE;
  @!%aborts bra NOT_ABORTED;
  ld.acquire.sys.u32 %x, [%abort];
  setp.ne.u32 %is, %x, 0;
  @%is bra DONE;
NOT_ABORTED:
  @!%limited bra SLEEP;
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %begin;
  setp.lt.u64 %is, %now, %limit;
  @%is bra SLEEP;
  mov.u32 %y, 1;
  @%told st.release.sys.u32 [%timed_out], %y;
  bra DONE;
SLEEP:
  nanosleep.u32 100;
  bra AGAIN;
DONE:
  ret;
}
)";

// Loaded once for each device of a driver, and kept for good.
std::shared_ptr<const LoadedKernel> kernel_of(int device) {
  struct Known {
    std::mutex mutex;
    std::map<std::pair<uint64_t, int>, std::shared_ptr<const LoadedKernel>> all;
  };
  static constinit FirstMade<Known> known;
  const std::lock_guard lock(known->mutex);
  auto& kernel = known->all[{driver_number(), device}];
  if (!kernel)
    kernel = LoadedKernel::load(std::as_bytes(std::span(kText.data(), kText.size())),
                                "wait_flag_kernel", device);
  return kernel;
}

}  // namespace

void launch_wait_kernel(const WaitKernelParams& params, StreamRef stream, std::string_view what) {
  launch(*kernel_of(stream.device()), {.grid = {1}, .block = {1}}, &params, stream, what);
}

}  // namespace tensorcraft::cuda
