// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/user_kernel.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace tensorcraft::jit {
namespace {

using test::expect_error_with;
using test::FakeDriver;
using test::FakeGpu;

constexpr const char* kAxpy = R"(
__global__ void axpy(float* y, const float* x, float a, int64_t n) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
)";
constexpr const char* kSignature = "axpy(float* y, const float* x, float a, int64 n)";

TensorView on(Device device, float* data, int64_t n) { return {data, DType::float32, {n}, device}; }

struct AxpyArguments {
  float* y;
  const float* x;
  float a;
  int64_t n;
};

TEST(UserArguments, AreLaidOutAsC) {
  const auto signature =
      parse_signature("k(bool a, int8 b, uint16 c, double d, half e, float* f, uint64 g)");
  float data = 0;
  UserArguments packed(signature);
  packed.add(true);
  packed.add(-128);
  packed.add(65535u);
  packed.add(0.1);
  packed.add(2);
  packed.add(on(Device::simt(), &data, 1));
  packed.add(std::numeric_limits<uint64_t>::max());
  packed.check_complete();
  struct {
    bool a;
    int8_t b;
    uint16_t c;
    double d;
    uint16_t e;
    float* f;
    uint64_t g;
  } expected;
  ASSERT_EQ(signature.argument_bytes, sizeof(expected));
  std::memcpy(&expected, packed.data(), sizeof(expected));
  EXPECT_TRUE(expected.a);
  EXPECT_EQ(expected.b, -128);
  EXPECT_EQ(expected.c, 65535);
  EXPECT_EQ(expected.d, 0.1);
  EXPECT_EQ(expected.e, 0x4000) << "2 as float16";
  EXPECT_EQ(expected.f, &data);
  EXPECT_EQ(expected.g, std::numeric_limits<uint64_t>::max());
}

TEST(UserArguments, TakeATableOfAddressesAsItsBits) {
  const auto signature = parse_signature("k(const uint64* table)");
  EXPECT_EQ(signature.parameters[0].spelling, "uint64_t");
  int64_t table[2] = {};
  float data = 0;
  UserArguments packed(signature);
  packed.add(TensorView(table, DType::int64, {2}, Device::simt()));
  const void* address = nullptr;
  std::memcpy(&address, packed.data(), sizeof(address));
  EXPECT_EQ(address, table);
  UserArguments wrong(signature);
  expect_error_with(ErrorKind::type, "k: table: expected an array of uint64, got float32",
                    [&] { wrong.add(on(Device::simt(), &data, 1)); });
}

TEST(UserArguments, RefuseNumbersOutsideOfTheType) {
  const auto refuse = [](const char* type, auto value, ErrorKind kind, const char* text) {
    const auto signature = parse_signature(std::string("k(") + type + " v)");
    UserArguments packed(signature);
    expect_error_with(kind, text, [&] { packed.add(value); });
  };
  refuse("int32", int64_t(1) << 31, ErrorKind::value,
         "k: v: 2147483648 is not in [-2147483648, 2147483647], the range of int32");
  refuse("int32", -(int64_t(1) << 31) - 1, ErrorKind::value, "the range of int32");
  refuse("uint8", 256, ErrorKind::value, "256 is not in [0, 255]");
  refuse("uint64", -1, ErrorKind::value, "-1 is not in [0, 18446744073709551615]");
  refuse("int64", std::numeric_limits<uint64_t>::max(), ErrorKind::value, "the range of int64");
  refuse("bool", 2, ErrorKind::value, "2 is not in [0, 1]");
  refuse("int", 2.0, ErrorKind::type, "the float 2 was given for int32; give a whole number");
  refuse("float", 1e39, ErrorKind::value, "1e+39 is beyond");
  refuse("half", -65536, ErrorKind::value, "the largest float16");
  refuse("e4m3", 449.0, ErrorKind::value, "the largest float8_e4m3fn");
  refuse("float*", 1, ErrorKind::type, "a number was given for an array of float32");
  refuse("float*", 1.0, ErrorKind::type, "a number was given for an array of float32");
  for (const char* type : {"float", "half", "bf16", "double"}) {
    const auto signature = parse_signature(std::string("k(") + type + " v)");
    UserArguments infinite(signature), nan(signature);
    infinite.add(std::numeric_limits<double>::infinity());
    nan.add(std::nan(""));
  }
}

