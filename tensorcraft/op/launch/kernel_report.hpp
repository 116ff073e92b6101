// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/occupancy.hpp"
#include "tensorcraft/op/launch/plan.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace tensorcraft::op {

// Reports what the compiler made of a kernel, and how much of a device it fills.
struct KernelReport {
  std::string problem;      // why nothing below is known but the launch; empty if all is
  std::string signature;    // readable, ends in the key's hash
  std::string arch;         // "sm_90a"
  LaunchConfig launch;      // how it is started
  int registers = 0;        // of each thread
  size_t shared_bytes = 0;  // of each block, static and dynamic together
  size_t spill_bytes = 0;   // stores and loads
  size_t stack_bytes = 0;   // of each thread in local memory; spills are there too
  size_t code_bytes = 0;    // of machine code
  int min_blocks = 1;       // on a multiprocessor, which the launch bounds promise the compiler
  double compile_ms = 0;    // even if the image came from the disk cache
  Occupancy occupancy;      // of the device, by such blocks
};
// Compiles through the disk cache, for the architecture of `device`, which need not be there. Never
// fails: a machine without NVRTC, the emulator, or text that does not compile, is the report's
// `problem`.
KernelReport report_kernel(const Step& step, const DeviceInfo& device);

}  // namespace tensorcraft::op
