// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/kernel_report.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/jit/machine_code.hpp"

namespace tensorcraft::op {

KernelReport report_kernel(const Step& step, const DeviceInfo& device) {
  KernelReport report;
  report.arch = device.arch();
  report.launch = step.launch;
  report.min_blocks = step.kernel.min_blocks;
  if (device.device == Device::simt()) {
    report.problem = "the emulator runs host code; ask about " + report.arch + " instead";
    return report;
  }
  try {
    const jit::CompileReport compiled = jit::compile(step.kernel, report.arch);
    report.signature = compiled.signature;
    report.registers = compiled.registers;
    report.shared_bytes = compiled.shared_bytes + step.launch.shared_bytes;
    report.spill_bytes = compiled.spill_bytes;
    report.stack_bytes = compiled.stack_bytes;
    report.code_bytes = jit::machine_code_bytes(compiled.image);
    report.compile_ms = compiled.milliseconds;
  } catch (const Error& error) {
    const std::string text = error.what();
    report.problem = text.substr(0, text.find('\n'));
    return report;
  }
  if (report.registers == 0)
    report.problem = "NVRTC does not know " + report.arch + "; the driver compiles it at the load";
  else
    report.occupancy = occupancy(device, {.threads = int(step.launch.block.count()),
                                          .registers = report.registers,
                                          .shared_bytes = report.shared_bytes});
  return report;
}

}  // namespace tensorcraft::op