TEST(UserArguments, RefuseArraysThatDoNotFit) {
  const auto signature = parse_signature("k(float* y, const float* x, int n)");
  float data[8] = {};
  const auto refuse = [&](const TensorView& y, const TensorView& x, ErrorKind kind,
                          const char* text) {
    UserArguments packed(signature);
    expect_error_with(kind, text, [&] {
      packed.add(y);
      packed.add(x);
    });
  };
  const TensorView good = on(Device::cuda(), data, 8);
  refuse(TensorView(data, DType::int32, {8}, Device::cuda()), good, ErrorKind::type,
         "k: y: expected an array of float32, got int32; convert it, or take int32_t* in the "
         "signature");
  refuse(good, on(Device::cuda(1), data, 8), ErrorKind::value,
         "k: x is on cuda:1, but y is on cuda:0");
  refuse(good, TensorView(data, DType::float32, {4}, {2}, Device::cuda()), ErrorKind::value,
         "is not contiguous");
  refuse(good.as_read_only(), good, ErrorKind::buffer, "write const in the signature");
  refuse(on(Device::cuda(), nullptr, 8), good, ErrorKind::value, "the array has no memory");
  UserArguments packed(signature);
  packed.add(on(Device::cuda(), nullptr, 0));
  packed.add(good.as_read_only());
  expect_error_with(ErrorKind::type, "takes 3 arguments, got 2; n is missing",
                    [&] { packed.check_complete(); });
  expect_error_with(ErrorKind::type, "an array was given for a number", [&] { packed.add(good); });
  packed.add(1);
  expect_error_with(ErrorKind::type, "takes 3 arguments, got more", [&] { packed.add(1); });
}

class UserKernelOnAGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
    clear_memory();
  }
  void TearDown() override { clear_memory(); }

  FakeDriver driver_{std::vector<FakeGpu>(2)};
  float y_[64] = {}, x_[64] = {};
  TensorView y() { return on(Device::cuda(), y_, 64); }
  TensorView x() { return on(Device::cuda(), x_, 64); }
};

TEST_F(UserKernelOnAGpu, LaunchesWithItsArgumentsAndCompilesOnce) {
  const UserKernel axpy(kAxpy, kSignature);
  AxpyArguments seen{};
  driver_.on_launch = [&](const test::FakeLaunch&, const void* params) {
    std::memcpy(&seen, params, sizeof(seen));
  };
  const Counters before = counters();
  for (int i = 0; i < 3; ++i)
    axpy({.grid = {4, 2}, .block = {16, 2}, .shared_bytes = 128}, y(), x(), 2.0, 64);
  EXPECT_LE(counters().compiles - before.compiles, 1);
  EXPECT_EQ(counters().memory_hits - before.memory_hits, 2);
  EXPECT_EQ(seen.y, y_);
  EXPECT_EQ(seen.x, x_);
  EXPECT_EQ(seen.a, 2.0f);
  EXPECT_EQ(seen.n, 64);
  ASSERT_EQ(driver_.launches.size(), 3u);
  const test::FakeLaunch& launch = driver_.launches.back();
  EXPECT_EQ(launch.grid, (Dim3{4, 2, 1}));
  EXPECT_EQ(launch.block, (Dim3{16, 2, 1}));
  EXPECT_EQ(launch.shared_bytes, 128u);
  EXPECT_TRUE(launch.programmatic_dependent_launch) << "its entry waits, as our own do";
  EXPECT_EQ(launch.stream, current_stream(0).handle());
}

TEST_F(UserKernelOnAGpu, AnotherObjectOfTheSameContentCompilesNothing) {
  UserKernel(kAxpy, kSignature)({.grid = {1}, .block = {64}}, y(), x(), 1, 64);
  const Counters before = counters();
  UserKernel(kAxpy, kSignature)({.grid = {1}, .block = {64}}, y(), x(), 1, 64);
  clear_memory();
  UserKernel(kAxpy, kSignature)({.grid = {1}, .block = {64}}, y(), x(), 1, 64);
  EXPECT_EQ(counters().compiles, before.compiles);
  EXPECT_EQ(counters().disk_hits, before.disk_hits + 1);
}

