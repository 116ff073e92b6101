// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/host_compiler.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/user_kernel.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace tensorcraft::jit {
namespace {

using test::expect_error_with;

TensorView simt_view(std::vector<float>& data) {
  return {data.data(), DType::float32, {int64_t(data.size())}, Device::simt()};
}

TEST(HostCompiler, IsTheFirstOnTheSearchPath) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path();
  EXPECT_FALSE(find_host_compiler(""));
  EXPECT_FALSE(find_host_compiler("relative:" + path + "::/nowhere"));
  const auto add = [&](const char* name) {
    std::ofstream(path + "/" + name) << "#!/bin/sh\n";
    std::filesystem::permissions(path + "/" + name, std::filesystem::perms::owner_all);
  };
  std::ofstream(path + "/g++") << "not executable";
  add("c++");
  EXPECT_EQ(find_host_compiler("/nowhere:" + path)->path, path + "/c++");
  add("clang++");
  EXPECT_EQ(find_host_compiler(path)->path, path + "/clang++");
  add("g++");
  EXPECT_EQ(find_host_compiler(path)->path, path + "/g++");
}

class HostKernel : public testing::Test {
 protected:
  void SetUp() override {
    if (!find_host_compiler(config().search_path)) GTEST_SKIP() << "no C++ compiler on PATH";
    before_ = host_counters();
  }
  long compiles() const { return host_counters().compiles - before_.compiles; }
  long disk_hits() const { return host_counters().disk_hits - before_.disk_hits; }
  HostCounters before_;
};

constexpr const char* kReverse = R"(
#include "tensorcraft/device/shared.cuh"
struct Tile { float values[64]; };
__global__ void __launch_bounds__(64) reverse(float* y, const float* __restrict__ x, float a, half b) {
  auto& tile = static_shared<Tile>();
  const int i = threadIdx.x, at = blockIdx.x * blockDim.x + i;
  tile.values[i] = x[at];
  __syncthreads();
  y[at] = a * tile.values[63 - i] + float(b);
})";

TEST_F(HostKernel, RunsTheTextAndComesFromMemoryThenDisk) {
  std::string text = kReverse;
  text.replace(text.find("half"), 4, "f16");
  const UserKernel reverse(text, "reverse(float* y, const float* x, float a, half b)");
  std::vector<float> y(256), x(256);
  for (int i = 0; i < 256; ++i) x[size_t(i)] = float(i);
  const auto run = [&] {
    y.assign(256, 0);
    reverse({.grid = {4}, .block = {64}}, simt_view(y), simt_view(x), 2, 0.5);
    for (int i = 0; i < 256; ++i)
      ASSERT_EQ(y[size_t(i)], 2 * float(i / 64 * 64 + 63 - i % 64) + 0.5f) << i;
  };
  run();
  const long first = compiles();
  EXPECT_LE(first, 1);
  run();
  clear_host_kernels();
  run();
  EXPECT_EQ(compiles(), first);
  EXPECT_EQ(disk_hits(), 2 - first);
}

TEST_F(HostKernel, TheErrorOfACompileHasTheUsersLine) {
  const UserKernel wrong("__global__ void k(float* y) {\n  y[0] = foo + 1;\n}\n", "k(float* y)", {},
                         "mine.cu");
  std::vector<float> y(1);
  try {
    wrong({.grid = {1}, .block = {1}}, simt_view(y));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::compile);
    const std::string text = error.what();
    EXPECT_NE(text.find("mine.cu:2:"), text.npos) << text;
    EXPECT_NE(text.find("y[0] = foo + 1;"), text.npos) << text;
    EXPECT_NE(text.find('^'), text.npos) << text;
  }
}

TEST_F(HostKernel, ASignatureThatDisagreesIsNamed) {
  const UserKernel disagrees("__global__ void k(float* y, int n) {}", "k(float* y)");
  std::vector<float> y(1);
  expect_error_with(ErrorKind::compile,
                    "the text's function cannot be called by the signature k(float* y)",
                    [&] { disagrees({.grid = {1}, .block = {1}}, simt_view(y)); });
}

