// SPDX-License-Identifier: Apache-2.0
// Checks what the contract (transfer_contract_test.cpp) does not say of engines.
#include "tensorcraft/runtime/transfer/engine.hpp"

#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"
#include "tests/support/no_threads.hpp"
#include "tests/support/forked_child.hpp"
#include "tests/support/simulated_transfer.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace tensorcraft {
namespace {

using namespace std::chrono_literals;
using test::FakeDriver;
using test::ManualStager;
using test::SimulatedCopyDevice;
using test::SimulatedDevice;
using transfer::Direction;
using transfer::State;
using transfer::Time;

TEST(TransferEngine, OfADeviceThatTheLibraryUsesIsOne) {
  const FakeDriver driver({test::FakeGpu{}, test::FakeGpu{}});
  EXPECT_EQ(&TransferEngine::instance(), &TransferEngine::instance(Device::cuda(0)));
  EXPECT_NE(&TransferEngine::instance(), &TransferEngine::instance(Device::cuda(1)));
  test::expect_error(
      ErrorKind::value, [] { TransferEngine::instance(Device::cpu()); },
      "TransferEngine::instance: cpu has no engine of the library's; make one, or give a CUDA "
      "device");
}

TEST(TransferEngine, NeedsAThread) {
  const test::NoThreads none;
  test::expect_error_with(ErrorKind::out_of_memory,
                          "TransferEngine: the system starts no further thread",
                          [] { const TransferEngine refused(Device::cpu()); });
}

// The driver's thread is there, and none to fill slots, or none of the lane.
TEST(TransferEngine, ACopyThatNoThreadCanMakeFailsAndTheNextOneWorks) {
  constexpr size_t kBytes = 3 << 20;
  const std::vector<char> from(kBytes, 7);
  for (const Device device : {Device::cpu(), Device::cuda(0)}) {
    const FakeDriver driver;
    const Tensor to(DType::uint8, {int64_t(kBytes)}, device);
    TransferEngine engine(device);
    const transfer::Request request{.to = to.data(), .from = from.data(), .bytes = kBytes};
    {
      const test::NoThreads none;
      test::expect_error_with(ErrorKind::out_of_memory,
                              "TransferEngine: the system starts no further thread",
                              [&] { engine.submit(request).wait(); });
    }
    engine.submit(request).wait();
  }
}

TEST(TransferEngine, NeedsADeviceThatExists) {
  const FakeDriver driver;
  test::expect_error_with(ErrorKind::value, "cuda:3",
                          [] { const TransferEngine none(Device::cuda(3)); });
}

// One driver call fails, or each n-th, or all from one on: every transfer ends, with its bytes or
// with an error of that kind, and the next engine works.
TEST(TransferEngine, ADriverThatRefusesAnyCallIsAnErrorOrNoMatter) {
  constexpr size_t kBytes = (3 << 20) + 5;
  const std::vector<unsigned char> values(kBytes, 7);
  long failed = 0, right = 0;
  for (const int status : {test::kOutOfMemory, test::kUnknownError, test::kIllegalAddress})
    for (const test::Repeat repeat : {test::Repeat::once, test::Repeat::every, test::Repeat::from})
      for (long n = 1; n < 80; n += 3) {
        FakeDriver driver;
        driver.deferred = true;
        std::vector<unsigned char> back(kBytes);
        try {
          const Tensor there(DType::uint8, {int64_t(kBytes)}, Device::cuda(0));
          auto engine = std::make_unique<TransferEngine>(Device::cuda(0));
          driver.faults.plan(n, status, repeat);
          const Transfer up = engine->submit({.to = there.data(),
                                              .from = values.data(),
                                              .bytes = kBytes,
                                              .after = {there.stream()}});
          try {
            up.wait();
            const Transfer down = engine->submit({.to = back.data(),
                                                  .from = there.data(),
                                                  .bytes = kBytes,
                                                  .direction = Direction::d2h,
                                                  .after = {there.stream()}});
            down.wait();
            EXPECT_EQ(back, values) << n;
            ++right;
          } catch (...) {
            engine = nullptr;  // all has ended
            throw;
          }
        } catch (const Error& error) {
          ++failed;
          const ErrorKind kind = status == test::kOutOfMemory      ? ErrorKind::out_of_memory
                                 : status == test::kIllegalAddress ? ErrorKind::device_lost
                                                                   : ErrorKind::internal;
          EXPECT_EQ(error.kind(), kind) << n << ": " << error.what();
        }
        driver.faults.clear();
        EXPECT_EQ(driver.damage(), "") << n;
      }
  // Both happened; how often depends on how often the engine's thread asked.
  EXPECT_GT(failed, 0);
  EXPECT_GT(right, 0);
}

// With a clock of the test's and without a thread of its own.
class DrivenByCallers : public testing::Test {
 protected:
  std::unique_ptr<TransferEngine> make(const transfer::Options& options = {}) {
    auto stager = std::make_unique<ManualStager>();
    stager_ = stager.get();
    auto device = std::make_unique<SimulatedCopyDevice>(sim_);
    device->is_pinned = true;
    return std::make_unique<TransferEngine>(
        std::move(device), std::move(stager), options, [this] { return now_; },
        TransferEngine::Drive::callers);
  }
  Transfer submit(TransferEngine& engine, size_t bytes) {
    from_.resize(bytes, 3);
    to_.resize(bytes);
    return engine.submit({.to = to_.data(), .from = from_.data(), .bytes = bytes});
  }
  SimulatedDevice sim_;
  ManualStager* stager_ = nullptr;
  Time now_ = 1ms;
  std::vector<char> from_, to_;
};

TEST_F(DrivenByCallers, StatesTimesAndSpeedFollow) {
  const auto engine = make();
  const Transfer copy = submit(*engine, 1000);
  EXPECT_EQ(copy.state(), State::running);
  EXPECT_EQ(copy.gb_per_s(), 0);
  now_ += 500ns;
  EXPECT_FALSE(copy.done());
  sim_.run_all();
  engine->advance();
  EXPECT_EQ(copy.state(), State::completed);
  EXPECT_EQ(copy.gb_per_s(), 2);
  EXPECT_EQ(engine->statistics()[0].gb_per_s(), 2);
  EXPECT_EQ(to_, from_);
}

TEST_F(DrivenByCallers, AFailureIsThrownAsItWas) {
  const auto engine = make();
  sim_.fail_at(2);
  const Transfer copy = submit(*engine, 1000);
  EXPECT_EQ(copy.state(), State::failed);
  for (int i = 0; i < 2; ++i)
    test::expect_error(ErrorKind::internal, [&] { copy.wait(); }, "copy: failed on purpose");
  test::expect_error(
      ErrorKind::internal, [&] { copy.order_before(SimulatedDevice::stream(1)); },
      "copy: failed on purpose");
  EXPECT_FALSE(copy.cancel());
}

TEST(TransferEngine, IsSynchronizedWhenNothingRuns) {
  FakeDriver driver;
  driver.deferred = true;
  TransferEngine::synchronize(Device::cuda(0));  // there is none
  constexpr size_t kBytes = 4 << 20;
  const std::vector<char> from(kBytes, 1);
  const Tensor to(DType::uint8, {int64_t(kBytes)}, Device::cuda(0));
  TransferEngine& engine = TransferEngine::instance();
  std::vector<Transfer> all;
  for (int i = 0; i < 30; ++i)
    all.push_back(engine.submit({.to = to.data(), .from = from.data(), .bytes = kBytes}));
  TransferEngine::synchronize(Device::cuda(0));
  for (const Transfer& one : all) EXPECT_EQ(one.state(), State::completed);
}

TEST_F(DrivenByCallers, WhatIsToldMayUseTheEngine) {
  const auto engine = make();
  const Transfer copy = submit(*engine, 1000);
  Transfer next;
  bool told = false;
  copy.on_end([&] { next = submit(*engine, 1000); });
  copy.on_end([] { throw std::runtime_error("is logged"); });
  sim_.run_all();
  engine->advance();
  EXPECT_EQ(next.state(), State::running);
  copy.on_end([&] { told = true; });
  EXPECT_TRUE(told);
  sim_.run_all();
  engine->advance();
  EXPECT_TRUE(next.done());
}

TEST_F(DrivenByCallers, ARecordedStreamIsRefused) {
  const auto engine = make();
  const StreamRef stream = SimulatedDevice::stream(1);
  sim_.begin_recording(stream);
  from_.resize(10);
  to_.resize(10);
  test::expect_error(
      ErrorKind::value,
      [&] {
        engine->submit({.to = to_.data(), .from = from_.data(), .bytes = 10, .after = {stream}});
      },
      "the stream is recorded");
  sim_.end_recording(stream);
}

TEST(TransferEngine, AForkedChildCanDestroyItAndWaitsForNothingOfIt) {
  if (!kForksWork) GTEST_SKIP() << "ThreadSanitizer";
  const std::vector<char> from(size_t(1) << 20);
  std::vector<char> to(from.size());
  const transfer::Request request{.to = to.data(), .from = from.data(), .bytes = from.size()};
  transfer::Options options;
  options.limits(Direction::h2d).bytes_per_second = 1 << 20;
  auto engine = std::make_unique<TransferEngine>(Device::cpu(), options);
  engine->submit(request);
  const Transfer late = engine->submit(request);
  EXPECT_EQ(test::in_child([&] {
              bool right = !late.done();
              right &= test::is_unsupported([&] { late.wait(); });
              right &= test::is_unsupported([&] { late.cancel(); });
              right &= test::is_unsupported([&] { late.on_end([] {}); });
              right &= test::is_unsupported([&] { engine->submit(request); });
              engine.reset();
              return right ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace tensorcraft
