// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/module_build.hpp"

#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tensorcraft::jit {
namespace {

using Words = std::vector<std::string>;

TEST(ModuleBuild, CudaFilesGetTheFlagsOfNvcc) {
  const ModuleSpec spec{.markers = {"my kernel"},
                        .cuda_files = {"/a.cu"},
                        .extra_cuda_cflags = {"-lineinfo"},
                        .extra_ldflags = {"-lcuda"},
                        .extra_include_paths = {"/mine"}};
  ModuleTools tools{.host = {"/usr/bin/g++"},
                    .nvcc = Executable{"/cuda/nvcc"},
                    .headers = "/headers",
                    .library = "/lib/libtensorcraft.so",
                    .arch = "sm_90a"};
  const auto commands = build_commands(spec, tools);
  ASSERT_EQ(commands.size(), 2u);
  const std::string stem = "tensorcraft_jit_my_kernel";
  EXPECT_EQ(commands[0],
            (Words{"/cuda/nvcc", "-std=c++20", "-O3", "--expt-relaxed-constexpr", "-lineinfo",
                   "-arch=sm_90a", "-Xcompiler", "-fPIC", "-I/mine", "-I/headers", "-MD", "-MF",
                   stem + ".cu.d", "-c", stem + ".cu", "-o", stem + ".cu.o"}));
  EXPECT_EQ(commands[1], (Words{"/cuda/nvcc", "-shared", stem + ".cu.o", "-Xlinker",
                                "/lib/libtensorcraft.so", "-o", stem + ".so", "-lcuda"}));
  ModuleSpec other = spec;
  other.extra_cuda_cflags = {"-gencode=arch=compute_80,code=sm_80"};
  const auto others = build_commands(other, tools);
  for (const std::string& word : others[0]) EXPECT_NE(word, "-arch=sm_90a");
  EXPECT_NE(module_key(spec, tools), module_key(other, tools));
  const std::string key = module_key(spec, tools);
  tools.nvcc->modified_ns = 1;
  EXPECT_NE(module_key(spec, tools), key) << "another compiler in its place";
}

TEST(ModuleBuild, AnEntryIsFreshWhileItsFilesAreAsTheyWere) {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("a b.hpp", "1");
  CacheEntry entry;
  entry.log =
      "command g++ a.cpp\nfile "
      "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b " +
      file + "\n";
  EXPECT_TRUE(is_fresh(entry));
  EXPECT_EQ(commands_of(entry), Words{"g++ a.cpp"});
  folder.write("a b.hpp", "2");
  EXPECT_FALSE(is_fresh(entry));
}

}  // namespace
}  // namespace tensorcraft::jit
