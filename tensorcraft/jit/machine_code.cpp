// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/machine_code.hpp"

#include <cstdint>
#include <cstring>
#include <elf.h>

#include <algorithm>
#include <vector>

namespace tensorcraft::jit {
namespace {

// The sections of a cubin that hold instructions; none of PTX and of bytes that are no cubin.
std::vector<std::string_view> code_sections(std::string_view image) {
  std::vector<std::string_view> sections;
  Elf64_Ehdr head;
  if (image.size() < sizeof(head)) return {};
  std::memcpy(&head, image.data(), sizeof(head));
  const bool is_elf = std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
                      head.e_ident[EI_CLASS] == ELFCLASS64 &&
                      head.e_shentsize == sizeof(Elf64_Shdr);
  const size_t table_bytes = size_t(head.e_shnum) * sizeof(Elf64_Shdr);
  if (!is_elf || head.e_shoff > image.size() || table_bytes > image.size() - head.e_shoff)
    return {};
  for (size_t i = 0; i < head.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, image.data() + head.e_shoff + i * sizeof(section), sizeof(section));
    const bool inside =
        section.sh_offset <= image.size() && section.sh_size <= image.size() - section.sh_offset;
    if (inside && (section.sh_flags & SHF_EXECINSTR))
      sections.push_back(image.substr(section.sh_offset, section.sh_size));
  }
  return sections;
}

}  // namespace

size_t machine_code_bytes(std::string_view image) {
  size_t bytes = 0;
  for (const std::string_view code : code_sections(image)) bytes += code.size();
  return bytes;
}

bool has_broken_copies(std::string_view image) {
  // A copy from global to shared memory is 0xfae in the lowest 12 bits of its 16 bytes. With the
  // uniform offset a bit less is set, and the number of that register is lost.
  constexpr size_t kBytes = 16;
  constexpr uint64_t kOpcode = 0xfff, kBroken = 0xdae;
  return std::ranges::any_of(code_sections(image), [](std::string_view code) {
    for (size_t at = 0; at + kBytes <= code.size(); at += kBytes) {
      uint64_t low;
      std::memcpy(&low, code.data() + at, sizeof(low));
      if ((low & kOpcode) == kBroken) return true;
    }
    return false;
  });
}

}  // namespace tensorcraft::jit
