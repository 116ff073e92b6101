// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/clangd.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::diagnose {
namespace {

TEST(Clangd, NamesTheLanguageTheArchitectureAndTheFolders) {
  const std::filesystem::path folders[] = {"/opt/tc/include", "/home/o'neil: tree"};
  EXPECT_EQ(clangd_config("sm_90a", folders),
            "CompileFlags:\n  Add:\n"
            "    - '-xcuda'\n    - '--cuda-gpu-arch=sm_90a'\n    - '-std=c++20'\n"
            "    - '-Wall'\n    - '-Wextra'\n"
            "    - '-isystem'\n    - '/opt/tc/include'\n"
            "    - '-isystem'\n    - '/home/o''neil: tree'\n");
}

TEST(Clangd, FindsTheHeadersOfThisLibrary) {
  const auto folders = header_folders();
  ASSERT_FALSE(folders.empty());
  EXPECT_TRUE(std::filesystem::exists(folders[0] / "tensorcraft/device/base.h"));
}

}  // namespace
}  // namespace tensorcraft::diagnose