// The library itself writes other names into that folder and text.
TEST_F(HostKernel, AnyNameWillDo) {
  std::vector<float> y(1);
  for (const char* file : {"user_p.cpp", "log", "kernel.o", "kernel.so", "tensorcraft", "p.cu"}) {
    const UserKernel p("template <int n> TC_DEVICE void p(float* p) { p[0] = float(n); }",
                       "p<arguments>(float* p)", {{"arguments", int64_t(7)}}, file);
    y[0] = 0;
    p({.grid = {1}, .block = {1}}, simt_view(y));
    EXPECT_EQ(y[0], 7) << file;
  }
  const UserKernel constant("void f(float* y) { y[0] = p; }", "f(float* y)", {{"p", 2.5}});
  constant({.grid = {1}, .block = {1}}, simt_view(y));
  EXPECT_EQ(y[0], 2.5f);
}

TEST_F(HostKernel, ConstantsAndTemplatesReachTheText) {
  const UserKernel fill(
      "template <class U, int n> TC_DEVICE void fill(U* y) {\n"
      "  for (int i = 0; i < n; ++i) y[i] = U(float(i) + kHalf);\n}\n",
      "fill<T, kCount>(T* y)", {{"T", DType::float32}, {"kCount", int64_t(3)}, {"kHalf", 0.5}});
  std::vector<float> y(4);
  fill({.grid = {1}, .block = {1}}, simt_view(y));
  EXPECT_EQ(y, (std::vector<float>{0.5f, 1.5f, 2.5f, 0}));
}

TEST_F(HostKernel, FaultsNameKernelAndThread) {
  const UserKernel large(
      "#include \"tensorcraft/device/shared.cuh\"\nstruct Tile { float values[64]; };\n"
      "TC_DEVICE void large(float* y) { y[0] = dynamic_shared<Tile>().values[0]; }",
      "large(float* y)");
  std::vector<float> y(1);
  expect_error_with(ErrorKind::kernel_fault, "large: block (0, 0, 0)",
                    [&] { large({.grid = {1}, .block = {32}, .shared_bytes = 16}, simt_view(y)); });
}

TEST_F(HostKernel, RefusesWhatTheEmulatorHasNoWordFor) {
  const UserKernel shared(
      "__global__ void k(float* y) { __"
      "shared__ float t[32]; }",
      "k(float* y)");
  std::vector<float> y(1);
  expect_error_with(ErrorKind::compile, "write `auto& tile = static_shared<Tile>();`",
                    [&] { shared({.grid = {1}, .block = {32}}, simt_view(y)); });
  const UserKernel one("__global__ void k(float* y) { y[0] = 1; }", "k(float* y)");
  expect_error_with(ErrorKind::value, "which has none",
                    [&] { one({.grid = {1}, .block = {1}, .stream = StreamRef()}, simt_view(y)); });
  expect_error_with(ErrorKind::value, "is empty",
                    [&] { one({.grid = {0}, .block = {1}}, simt_view(y)); });
}

bool is_mapped(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("memfd:" + name) != line.npos) return true;
  return false;
}

TEST_F(HostKernel, OneUnusedForLongestIsUnloaded) {
  std::vector<float> y(1);
  const auto run = [&](const char* name) {
    const UserKernel kernel(std::string("__global__ void ") + name + "(float* y) { y[0] += 1; }",
                            std::string(name) + "(float* y)");
    kernel({.grid = {1}, .block = {1}}, simt_view(y));
  };
  set_host_kernel_limit(1);
  run("leaves");
  EXPECT_TRUE(is_mapped("user_leaves"));
  run("comes");
  EXPECT_FALSE(is_mapped("user_leaves"));
  EXPECT_TRUE(is_mapped("user_comes"));
  run("leaves");
  set_host_kernel_limit(1024);
  EXPECT_EQ(y[0], 3);
}

TEST_F(HostKernel, WhatNoCallerCanReadIsNamed) {
  const UserKernel throws("__global__ void k(float* y) { throw 5; }", "k(float* y)");
  std::vector<float> y(1);
  test::expect_error_with(ErrorKind::type, "k: throws int, which is no std::exception",
                          [&] { throws({.grid = {1}, .block = {1}}, simt_view(y)); });
}

TEST_F(HostKernel, ManyThreadsShareOneCompile) {
  const UserKernel one("__global__ void many(float* y) { y[blockIdx.x] += 1; }", "many(float* y)");
  std::vector<std::vector<float>> results(4, std::vector<float>(3));
  std::vector<std::thread> threads;
  for (auto& y : results)
    threads.emplace_back([&] { one({.grid = {3}, .block = {1}}, simt_view(y)); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& y : results) EXPECT_EQ(y, (std::vector<float>{1, 1, 1}));
  EXPECT_LE(compiles(), 1);
}

}  // namespace
}  // namespace tensorcraft::jit
