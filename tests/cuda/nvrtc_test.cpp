// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/nvrtc.hpp"

#include "tensorcraft/core/error.hpp"

#include <gtest/gtest.h>

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace tensorcraft::cuda {
namespace {

constexpr const char* kSource = "extern \"C\" __global__ void k(float* p) { *p = 1; }\n";

#define SKIP_WITHOUT_NVRTC() \
  if (!nvrtc_available()) GTEST_SKIP() << nvrtc_problem()

TEST(Nvrtc, CompilesToMachineCodeAndToPtx) {
  SKIP_WITHOUT_NVRTC();
  EXPECT_GE(nvrtc_version().major, 12);
  EXPECT_FALSE(nvrtc_path().empty());
  EXPECT_NE(std::ranges::find(nvrtc_architectures(), 90), nvrtc_architectures().end());
  const std::string real[] = {"--gpu-architecture=sm_90a"};
  const NvrtcResult cubin = nvrtc_compile(kSource, "k.cu", {}, real);
  ASSERT_TRUE(cubin.ok) << cubin.log;
  EXPECT_EQ(cubin.image.substr(1, 3), "ELF");
  const std::string virtual_arch[] = {"--gpu-architecture=compute_90"};
  const NvrtcResult ptx = nvrtc_compile(kSource, "k.cu", {}, virtual_arch);
  ASSERT_TRUE(ptx.ok) << ptx.log;
  EXPECT_NE(ptx.image.find(".entry k"), std::string::npos);
  EXPECT_NE(ptx.image.back(), '\0');
}

TEST(Nvrtc, IncludesHeadersByNameFromMemory) {
  SKIP_WITHOUT_NVRTC();
  const std::pair<const char*, const char*> headers[] = {{"a/b.h", "#define VALUE 3\n"}};
  const std::string source =
      "#include \"a/b.h\"\nextern \"C\" __global__ void k(int* p) { *p = VALUE; }\n";
  EXPECT_TRUE(nvrtc_compile(source, "k.cu", headers, {}).ok);
  EXPECT_FALSE(nvrtc_compile(source, "k.cu", {}, {}).ok);
}

TEST(Nvrtc, AFailedCompilationHasALogAndNoImage) {
  SKIP_WITHOUT_NVRTC();
  const NvrtcResult result = nvrtc_compile("int f() { return nothing; }", "bad.cu", {}, {});
  EXPECT_FALSE(result.ok);
  EXPECT_TRUE(result.image.empty());
  EXPECT_NE(result.log.find("bad.cu(1): error"), std::string::npos) << result.log;
  EXPECT_NE(result.log.back(), '\0');
}

TEST(Nvrtc, CompilesOnTwoThreadsAtOnce) {
  SKIP_WITHOUT_NVRTC();
  bool ok[2] = {};
  std::thread threads[2];
  for (int i = 0; i < 2; ++i)
    threads[i] = std::thread([&ok, i] { ok[i] = nvrtc_compile(kSource, "k.cu", {}, {}).ok; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(ok[0] && ok[1]);
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
// glibc keeps of freed memory what a compile takes: a block of half as much is no mapping of its
// own any more. No block is freed here, as that alone would change it.
TEST(NvrtcDeathTest, KeepsTheMemoryOfACompile) {
  SKIP_WITHOUT_NVRTC();
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto maps_a_block = [] {
    const size_t before = mallinfo2().hblks;
    void* const volatile block = std::malloc(size_t{8} << 20);
    return block != nullptr && mallinfo2().hblks > before;
  };
  const auto body = [&] {
    const bool before = maps_a_block();
    nvrtc_compile(kSource, "k.cu", {}, {});
    std::exit(before && !maps_a_block() ? 0 : 1);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), "");
}
#endif

// Each in a process of its own, since a process looks for NVRTC once.
TEST(NvrtcDeathTest, SaysThatItIsMissingAndHowToFixIt) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto body = [] {
    setenv("TENSORCRAFT_NVRTC", "/nonexistent/folder", 1);
    int code = nvrtc_available() ? 1 : 0;
    try {
      nvrtc_compile(kSource, "k.cu", {}, {});
      code = 2;
    } catch (const Error& error) {
      const std::string text = error.what();
      if (error.kind() != ErrorKind::unsupported ||
          text.substr(0, text.find('\n')) != "NVRTC JIT compiler not available" ||
          text.find("/nonexistent/folder") == std::string::npos)
        code = 3;
    }
    std::_Exit(code);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tensorcraft::cuda
