// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/features.h"
#include "tensorcraft/device/ptx/cvta.cuh"
#if !TC_PTX
#include "tensorcraft/device/host_async.h"
#endif

// Registers of a warpgroup, launches that overlap, pauses.
namespace tensorcraft::ptx {

// setmaxnreg.dec: the warpgroup gives registers back; each thread keeps kRegisters. All its warps
// execute it, and the kernel has launch bounds with a minimum of blocks.
template <int kRegisters>
TC_DEVICE void setmaxnreg_dec() {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0);
#if TC_PTX
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
#else
  simt::setmaxnreg(kRegisters, false);
#endif
}

// setmaxnreg.inc: waits until the block has so many to give; the new ones are undefined.
template <int kRegisters>
TC_DEVICE void setmaxnreg_inc() {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0);
#if TC_PTX
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
#else
  simt::setmaxnreg(kRegisters, true);
#endif
}

// griddepcontrol.wait: the kernels that this one was launched after are complete and their writes
// visible. Before sm_90 no kernel starts earlier than that.
TC_DEVICE void griddepcontrol_wait() {
#if !TC_PTX
  simt::griddepcontrol_wait();
#elif TC_ARCH_HOPPER
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// griddepcontrol.launch_dependents: the kernel after this one may start.
TC_DEVICE void griddepcontrol_launch_dependents() {
#if !TC_PTX
  simt::griddepcontrol_launch_dependents();
#elif TC_ARCH_HOPPER
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// nanosleep.u32: pauses for 0 to twice this time, 1 ms at most.
TC_DEVICE void nanosleep(uint32_t nanoseconds) {
#if TC_PTX
  asm volatile("nanosleep.u32 %0;" ::"r"(nanoseconds));
#else
  (void)nanoseconds;
  simt::let_others_run("nanosleep");
#endif
}

#if TC_PTX
// trap: ends the kernel with an error, if it is compiled for a debugger.
TC_DEVICE void trap_in_debug() {
#if defined(__CUDACC_DEBUG__)
  asm volatile("trap;");
#endif
}
#endif

}  // namespace tensorcraft::ptx
