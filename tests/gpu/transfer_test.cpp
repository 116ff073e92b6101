// SPDX-License-Identifier: Apache-2.0
// Transfers on a real GPU: the contract, and what the engine's copies cost beside the driver's.
#include "tests/support/transfer_contract.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tests/support/figures.hpp"

#include <cstdio>
#include <optional>

namespace tensorcraft::test {
namespace {

class GpuTransferSource final : public TransferSource {
 public:
  explicit GpuTransferSource(const transfer::Options& options) {
    engine_.emplace(Device::cuda(0), options);
  }
  TransferEngine& engine() override { return *engine_; }
  StreamRef stream() override { return stream_; }
  void* on_device(size_t bytes) override {
    return blocks_.emplace_back(DType::uint8, Dims{int64_t(bytes)}, Device::cuda(0), stream_)
        .data();
  }
  void* pinned(size_t bytes) override { return pinned_.emplace_back(bytes, stream_).data(); }
  void fill(void* device, unsigned char value, size_t bytes) override {
    cuda::fill_async(device, value, bytes, stream_);
  }
  void copy(void* to, const void* from, size_t bytes) override {
    cuda::copy_async(to, from, bytes, stream_);
  }
  void slow_down() override {
    for (int i = 0; i < 50; ++i) cuda::fill_async(busy_.data(), 1, busy_.nbytes(), stream_);
  }
  void synchronize() override { stream_.ref().synchronize(); }

 private:
  Stream stream_;
  Tensor busy_{DType::uint8, {int64_t(64) << 20}, Device::cuda(0), stream_};
  std::deque<Tensor> blocks_;
  std::deque<PinnedBuffer> pinned_;
  std::optional<TransferEngine> engine_;
};

INSTANTIATE_TEST_SUITE_P(
    GpuTransfer, TransferContract,
    testing::Values(NamedTransferSource{
        "Gpu",
        [](const transfer::Options& options) -> std::unique_ptr<TransferSource> {
          if (cuda_device_count() == 0) return nullptr;
          return std::make_unique<GpuTransferSource>(options);
        }}),
    name_of_transfer_source);

// Copies of a GiB, by the driver and by the engine in turns; the best of each counts.
class GpuTransferTiming : public testing::Test {
 protected:
  static constexpr size_t kBytes = size_t(1) << 30;
  static constexpr int kRounds = 7;

  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "there is no GPU";
    own_.emplace();
    stream_ = *own_;
    there_ = Tensor(DType::uint8, {int64_t(kBytes)}, Device::cuda(0), stream_);
    cuda::fill_async(there_.data(), 1, kBytes, stream_);
    stream_.synchronize();
  }

  template <class Copy>
  static double gb_per_s(Copy&& copy) {
    const auto begin = std::chrono::steady_clock::now();
    copy();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    return double(kBytes) / time.count() / 1e9;
  }
  // The engine's best over the driver's best.
  double ratio(const char* what, Direction direction, void* host) {
    void* const to = direction == Direction::h2d ? there_.data() : host;
    const void* const from = direction == Direction::h2d ? host : there_.data();
    TransferEngine engine(Device::cuda(0));
    double ours = 0, drivers = 0;
    for (int round = 0; round < kRounds; ++round) {
      drivers = std::max(drivers, gb_per_s([&] {
                           cuda::copy_async(to, from, kBytes, stream_);
                           stream_.synchronize();
                         }));
      ours = std::max(ours, gb_per_s([&] {
                        engine
                            .submit({.to = to,
                                     .from = from,
                                     .bytes = kBytes,
                                     .direction = direction,
                                     .after = {stream_}})
                            .wait();
                      }));
    }
    report_figures(
        join(what, " memory, ", to_string(direction)),
        {{"engine GB/s", ours}, {"driver GB/s", drivers}, {"of driver", ours / drivers}});
    return ours / drivers;
  }

  std::optional<Stream> own_;
  StreamRef stream_;
  Tensor there_;
};

TEST_F(GpuTransferTiming, PinnedMemoryAsTheDriver) {
  const PinnedBuffer host(kBytes, stream_);
  std::memset(host.data(), 1, kBytes);
  EXPECT_GE(ratio("pinned", Direction::h2d, host.data()), 0.97);
  EXPECT_GE(ratio("pinned", Direction::d2h, host.data()), 0.97);
}

TEST_F(GpuTransferTiming, PageableMemoryFasterThanTheDriver) {
  std::vector<unsigned char> host(kBytes, 1);
  EXPECT_GE(ratio("pageable", Direction::h2d, host.data()), 1.5);
  EXPECT_GE(ratio("pageable", Direction::d2h, host.data()), 1.5);
}

// Both directions at once, each on its lane: together more than one of them alone.
TEST_F(GpuTransferTiming, DirectionsOverlap) {
  const PinnedBuffer up(kBytes, stream_), down(kBytes, stream_);
  std::memset(up.data(), 1, kBytes);
  const Tensor also(DType::uint8, {int64_t(kBytes)}, Device::cuda(0), stream_);
  TransferEngine engine(Device::cuda(0));
  double alone = 0, both = 0;
  const auto start = [&](Direction direction) {
    const bool is_up = direction == Direction::h2d;
    return engine.submit({.to = is_up ? there_.data() : down.data(),
                          .from = is_up ? up.data() : also.data(),
                          .bytes = kBytes,
                          .direction = direction,
                          .after = {stream_}});
  };
  for (int round = 0; round < kRounds; ++round) {
    alone = std::max(alone, gb_per_s([&] { start(Direction::h2d).wait(); }));
    both = std::max(both, 2 * gb_per_s([&] {
                            const Transfer one = start(Direction::h2d), two = start(Direction::d2h);
                            one.wait();
                            two.wait();
                          }));
  }
  report_figures("two directions", {{"one GB/s", alone}, {"both GB/s", both}});
  EXPECT_GE(both, 1.3 * alone);
}

// A submission of what is pinned comes back at once, and so does an order behind it.
TEST_F(GpuTransferTiming, ASubmissionDoesNotWait) {
  const PinnedBuffer host(kBytes, stream_);
  TransferEngine engine(Device::cuda(0));
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    const Transfer copy = engine.submit({.to = there_.data(),
                                         .from = host.data(),
                                         .bytes = kBytes,
                                         .after = {stream_},
                                         .ahead = true});
    copy.order_before(stream_);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    EXPECT_FALSE(copy.done());
    copy.wait();
    best = std::min(best, time.count());
  }
  report_figures("submission of page-locked memory and an order behind it", {{"us", best}});
  EXPECT_LT(best, 1000);
}

}  // namespace
}  // namespace tensorcraft::test
