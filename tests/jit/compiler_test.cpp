// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/compiler.hpp"

#include "tensorcraft/core/error.hpp"
#include "tests/jit/child_process.hpp"
#include "tests/jit/test_rung.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tensorcraft::jit {
namespace {

namespace fs = std::filesystem;
using test::scale_key;
using test::TemporaryFolder;

const Toolchain kToolchain{{13, 0}, {80, 86, 89, 90, 100}};

std::vector<std::string> kernel_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& file : fs::directory_iterator(folder)) {
    if (file.path().extension() == ".kernel") files.push_back(file.path());
  }
  return files;
}

TEST(CompilationFlags, NameTheRealArchitectureAndNoFastMath) {
  const std::vector<std::string> expected{"--gpu-architecture=sm_90a", "--std=c++20",
                                          "--ptxas-options=--verbose",
                                          "--ptxas-options=--warn-on-spills", "--minimal"};
  EXPECT_EQ(compilation_flags("sm_90a", kToolchain, {}), expected);
}

TEST(CompilationFlags, LeaveOutWhatAnOlderCompilerDoesNotKnow) {
  const auto last = [](cuda::NvrtcVersion version) {
    return compilation_flags("sm_90a", {version, kToolchain.architectures}, {}).back();
  };
  EXPECT_EQ(last({12, 4}), "--minimal");
  EXPECT_EQ(last({12, 3}), "--ptxas-options=--warn-on-spills");
}

TEST(CompilationFlags, CarryDeviceDebugOrLineInformation) {
  const auto last = [](CompilationOptions options) {
    return compilation_flags("sm_90a", kToolchain, options).back();
  };
  EXPECT_EQ(last({.device_debug = true}), "--device-debug");
  EXPECT_EQ(last({.line_info = true}), "--generate-line-info");
}

// The presets debug and profile define these for the whole build, this file included.
TEST(CompilationOptions, AreThoseOfThePreset) {
#if defined(TENSORCRAFT_JIT_DEBUG)
  EXPECT_TRUE(build_options().device_debug);
#else
  EXPECT_FALSE(build_options().device_debug);
#endif
#if defined(TENSORCRAFT_JIT_LINEINFO)
  EXPECT_TRUE(build_options().line_info);
#else
  EXPECT_FALSE(build_options().line_info);
#endif
}

TEST(CompilationOptions, HaveANameForSignatures) {
  EXPECT_EQ(to_string(CompilationOptions{}), "O3");
  EXPECT_EQ(to_string(CompilationOptions{.device_debug = true}), "O0debug");
  EXPECT_EQ(to_string(CompilationOptions{.line_info = true}), "O3lines");
}

TEST(CompilationFlags, AskForThePtxOfTheNewestArchitectureBelowAnUnknownOne) {
  const auto target = [](const char* arch) { return compilation_flags(arch, kToolchain, {})[0]; };
  EXPECT_EQ(target("sm_89"), "--gpu-architecture=sm_89");
  EXPECT_EQ(target("sm_130a"), "--gpu-architecture=compute_100");
  EXPECT_EQ(target("sm_87"), "--gpu-architecture=compute_86");
  EXPECT_THROW(target("sm_70"), Error);
  EXPECT_THROW(target("gfx90a"), Error);
}

TEST(Program, KeyChangesWithEveryInputAndWithNothingElse) {
  test::add_scale_header();
  const Program program = make_program(scale_key(), "sm_90a", kToolchain);
  EXPECT_EQ(make_program(scale_key(), "sm_90a", kToolchain).key, program.key);
  std::set<std::string> keys{program.key};
  keys.insert(make_program(scale_key(DType::int32), "sm_90a", kToolchain).key);
  keys.insert(make_program(scale_key(DType::float32, 4), "sm_90a", kToolchain).key);
  keys.insert(make_program(scale_key(), "sm_90", kToolchain).key);
  keys.insert(make_program(scale_key(), "sm_90a", {{13, 1}, kToolchain.architectures}).key);
  KernelKey wider = scale_key();
  wider.threads = 256;
  keys.insert(make_program(wider, "sm_90a", kToolchain).key);
  // The only other architecture known below SM 130 changes the options alone.
  keys.insert(make_program(scale_key(), "sm_130", {{13, 0}, {100}}).key);
  keys.insert(make_program(scale_key(), "sm_130", {{13, 0}, {90}}).key);
  keys.insert(make_program(scale_key(), "sm_90a", kToolchain, {.device_debug = true}).key);
  keys.insert(make_program(scale_key(), "sm_90a", kToolchain, {.line_info = true}).key);
  test::add_scale_header("3");
  keys.insert(make_program(scale_key(), "sm_90a", kToolchain).key);
  EXPECT_GE(keys.size(), 10u);  // one of the two options may be the preset's
  add_source("tensorcraft/test/not_reached.cuh", "int x;");
  test::add_scale_header();
  EXPECT_EQ(make_program(scale_key(), "sm_90a", kToolchain).key, program.key);
}

