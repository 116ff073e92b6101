// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/kernel_report.hpp"

#include "tensorcraft/core/error.hpp"

#include <elf.h>

#include <cstring>

namespace tensorcraft::op {

KernelReport report_kernel(const Plan& plan, const DeviceInfo& device) {
  KernelReport report;
  report.arch = device.arch();
  report.launch = plan.launch;
  report.min_blocks = plan.kernel.min_blocks;
  try {
    const jit::CompileReport compiled = jit::compile(plan.kernel, report.arch);
    report.signature = compiled.signature;
    report.registers = compiled.registers;
    report.shared_bytes = compiled.shared_bytes + plan.launch.shared_bytes;
    report.spill_bytes = compiled.spill_bytes;
    report.stack_bytes = compiled.stack_bytes;
    report.code_bytes = machine_code_bytes(compiled.image);
    report.compile_ms = compiled.milliseconds;
  } catch (const Error& error) {
    const std::string text = error.what();
    report.problem = text.substr(0, text.find('\n'));
    return report;
  }
  if (report.registers == 0)
    report.problem = "NVRTC does not know " + report.arch + "; the driver compiles it at the load";
  else
    report.occupancy = occupancy(device, {.threads = int(plan.launch.block.count()),
                                          .registers = report.registers,
                                          .shared_bytes = report.shared_bytes});
  return report;
}

size_t machine_code_bytes(std::string_view image) {
  Elf64_Ehdr head;
  if (image.size() < sizeof(head)) return 0;
  std::memcpy(&head, image.data(), sizeof(head));
  const bool is_elf = std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
                      head.e_ident[EI_CLASS] == ELFCLASS64 &&
                      head.e_shentsize == sizeof(Elf64_Shdr);
  const size_t table_bytes = size_t(head.e_shnum) * sizeof(Elf64_Shdr);
  if (!is_elf || head.e_shoff > image.size() || table_bytes > image.size() - head.e_shoff) return 0;
  size_t bytes = 0;
  for (size_t i = 0; i < head.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, image.data() + head.e_shoff + i * sizeof(section), sizeof(section));
    if (section.sh_flags & SHF_EXECINSTR) bytes += section.sh_size;
  }
  return bytes;
}

}  // namespace tensorcraft::op
