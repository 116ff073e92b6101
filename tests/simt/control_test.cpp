// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/ptx/control.cuh"
#include "tensorcraft/device/ptx/memory_order.cuh"
#include "tests/simt/kernels.hpp"

namespace tensorcraft::simt {
namespace {

TEST(SimtControl, MovesRegistersBetweenWarpgroups) {
  EXPECT_EQ(fault_of({.grid = {2}, .block = {384}},
                     [](const void*) {
                       ptx::griddepcontrol_wait();
                       if (threadIdx.x < 256)
                         ptx::setmaxnreg_inc<240>();  // waits for the third
                       else
                         ptx::setmaxnreg_dec<24>();
                       ptx::griddepcontrol_launch_dependents();
                     }),
            "no fault");
}

TEST(SimtControl, ReportsRegistersThatAreNotThere) {
  expect_fault(fault_of({.block = {384}},
                        [](const void*) {
                          if (threadIdx.x < 256) ptx::setmaxnreg_inc<240>();
                        }),
               "setmaxnreg.inc, for registers that are not given back");
  expect_fault(fault_of({.block = {128}}, [](const void*) { ptx::setmaxnreg_inc<24>(); }),
               "thread (31, 0, 0): setmaxnreg.inc: to 24 registers, the warpgroup has 248");
  expect_fault(fault_of({.block = {96}}, [](const void*) { ptx::setmaxnreg_dec<24>(); }),
               "the block is not made of whole warpgroups");
  expect_fault(fault_of({.block = {128}},
                        [](const void*) {
                          if (threadIdx.x % 32 < 31) ptx::setmaxnreg_dec<24>();
                        }),
               "setmaxnreg.dec needs its whole warp");
}

// Blocks count themselves; the first thread waits for all of its own cluster's.
TEST(SimtControl, LoadsWithAcquireLetTheWriterRun) {
  uint32_t counter = 0;
  uint32_t* const p = &counter;
  EXPECT_EQ(fault_of(
                {.grid = {4}, .block = {64}, .cluster = {4}},
                [](const void* q) {
                  uint32_t* const count = *static_cast<uint32_t* const*>(q);
                  if (threadIdx.x == 0 && blockIdx.x < 3) ptx::red_release_gpu_add_u32(count, 1);
                  if (threadIdx.x == 1 && blockIdx.x == 3) {
                    while (ptx::ld_acquire_gpu_u32(count) != 3) ptx::nanosleep(20);
                    ptx::st_release_gpu_u32(count, 77);
                  }
                },
                &p),
            "no fault");
  EXPECT_EQ(counter, 77u);
}

}  // namespace
}  // namespace tensorcraft::simt
