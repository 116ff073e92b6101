// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstring>
#include <elf.h>

#include <string>
#include <vector>

namespace tensorcraft::test {

// A file with one section of these words, two an instruction.
inline std::string made_up_cubin(const std::vector<uint64_t>& words,
                                 uint64_t flags = SHF_EXECINSTR) {
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = 1;
  head.e_shoff = sizeof(head) + words.size() * sizeof(uint64_t);
  Elf64_Shdr section{};
  section.sh_flags = flags;
  section.sh_offset = sizeof(head);
  section.sh_size = words.size() * sizeof(uint64_t);
  std::string file;
  const auto append = [&file](const auto& value) {
    file.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  append(head);
  for (const uint64_t word : words) append(word);
  append(section);
  return file;
}

// As on an H200: LDGSTS.E.BYPASS.128 [R9+0x2000], desc[UR4][R2.64], and what stood in place of
// [R24+UR4] in the kernel that it could not run.
inline constexpr uint64_t kCopy[] = {0x0200000002097fae, 0x0003f2000b901c44};
inline constexpr uint64_t kBrokenCopy[] = {0x0000000002187dae, 0x0003e8000b901c40};

}  // namespace tensorcraft::test
