// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/toolchain.hpp"

#include "tests/jit/test_rung.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::jit {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

const ToolchainMemo kToolchainMemo{
    "/opt/a folder/libnvrtc.so.13", 109000000, 1700000000123456789, {{13, 0}, {75, 80, 90, 120}}};

// The one memo in a cache folder.
std::string memo_file(const std::string& folder) {
  for (const auto& file : fs::directory_iterator(folder)) {
    if (file.path().filename().string().starts_with("nvrtc-")) return file.path();
  }
  return {};
}

TEST(ToolchainMemo, GivesBackWhatWasWritten) {
  EXPECT_EQ(decode_memo(encode_memo(kToolchainMemo)), kToolchainMemo);
}

TEST(ToolchainMemo, RefusesEveryDamage) {
  const std::string good = encode_memo(kToolchainMemo);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string damaged = good;
    damaged[i] ^= 1;
    EXPECT_FALSE(decode_memo(damaged)) << i;
    EXPECT_FALSE(decode_memo(good.substr(0, i))) << i;
  }
  EXPECT_FALSE(decode_memo(good + "more"));
}

TEST(Toolchain, IsReadFromTheMemoAsLongAsTheCompilerIsTheSameFile) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const TemporaryFolder root;
  CacheFolder folder(root.file("cache"));
  const Toolchain real = ToolchainSource(folder).candidates().at(0);
  EXPECT_EQ(real.version, cuda::nvrtc_version());
  ASSERT_FALSE(memo_file(folder.path()).empty());

  // A memo that says something else about the same file shows whether it is believed.
  const std::string name = fs::path(memo_file(folder.path())).filename();
  ToolchainMemo memo = *decode_memo(test::read_file(memo_file(folder.path())));
  memo.toolchain.version = {99, 9};
  folder.write(name, encode_memo(memo));
  ToolchainSource source(folder);
  EXPECT_EQ(source.candidates().at(0).version, (cuda::NvrtcVersion{99, 9}));
  EXPECT_EQ(source.confirm(), real);
  EXPECT_EQ(source.candidates().at(0), real);
  EXPECT_EQ(ToolchainSource(folder).candidates().at(0), real) << "confirm() writes the memo anew";

  EXPECT_TRUE(recorded_toolchains(folder).empty()) << "nothing is stored yet";
  source.record();
  source.record();
  const std::vector<std::string> recorded = recorded_toolchains(folder);
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(decode_memo(recorded[0])->toolchain, real) << "what serves when the compiler is gone";
  EXPECT_EQ(recorded[0].find("libnvrtc"), std::string::npos) << "a bundle holds no path";

  memo.modified_ns += 1;
  folder.write(name, encode_memo(memo));
  EXPECT_EQ(ToolchainSource(folder).candidates().at(0), real)
      << "a changed file makes the memo void";
}

}  // namespace
}  // namespace tensorcraft::jit
