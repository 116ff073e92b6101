// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/op/launch/kernel_report.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

// docs/kernels.json: what every kernel took when it was last accepted, and how the compile gate
// holds a new measurement against it.
namespace tensorcraft::test {

struct KernelUse {
  int registers = 0;        // of each thread
  size_t shared_bytes = 0;  // of each block, static and dynamic
  size_t spill_bytes = 0, stack_bytes = 0, code_bytes = 0;
  int threads = 0, min_blocks = 1;  // the launch bounds
};

struct MeasuredKernel {
  KernelUse use;
  Occupancy promised;      // by registers and threads, which the launch bounds are about
  int blocks_per_sm = 0;   // by shared memory too
  bool may_spill = false;  // its variant declares a reason
};
MeasuredKernel measured_kernel(const op::KernelReport& report, const DeviceInfo& device,
                               bool may_spill);

// "gemm_naive bfloat16,float32 bm32_bn8_...": rung, dtypes, and what of the Config is not 0.
std::string kernel_name(const jit::KernelKey& key);
std::string rung_name(const std::string& kernel_name);

// By kernel_name(), of one architecture.
using MeasuredKernels = std::map<std::string, MeasuredKernel>;

using KernelUses = std::map<std::string, KernelUse>;  // by kernel_name()

// By rung, the first word of its kernels' names: a hash of what the compiler read for all of them.
using RungTexts = std::map<std::string, std::string>;

struct KernelBaseline {
  std::string nvrtc;                          // "13.0"
  std::map<std::string, KernelUses> kernels;  // by architecture
  std::map<std::string, RungTexts> texts;     // by architecture
  std::map<std::string, int> left_out;        // by architecture: kernels of changed texts that a
                                              // measurement did not compile again
};
// Kind not_found or value if the file is not there or not of this form.
KernelBaseline read_baseline(const std::string& path);
// Writes the same form, for scripts/kernels_table.py to accept. Kind io if it cannot be written.
void write_baseline(const KernelBaseline& baseline, const std::string& path);

struct Findings {
  std::vector<std::string> failures;
  // Growth under another NVRTC than the baseline's; launch bounds that shared memory does not keep.
  std::vector<std::string> notes;
};
// An undeclared spill, broken launch bounds, growth over 10 %, and a kernel that only one side has.
// `accept` is the command that makes the measurement the baseline.
Findings judge(const MeasuredKernels& measured, const std::string& arch, const std::string& nvrtc,
               const KernelBaseline& baseline, std::string_view accept);

}  // namespace tensorcraft::test