TEST_F(UserKernelOnAGpu, RefusesLaunchesThatCannotBe) {
  const UserKernel axpy(kAxpy, kSignature);
  const auto refuse = [&](const UserLaunch& how, ErrorKind kind, const char* text) {
    expect_error_with(kind, text, [&] { axpy(how, y(), x(), 1, 64); });
  };
  refuse({.grid = {0}, .block = {64}}, ErrorKind::value, "axpy: grid (0, 1, 1) is empty");
  refuse({.grid = {1, 65536}, .block = {64}}, ErrorKind::value, "is larger than");
  refuse({.grid = {1}, .block = {0}}, ErrorKind::value, "a block has 1 to 1024");
  refuse({.grid = {1}, .block = {1025}}, ErrorKind::value, "a block has 1 to 1024");
  refuse({.grid = {1}, .block = {1, 1, 65}}, ErrorKind::value, "at most (1024, 1024, 64)");
  refuse({.grid = {1}, .block = {1024}}, ErrorKind::value,
         "the kernel takes at most 512; give it __launch_bounds__(1024)");
  refuse({.grid = {1}, .block = {64}, .shared_bytes = 232448}, ErrorKind::value,
         "232448 bytes of dynamic and 1024 bytes of static shared memory are more than the 232448");
  refuse({.grid = {1}, .block = {64}, .stream = StreamRef::default_stream(1)}, ErrorKind::value,
         "the arrays are on cuda:0 and the stream belongs to cuda:1");
  EXPECT_TRUE(driver_.launches.empty());
  expect_error_with(ErrorKind::value, "its arrays are on cpu; move the arrays", [&] {
    axpy({.grid = {1}, .block = {64}}, on(Device::cpu(), y_, 64), on(Device::cpu(), x_, 64), 1, 64);
  });
}

TEST_F(UserKernelOnAGpu, TheErrorOfACompileHasTheUsersLine) {
  const UserKernel wrong("__global__ void k(float* y) {\n  y[0] = foo + 1;\n}\n", "k(float* y)", {},
                         "mine.cu");
  try {
    wrong({.grid = {1}, .block = {1}}, y());
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::compile);
    const std::string text = error.what();
    EXPECT_NE(text.find("mine.cu(2): error: identifier \"foo\" is undefined\n    y[0] = foo + 1;\n"
                        "           ^"),
              text.npos)
        << text;
  }
  EXPECT_NE(wrong.report(device_info(Device::cuda())).problem.find("mine.cu(2)"),
            std::string::npos);
  const UserKernel disagrees(kAxpy, "axpy(float* y, int64 n)");
  expect_error_with(
      ErrorKind::compile,
      "the text's function cannot be called by the signature axpy(float* y, int64_t n)",
      [&] { disagrees({.grid = {1}, .block = {1}}, y(), 64); });
}

TEST_F(UserKernelOnAGpu, MalformedTextsAreErrorsOfKindCompile) {
  std::mt19937 random(11);
  const std::string seed = kAxpy;
  for (int i = 0; i < 40; ++i) {
    std::string text = seed;
    for (int edits = 0; edits < 6; ++edits) {
      const size_t at = random() % text.size();
      if (random() % 2)
        text.erase(at, 1 + random() % 5);
      else
        text[at] = char(1 + random() % 255);
    }
    try {
      compile(UserKernel(text, kSignature).key(), "sm_90a", true);
    } catch (const Error& error) {
      EXPECT_TRUE(error.kind() == ErrorKind::compile) << error.what();
    }
  }
}

TEST_F(UserKernelOnAGpu, TemplatesAndConstantsReachTheText) {
  const std::vector<KernelConstant> constants = {
      {"T", DType::bfloat16}, {"kUnroll", int64_t(4)}, {"kEps", 1e-5}, {"kOn", true}};
  const UserKernel scale(R"(
template <class U, int unroll>
TC_DEVICE void scale(U* y, float a) {
  static_assert(kOn && unroll == 4 && sizeof(T) == 2);
  for (int i = 0; i < unroll; ++i) y[threadIdx.x * unroll + i] = U(a + kEps);
})",
                         "scale<T, kUnroll>(T* y, float a)", constants);
  const UserKernelReport report = scale.report(device_info(Device::cuda()), {128}, 4096);
  EXPECT_EQ(report.problem, "");
  EXPECT_GT(report.registers, 0);
  EXPECT_EQ(report.spill_bytes, 0u);
  EXPECT_EQ(report.shared_bytes, 4096u);
  EXPECT_GT(report.code_bytes, 0u);
  EXPECT_GT(report.occupancy.blocks_per_sm, 0);
  EXPECT_NE(to_string(report).find("registers"), std::string::npos);
}

TEST_F(UserKernelOnAGpu, AColdCompileCostsLittleMoreThanThatOfAnEmptyKernel) {
  const UserKernel empty("__global__ void empty() {}", "empty()"), axpy(kAxpy, kSignature);
  const auto milliseconds = [](const UserKernel& kernel) {
    return compile(kernel.key(), "sm_90a", true).milliseconds;
  };
  double best_empty = 1e9, best_axpy = 1e9;  // in turns, as what else the machine does changes
  for (int i = 0; i < 7; ++i) {
    best_empty = std::min(best_empty, milliseconds(empty));
    best_axpy = std::min(best_axpy, milliseconds(axpy));
  }
  EXPECT_LE(best_axpy, 1.5 * best_empty) << "1.3 on a quiet machine";
}

}  // namespace
}  // namespace tensorcraft::jit
