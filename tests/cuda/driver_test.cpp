// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/driver.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/launch_kernel.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

namespace tensorcraft {
namespace {

using test::FakeDriver;
using test::FakeGpu;

// Runs `action` and gives the kind and text it failed with.
template <class F>
std::pair<ErrorKind, std::string> error_of(F action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorKind::internal, ""};
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

TEST(Driver, AnErrorNamesTheCallTheTextAndTheStatus) {
  FakeDriver fake;
  fake.failing["cuStreamCreate"] = 801;
  const auto [kind, text] = error_of([] { Stream stream(0); });
  EXPECT_EQ(kind, ErrorKind::unsupported);
  EXPECT_EQ(text, "cuStreamCreate: fake error (801)");
}

TEST(Driver, MapsStatusToKind) {
  FakeDriver fake;
  const std::pair<int, ErrorKind> cases[] = {
      {1, ErrorKind::value},     {2, ErrorKind::out_of_memory}, {101, ErrorKind::value},
      {200, ErrorKind::compile}, {222, ErrorKind::compile},     {801, ErrorKind::unsupported},
      {400, ErrorKind::internal}};
  for (const auto& [status, kind] : cases)
    EXPECT_EQ(error_of([s = status] { cuda::check(s, "cuCall"); }).first, kind) << status;
}

TEST(Driver, EveryStickyErrorLosesTheDevice) {
  for (const int status : {214, 700, 702, 710, 714, 715, 716, 717, 718, 719}) {
    FakeDriver fake;
    EXPECT_TRUE(cuda::driver());
    EXPECT_EQ(error_of([&] { cuda::check(status, "cuCall"); }).first, ErrorKind::device_lost);
    EXPECT_FALSE(cuda::usable()) << status;
  }
}

TEST(Driver, ALostDeviceKeepsTheFirstCauseAndIsNotAskedAgain) {
  FakeDriver fake;
  const StreamRef stream;
  stream.synchronize();
  fake.failing["cuStreamSynchronize"] = 700;
  const auto [kind, text] = error_of([&] { stream.synchronize(); });
  EXPECT_EQ(kind, ErrorKind::device_lost);
  EXPECT_EQ(text,
            "cuStreamSynchronize: an illegal memory access was encountered (700); the process "
            "cannot use CUDA any more, restart it");
  fake.failing["cuMemAllocAsync"] = 719;
  const auto calls = fake.calls;
  const auto later = error_of([&] { cuda::allocate(16, stream); });
  EXPECT_EQ(later.first, ErrorKind::device_lost);
  EXPECT_EQ(later.second,
            "CUDA is unusable since an earlier error: cuStreamSynchronize: an illegal memory "
            "access was encountered (700); restart the process");
  EXPECT_EQ(fake.calls, calls);
}

TEST(Driver, DestructorsDoNotThrowOnALostDevice) {
  FakeDriver fake;
  {
    Stream stream;
    Event event;
    EXPECT_THROW(cuda::check(700, "cuCall"), Error);
  }
  EXPECT_EQ(fake.calls["cuStreamDestroy"], 0);
}

TEST(Driver, ADestructorsErrorIsSwallowedAndAStickyOneRemembered) {
  FakeDriver fake;
  fake.failing["cuStreamDestroy"] = 719;
  {
    Stream stream;
  }
  EXPECT_FALSE(cuda::usable());
}

TEST(Driver, MissingDriverHasItsExactMessage) {
  FakeDriver fake({}, 13000, {{"cuInit", 999}});
  EXPECT_EQ(cuda::driver(), nullptr);
  EXPECT_EQ(first_line(cuda::driver_problem()), "CUDA driver not detected");
  const auto [kind, text] = error_of([] { cuda::require_driver(); });
  EXPECT_EQ(kind, ErrorKind::unsupported);
  EXPECT_EQ(first_line(text), "CUDA driver not detected");
}

TEST(Driver, NoGpuHasItsExactMessage) {
  for (const std::map<std::string, int>& failing :
       {std::map<std::string, int>{}, {{"cuInit", 100}}, {{"cuDeviceGetCount", 100}}}) {
    FakeDriver fake({}, 13000, failing);
    EXPECT_EQ(cuda_device_count(), 0);
    const auto [kind, text] = error_of([] { device_info(Device::cuda(0)); });
    EXPECT_EQ(kind, ErrorKind::unsupported);
    EXPECT_EQ(first_line(text), "No GPU devices found (cudaGetDeviceCount == 0)");
  }
}

TEST(Driver, RefusesWorkInAForkedChild) {
  FakeDriver fake;
  StreamRef().synchronize();
  const pid_t child = fork();
  if (child == 0) {
    bool refused = false;
    try {
      StreamRef().synchronize();
    } catch (const Error& error) {
      refused = error.kind() == ErrorKind::device_lost &&
                std::string_view(error.what()).find("forked") != std::string_view::npos;
    }
    const bool cpu = default_device() == Device::cpu();
    _exit(refused && cpu ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_NO_THROW(StreamRef().synchronize());
}

TEST(Driver, RuntimeDeviceCheckNamesTheErrorAndTheCallersLine) {
  FakeDriver fake;
  EXPECT_NO_THROW(RuntimeDeviceCheck(0));
  EXPECT_NO_THROW(RuntimeDeviceCheck());
  const int line = __LINE__ + 2;
  try {
    RuntimeDeviceCheck(2);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "CUDA error: out of memory (2)");
    EXPECT_EQ(int(error.where().line()), line);
    EXPECT_NE(std::string(error.where().file_name()).find("driver_test.cpp"), std::string::npos);
  }
  EXPECT_THROW(cuda::check(700, "cuCall"), Error);
  EXPECT_EQ(error_of([] { RuntimeDeviceCheck(); }).second,
            "CUDA error: cuCall: an illegal memory access was encountered (700)");
}

}  // namespace
}  // namespace tensorcraft
