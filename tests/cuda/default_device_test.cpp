// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/device.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tensorcraft {
namespace {

using test::FakeDriver;
using test::FakeGpu;

// Returns what is printed if default_device() is asked twice, and then an operator runs on the CPU
// twice.
std::string warnings_of_two_calls(Device expected) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(default_device(), expected);
  EXPECT_EQ(default_device(), expected);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "nothing was computed";
  testing::internal::CaptureStderr();
  cuda::warn_of_fallback();
  cuda::warn_of_fallback();
  return testing::internal::GetCapturedStderr();
}

int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

// simt ends the list if the build has it.
std::vector<Device> real_devices() {
  std::vector<Device> all = devices();
  if (all.back() == Device::simt()) all.pop_back();
  return all;
}

TEST(DefaultDevice, IsTheFirstUsableGpuWithoutAWarning) {
  FakeDriver fake({FakeGpu{.compute_capability = 75}, {.compute_capability = 90}});
  EXPECT_EQ(warnings_of_two_calls(Device::cuda(1)), "");
  EXPECT_EQ(real_devices(), (std::vector<Device>{Device::cpu(), Device::cuda(1)}));
}

TEST(DefaultDevice, FallsBackToTheCpuWithTheReasonOnce) {
  struct Case {
    std::vector<FakeGpu> gpus;
    std::map<std::string, int> failing;
    const char* reason;
  };
  const Case cases[] = {
      {{FakeGpu{}}, {{"cuInit", 999}}, "CUDA driver not detected"},
      {{FakeGpu{}}, {{"cuDeviceGetCount", 3}}, "CUDA driver not detected"},
      {{}, {}, "No GPU devices found (cudaGetDeviceCount == 0)"},
      {{{.compute_capability = 75}}, {}, "TensorCraft requires SM >= 80 (Ampere)"},
  };
  for (const Case& c : cases) {
    FakeDriver fake(c.gpus, 13000, c.failing);
    const std::string text = warnings_of_two_calls(Device::cpu());
    EXPECT_EQ(count(text, c.reason), 1) << text;
    EXPECT_EQ(count(text,
                    "Falling back to CPU simulation backend: operators run on the CPU as native "
                    "code, and no GPU is simulated; TENSORCRAFT_DEVICE=cpu says that this is "
                    "meant"),
              1)
        << text;
    EXPECT_EQ(real_devices(), std::vector<Device>{Device::cpu()});
  }
}

TEST(DefaultDevice, DoesNotWarnOfACpuThatIsAskedFor) {
  FakeDriver fake(std::vector<FakeGpu>{});
  testing::internal::CaptureStderr();
  cuda::warn_of_fallback();  // the call names its device
  EXPECT_EQ(default_device(), Device::cpu());
  set_default_device(Device::cpu());
  cuda::warn_of_fallback();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(DefaultDevice, TakesWhatTheProgramSets) {
  FakeDriver fake({FakeGpu{}, FakeGpu{}});
  set_default_device(Device::cuda(1));
  EXPECT_EQ(default_device(), Device::cuda(1));
  EXPECT_THROW(set_default_device(Device::cuda(2)), Error);
  EXPECT_EQ(default_device(), Device::cuda(1));
  set_default_device(Device::cpu());
  EXPECT_EQ(default_device(), Device::cpu());
}

TEST(DefaultDevice, NamesNoVersionAndNoPythonBinding) {
  FakeDriver fake({}, 13000);
  try {
    device_info(Device::cuda(0));
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find("13"), std::string::npos);
    EXPECT_EQ(text.find("cuda-python"), std::string::npos);
    EXPECT_EQ(text.find("Python bindings"), std::string::npos);
  }
}

// In processes of their own, since the environment is read once.
TEST(DefaultDeviceDeathTest, TakesWhatTheEnvironmentNames) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto body = [](const char* name, Device expected) {
    setenv("TENSORCRAFT_DEVICE", name, 1);
    FakeDriver fake({FakeGpu{}, FakeGpu{}});
    std::_Exit(default_device() == expected ? 0 : 1);
  };
  EXPECT_EXIT(body("cuda:1", Device::cuda(1)), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(body("cpu", Device::cpu()), testing::ExitedWithCode(0), "");
}

TEST(DefaultDeviceDeathTest, StaysTheGpuWhenOnlyNvrtcIsMissing) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto body = [] {
    setenv("TENSORCRAFT_NVRTC", "/nonexistent", 1);
    FakeDriver fake;
    std::_Exit(!cuda::nvrtc_available() && default_device() == Device::cuda(0) ? 0 : 1);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tensorcraft