TEST(Program, SignatureIsReadableAndEndsInTheKey) {
  test::add_scale_header();
  const Program program = make_program(scale_key(), "sm_90a", kToolchain, {});
  EXPECT_EQ(program.signature,
            "test_scale_float32_bm1_u2_arch90a_optO3_hash" + program.key.substr(0, 16));
}

TEST(ResourceUse, IsReadFromTheLogOfPtxas) {
  const ResourceUse use = parse_resource_use(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'f' for 'sm_90a'\n"
      "ptxas info    : Function properties for f\n"
      "    24 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 49152 bytes smem, 400 bytes cmem[0]\n");
  EXPECT_EQ(use.registers, 168);
  EXPECT_EQ(use.shared_bytes, 49152u);
  EXPECT_EQ(use.stack_bytes, 24u);
  EXPECT_EQ(use.spill_store_bytes, 8u);
  EXPECT_EQ(use.spill_load_bytes, 12u);
}

TEST(FirstError, SkipsWarningsThatComeBefore) {
  EXPECT_EQ(first_error("a.cu(1): warning #1\na.cu(2): error: bad\nmore"), "a.cu(2): error: bad");
  EXPECT_EQ(first_error("nothing known\n"), "nothing known");
  EXPECT_EQ(first_error(""), "");
}

TEST(TrimmedLog, ShowsTheFirstErrorFirstWithItsPlaceAndNoWarning) {
  const std::string log =
      "a.cu(3): warning #177-D: variable \"y\" was declared but never used\n"
      "    int y;\n"
      "        ^\n"
      "\n"
      "a.cu(5): error: identifier \"x\" is undefined\n"
      "    return x;\n"
      "           ^\n"
      "\n"
      "Remark: warnings can be suppressed\n"
      "\n"
      "a.cu(9): error: expected a \";\"\n"
      "    }\n"
      "    ^\n"
      "\n"
      "2 errors detected in the compilation of \"a.cu\".\n";
  EXPECT_EQ(trimmed_log(log),
            "a.cu(5): error: identifier \"x\" is undefined\n"
            "    return x;\n"
            "           ^\n"
            "a.cu(9): error: expected a \";\"\n"
            "    }\n"
            "    ^");
}

TEST(TrimmedLog, CountsTheErrorsThatItLeavesOut) {
  std::string log;
  for (int i = 1; i <= 5; ++i) log += "a.cu(" + std::to_string(i) + "): error: bad\n";
  EXPECT_EQ(trimmed_log(log),
            "a.cu(1): error: bad\na.cu(2): error: bad\na.cu(3): error: bad\n(and 2 more errors)");
  EXPECT_EQ(trimmed_log("ptxas died\nmore"), "ptxas died");
}

// The rest compiles.
class CompilerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
    test::add_scale_header();
  }
  TemporaryFolder root_;
  std::string folder_ = root_.file("cache");
};

TEST_F(CompilerTest, CompilesOnceAcrossRestarts) {
  const Compiler::Result first = Compiler(folder_).build(scale_key(), "sm_90a");
  EXPECT_FALSE(first.from_disk);
  EXPECT_TRUE(
      first.entry.image.starts_with("\x7f"
                                    "ELF"));
  EXPECT_GT(parse_resource_use(first.entry.log).registers, 0) << first.entry.log;
  Compiler restarted(folder_);
  const Compiler::Result second = restarted.build(scale_key(), "sm_90a");
  EXPECT_TRUE(second.from_disk);
  EXPECT_EQ(second.entry.image, first.entry.image);
  EXPECT_EQ(second.entry.log, first.entry.log);
  EXPECT_EQ(second.entry.options, first.entry.options);
  EXPECT_EQ(restarted.compiles(), 0);
  EXPECT_EQ(restarted.disk_hits(), 1);
}

TEST_F(CompilerTest, CompilesNothingIfItMayNot) {
  const auto without = [this] {
    return Compiler(folder_, kDefaultCacheBytes, kLockTimeout, false);
  };
  const auto refused = [&](bool fresh) {
    test::expect_error_with(ErrorKind::unsupported,
                            "is not in the cache, and the setting jit is off",
                            [&] { without().build(scale_key(), "sm_90a", fresh); });
  };
  refused(false);
  Compiler(folder_).build(scale_key(), "sm_90a");
  EXPECT_TRUE(without().build(scale_key(), "sm_90a").from_disk);
  refused(true);
}

TEST_F(CompilerTest, GivesTheSameBytesEachTime) {
  Compiler compiler(folder_);
  EXPECT_EQ(compiler.build(scale_key(), "sm_80", true).entry.image,
            compiler.build(scale_key(), "sm_80", true).entry.image);
  EXPECT_EQ(compiler.compiles(), 2);
  EXPECT_EQ(kernel_files(folder_).size(), 0u) << "a fresh compilation stores nothing";
}

TEST_F(CompilerTest, CompilesAnEditedHeaderAgain) {
  Compiler(folder_).build(scale_key(), "sm_90a");
  test::add_scale_header("5");
  Compiler restarted(folder_);
  restarted.build(scale_key(), "sm_90a");
  EXPECT_EQ(restarted.compiles(), 1);
  EXPECT_EQ(kernel_files(folder_).size(), 2u);
}

