// SPDX-License-Identifier: Apache-2.0
// The contract of transfers on every device that a machine without a GPU has. tests/gpu has the
// rest.
#include "tests/support/transfer_contract.hpp"

#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tests/support/fake_driver.hpp"
#include "tests/support/simulated_transfer.hpp"

#include <optional>
#include <stop_token>

namespace tensorcraft::test {
namespace {

transfer::Time now() { return std::chrono::steady_clock::now().time_since_epoch(); }

// Host memory that plays a device; the caller's work is done when a call returns.
class HostSource final : public TransferSource {
 public:
  explicit HostSource(const transfer::Options& options) : engine_(Device::cpu(), options) {}
  TransferEngine& engine() override { return engine_; }
  StreamRef stream() override { return {}; }
  void* on_device(size_t bytes) override { return blocks_.emplace_back(bytes).data(); }
  void* pinned(size_t bytes) override { return on_device(bytes); }
  void fill(void* device, unsigned char value, size_t bytes) override {
    std::memset(device, value, bytes);
  }
  void copy(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void slow_down() override {}
  void synchronize() override {}

 private:
  std::deque<Bytes> blocks_;
  TransferEngine engine_;  // last: it goes first
};

// A device that a thread of its own drives, some stream one step at a time.
class SimulatedSource final : public TransferSource {
 public:
  explicit SimulatedSource(const transfer::Options& options)
      : steps_([this](const std::stop_token& stop) {
          std::mt19937 random(7);
          while (!stop.stop_requested())
            if (!device_.step(random)) std::this_thread::yield();
        }),
        engine_(std::make_unique<SimulatedCopyDevice>(device_),
                std::make_unique<transfer::ThreadStager>(2), options, now) {}
  ~SimulatedSource() override { EXPECT_EQ(device_.damage, ""); }
  TransferEngine& engine() override { return engine_; }
  StreamRef stream() override { return SimulatedDevice::stream(1); }
  void* on_device(size_t bytes) override { return blocks_.emplace_back(bytes).data(); }
  void* pinned(size_t bytes) override { return on_device(bytes); }
  void fill(void* device, unsigned char value, size_t bytes) override {
    device_.enqueue(stream(), [=] { std::memset(device, value, bytes); });
  }
  void copy(void* to, const void* from, size_t bytes) override {
    device_.enqueue(stream(), [=] { std::memcpy(to, from, bytes); });
  }
  void slow_down() override {
    for (int i = 0; i < 100; ++i) device_.enqueue(stream(), [] {});
  }
  void synchronize() override { device_.run(stream()); }

 private:
  std::deque<Bytes> blocks_;
  SimulatedDevice device_;
  std::jthread steps_;
  TransferEngine engine_;  // last: its end needs the steps
};

// The CUDA device over a driver in host memory, whose work waits until it is asked about.
class FakeSource final : public TransferSource {
 public:
  explicit FakeSource(const transfer::Options& options) {
    driver_.deferred = true;
    stream_.emplace();
    engine_.emplace(Device::cuda(0), options);
  }
  ~FakeSource() override {
    engine_.reset();
    pinned_.clear();
    blocks_.clear();
    EXPECT_EQ(driver_.damage(), "");
  }
  TransferEngine& engine() override { return *engine_; }
  StreamRef stream() override { return *stream_; }
  void* on_device(size_t bytes) override {
    return blocks_.emplace_back(DType::uint8, Dims{int64_t(bytes)}, Device::cuda(0), *stream_)
        .data();
  }
  void* pinned(size_t bytes) override { return pinned_.emplace_back(bytes, *stream_).data(); }
  void fill(void* device, unsigned char value, size_t bytes) override {
    cuda::fill_async(device, value, bytes, *stream_);
  }
  void copy(void* to, const void* from, size_t bytes) override {
    cuda::copy_async(to, from, bytes, *stream_);
  }
  void slow_down() override {}  // it is as slow as can be
  void synchronize() override { stream_->ref().synchronize(); }

 private:
  FakeDriver driver_;
  std::optional<Stream> stream_;
  std::deque<Tensor> blocks_;
  std::deque<PinnedBuffer> pinned_;
  std::optional<TransferEngine> engine_;
};

template <class Source>
NamedTransferSource named(const char* name) {
  return {name, [](const transfer::Options& o) { return std::make_unique<Source>(o); }};
}
INSTANTIATE_TEST_SUITE_P(Transfer, TransferContract,
                         testing::Values(named<HostSource>("Host"),
                                         named<SimulatedSource>("Simulated"),
                                         named<FakeSource>("Fake")),
                         name_of_transfer_source);

}  // namespace
}  // namespace tensorcraft::test
