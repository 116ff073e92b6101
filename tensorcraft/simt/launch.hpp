// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/host.h"

#include <string>
#include <string_view>

// The emulator of CUDA's execution model: a kernel compiled by the host compiler runs on the CPU.
namespace tensorcraft::simt {

// A kernel instance: a rung with its types and Config fixed, called once for each thread.
using Body = void (*)(const void* params);

struct Launch {
  std::string_view name;  // of the kernel, for reports
  Index3 grid, block, cluster;
  size_t shared_bytes = 0;         // dynamic shared memory of one block
  size_t stack_bytes = 64 * 1024;  // of one thread
};

// Runs every thread of the grid and returns when all are done. Blocks (clusters, if they have more
// than one block) run in parallel over OS threads, the threads of a cluster in turn on one. Kind
// value for a launch that a GPU would refuse; a fault of the kernel (a barrier some threads never
// reach, shared memory beyond the declared size, a race in the race build, ...) is kind
// kernel_fault, its text naming kernel, block, thread and source line. The first fault ends the
// launch. An error that the kernel's own code throws passes through.
void launch(const Launch& launch, Body body, const void* params);

// When an asynchronous copy or matrix instruction takes effect between its issue and the wait that
// orders it.
enum class Timing { as_late_as_legal, as_early_as_possible, seeded };

struct Options {
  Timing timing = Timing::as_late_as_legal;
  uint64_t seed = 0;  // of Timing::seeded; also varies the order in which threads run
};
// For the launches that this OS thread starts from now on.
void set_options(const Options& options);
Options options();

}  // namespace tensorcraft::simt