TEST_F(CompilerTest, RebuildsACorruptEntry) {
  const Compiler::Result first = Compiler(folder_).build(scale_key(), "sm_90a");
  const std::string file = kernel_files(folder_).at(0);
  const std::string good = test::read_file(file);
  std::string flipped = good;
  flipped[good.size() / 2] ^= 4;
  const std::string other_arch = encode_entry(
      [&] {
        CacheEntry entry = first.entry;
        entry.arch = "sm_90";
        return entry;
      }(),
      first.program.key);
  for (const std::string& bad : {good.substr(0, good.size() / 2), flipped, std::string(),
                                 other_arch, encode_entry(first.entry, std::string(64, '0'))}) {
    test::write_file(file, bad);
    Compiler compiler(folder_);
    EXPECT_EQ(compiler.build(scale_key(), "sm_90a").entry.image, first.entry.image);
    EXPECT_EQ(compiler.bad_entries(), 1);
    EXPECT_EQ(compiler.compiles(), 1);
    EXPECT_TRUE(Compiler(folder_).build(scale_key(), "sm_90a").from_disk) << "not written anew";
  }
}

TEST_F(CompilerTest, AStaleMemoOfTheCompilerCostsOneMissAtMost) {
  Compiler(folder_).build(scale_key(), "sm_90a");
  for (const auto& file : fs::directory_iterator(folder_)) {
    if (!file.path().filename().string().starts_with("nvrtc-")) continue;
    ToolchainMemo memo = *decode_memo(test::read_file(file.path()));
    memo.toolchain.version = {99, 0};
    test::write_file(file.path(), encode_memo(memo));
  }
  Compiler restarted(folder_);
  EXPECT_TRUE(restarted.build(scale_key(), "sm_90a").from_disk);
  EXPECT_EQ(restarted.compiles(), 0);
}

TEST_F(CompilerTest, WorksWithoutADiskCache) {
  for (const std::string& folder : {std::string(), std::string("/proc/none/cache")}) {
    Compiler compiler(folder);
    EXPECT_FALSE(compiler.build(scale_key(), "sm_90a").entry.image.empty());
    EXPECT_FALSE(compiler.build(scale_key(), "sm_90a").entry.image.empty());
    EXPECT_EQ(compiler.compiles(), 2);
  }
}

TEST_F(CompilerTest, GivesPtxForAnArchitectureNvrtcDoesNotKnow) {
  const Compiler::Result result = Compiler(folder_).build(scale_key(), "sm_999");
  EXPECT_NE(result.entry.image.find(".entry test_scale"), std::string::npos);
  EXPECT_EQ(result.entry.arch, "sm_999");
}

TEST_F(CompilerTest, SaysWhyATextDoesNotCompileAndCachesNothing) {
  add_source("tensorcraft/test/scale.cuh",
             "#include \"tensorcraft/test/params.h\"\n"
             "#warning first\nTC_DEVICE int f() { return missing_name; }\n");
  Compiler compiler(folder_);
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      compiler.build(scale_key(), "sm_90a");
      FAIL() << "no error";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(error.kind(), ErrorKind::compile);
      const std::string first_line = text.substr(0, text.find('\n'));
      EXPECT_TRUE(text.starts_with("test_scale does not compile for sm_90a: ")) << text;
      EXPECT_NE(first_line.find("missing_name"), std::string::npos) << first_line;
      for (const char* const part : {"test_scale.cu", "--gpu-architecture=sm_90a --std=c++20",
                                     "first", "The whole log of NVRTC", "extern \"C\""}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
      }
    }
  }
  EXPECT_EQ(compiler.compiles(), 0);
  EXPECT_TRUE(kernel_files(folder_).empty());
}

// The processes of the next tests run this.
TEST(CompilerChild, BuildsInAFolderThatItIsGiven) {
  const char* const folder = std::getenv(test::kChildFolder);
  if (!folder) GTEST_SKIP() << "runs as a child of another test";
  test::add_scale_header();
  Compiler compiler(folder);
  ASSERT_FALSE(compiler.build(scale_key(), "sm_90a").entry.image.empty());
  ASSERT_EQ(compiler.bad_entries(), 0);
  test::report(folder,
               std::string(size_t(compiler.compiles()), 'c') + (test::opened_nvrtc() ? "o" : ""));
}

TEST_F(CompilerTest, EightColdProcessesCompileOnce) {
  const test::ScopedVariable given(test::kChildFolder, folder_.c_str());
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) children.push_back(test::start_child("CompilerChild.*"));
  std::string reports;
  for (const pid_t child : children) reports += test::report_of(child, folder_);
  EXPECT_EQ(std::ranges::count(reports, 'c'), 1);
}

TEST_F(CompilerTest, AWarmProcessDoesNotOpenNvrtc) {
  const test::ScopedVariable given(test::kChildFolder, folder_.c_str());
  EXPECT_EQ(test::report_of(test::start_child("CompilerChild.*"), folder_), "co");
  EXPECT_EQ(test::report_of(test::start_child("CompilerChild.*"), folder_), "");
}

}  // namespace
}  // namespace tensorcraft::jit
