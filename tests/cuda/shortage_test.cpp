// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/shortage.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/launch.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

int asked = 0;
bool gives = true;

bool give(int device) noexcept {
  EXPECT_EQ(device, 0);
  ++asked;
  return gives;
}

class Shortage : public testing::Test {
 protected:
  Shortage() {
    asked = 0;
    gives = true;
    cuda::on_shortage(give);
  }
  ~Shortage() override { cuda::on_shortage(nullptr); }
  static std::shared_ptr<const LoadedKernel> load() {
    const std::byte image[4] = {};
    return LoadedKernel::load(image, "tc_entry", 0);
  }
  static void start(const LoadedKernel& kernel) {
    launch(kernel, {.grid = {1, 1, 1}, .block = {1, 1, 1}}, nullptr, {}, "softmax");
  }
  static constexpr int kNoRoom = cuda::kErrorOutOfMemory;
  test::FakeDriver fake_;
};

TEST_F(Shortage, ALaunchWithoutRoomIsMadeOnceMore) {
  const auto kernel = load();
  fake_.fail_at("cuLaunchKernelEx", 1, kNoRoom);
  start(*kernel);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(fake_.launches.size(), 1u);
}

TEST_F(Shortage, ASecondFailureIsReported) {
  const auto kernel = load();
  fake_.failing["cuLaunchKernelEx"] = kNoRoom;
  test::expect_error_with(ErrorKind::out_of_memory, "softmax: cuLaunchKernelEx with grid",
                          [&] { start(*kernel); });
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(fake_.calls["cuLaunchKernelEx"], 2);
}

TEST_F(Shortage, NothingIsTriedAgainIfNobodyGaveMemory) {
  const auto kernel = load();
  fake_.failing["cuLaunchKernelEx"] = kNoRoom;
  gives = false;
  EXPECT_THROW(start(*kernel), Error);
  cuda::on_shortage(nullptr);
  EXPECT_THROW(start(*kernel), Error);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(fake_.calls["cuLaunchKernelEx"], 2);
}

TEST_F(Shortage, OtherFailuresAskNobody) {
  const auto kernel = load();
  fake_.failing["cuLaunchKernelEx"] = 1;
  EXPECT_THROW(start(*kernel), Error);
  EXPECT_EQ(asked, 0);
}

TEST_F(Shortage, AKernelWithoutRoomIsLoadedOnceMore) {
  for (const char* const call : {"cuLibraryLoadData", "cuKernelGetFunction", "cuFuncLoad"}) {
    asked = 0;
    fake_.fail_at(call, fake_.calls[call] + 1, kNoRoom);
    EXPECT_NE(load(), nullptr);
    EXPECT_EQ(asked, 1) << call;
  }
  fake_.jit_log = "no room";
  fake_.failing["cuLibraryLoadData"] = kNoRoom;
  test::expect_error_with(ErrorKind::out_of_memory, "loading the kernel tc_entry", load);
  EXPECT_EQ(fake_.libraries, 0);
}

}  // namespace
}  // namespace tensorcraft
