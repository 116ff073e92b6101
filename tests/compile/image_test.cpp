// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/compiler.hpp"
#include "tensorcraft/jit/toolchain.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

// NVRTC makes this of device text: the architecture it is told, the accesses, and lines for a
// profiler.
namespace tensorcraft {
namespace {

const char* const kArchitectures[] = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"};

bool is_known(const char* arch) {
  const auto known = cuda::nvrtc_architectures();
  return std::ranges::find(known, device_info_of_arch(arch).compute_capability) != known.end();
}

std::string compiled(const std::string& header, const std::string& text, std::string_view arch,
                     const jit::CompilationOptions& options = {}) {
  std::vector<std::pair<const char*, const char*>> headers;
  const auto closure = jit::include_closure(header);
  for (const auto& h : *closure) headers.emplace_back(h->name.c_str(), h->text.c_str());
  const auto known = cuda::nvrtc_architectures();
  const jit::Toolchain toolchain{cuda::nvrtc_version(), {known.begin(), known.end()}};
  const auto result =
      cuda::nvrtc_compile("#include \"" + header + "\"\n" + text, "image_test.cu", headers,
                          jit::compilation_flags(arch, toolchain, options));
  EXPECT_TRUE(result.ok) << arch << ": " << result.log;
  return result.image;
}

TEST(Features, FollowTheArchitectureThatNvrtcCompilesFor) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  for (const char* arch : kArchitectures) {
    if (!is_known(arch)) continue;
    const int number = 10 * device_info_of_arch(arch).compute_capability;
    const std::string hopper = number >= 900 ? "true" : "false";
    EXPECT_NE(compiled("tensorcraft/device/features.h",
                       "static_assert(TC_ARCH == " + std::to_string(number) +
                           " && TC_ARCH_VOLTA && TC_ARCH_AMPERE && TC_ARCH_HOPPER == " + hopper +
                           ");\nextern \"C\" __global__ void k() {}\n",
                       arch),
              "");
  }
}

// Section NAME of a cubin, which is an ELF file; empty if there is none.
std::string section(const std::string& image, std::string_view name) {
  const auto read = [&]<class T>(T& to, size_t at) {
    if (at + sizeof(T) > image.size()) throw std::out_of_range("not a cubin");
    std::memcpy(&to, image.data() + at, sizeof(T));
  };
  Elf64_Ehdr file;
  read(file, 0);
  Elf64_Shdr names, header;
  read(names, file.e_shoff + sizeof(Elf64_Shdr) * file.e_shstrndx);
  for (size_t i = 0; i < file.e_shnum; ++i) {
    read(header, file.e_shoff + sizeof(Elf64_Shdr) * i);
    if (image.data() + names.sh_offset + header.sh_name == name)
      return image.substr(header.sh_offset, header.sh_size);
  }
  return {};
}

// Loads and stores of 16 bytes from and to global memory, as nvdisasm prints LDG.E.128 and
// STG.E.128. An instruction has 128 bits: the operation in 0 to 8, the bytes of an access in 73 to
// 75 as a power of two less one for signed and unsigned bytes and words: 6 is 16 bytes.
struct Accesses {
  int loads = 0, stores = 0;
};
Accesses wide_accesses(const std::string& image) {
  const std::string code = section(image, ".text.k");
  Accesses found;
  for (size_t at = 0; at + 16 <= code.size(); at += 16) {
    uint64_t words[2];
    std::memcpy(words, code.data() + at, sizeof words);
    const auto operation = words[0] & 0x1ff, bytes = words[1] >> 9 & 7;
    found.loads += operation == 0x181 && bytes == 6;
    found.stores += operation == 0x186 && bytes == 6;
  }
  return found;
}

std::string copy_kernel(const std::string& type, int values) {
  const std::string n = std::to_string(values);
  return "using namespace tensorcraft;\n"
         "extern \"C\" __global__ void k(const " +
         type + "* in, " + type +
         "* out) {\n"
         "  const int i = threadIdx.x * " +
         n +
         ";\n"
         "  store_vector(out + i, load_vector<" +
         n + ">(in + i));\n}\n";
}

TEST(Vectors, AreOneAccessOf16Bytes) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const std::string header = "tensorcraft/device/vec.cuh";
  for (const char* arch : kArchitectures) {
    if (!is_known(arch)) continue;
    for (const auto& [type, values] : {std::pair{"float", 4}, {"unsigned short", 8}}) {
      const Accesses wide = wide_accesses(compiled(header, copy_kernel(type, values), arch));
      EXPECT_EQ(wide.loads, 1) << type << " for " << arch;
      EXPECT_EQ(wide.stores, 1) << type << " for " << arch;
      const Accesses half = wide_accesses(compiled(header, copy_kernel(type, values / 2), arch));
      EXPECT_EQ(half.loads + half.stores, 0) << type << " for " << arch;
    }
  }
}

TEST(LineInformation, IsInTheImageOfABuildThatAsksForIt) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const auto lines = [](const jit::CompilationOptions& options) {
    return section(
        compiled("tensorcraft/device/vec.cuh", copy_kernel("float", 4), "sm_90a", options),
        ".debug_line");
  };
  EXPECT_NE(lines({.line_info = true}).find("vec.cuh"), std::string::npos);
  EXPECT_EQ(lines({}), "");
}

}  // namespace
}  // namespace tensorcraft
