// SPDX-License-Identifier: Apache-2.0
// The pool on a real device: the contract that tests/runtime/memory holds every source to, and what
// only a device can show: streams that really stall, copies that really overlap.
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/graph.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/runtime/memory/cuda_memory_device.hpp"
#include "tensorcraft/runtime/memory/driver_allocator.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"
#include "tensorcraft/runtime/memory/pool.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tests/support/allocator_contract.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace tensorcraft::test {
namespace {

constexpr size_t kMiB = size_t(1) << 20;

class GpuSource final : public MemorySource {
 public:
  explicit GpuSource(const std::string& kind) : kind_(kind) {}

 private:
  Allocator& allocator() override {
    if (kind_ == "Pinned") return pinned_pool();
    if (kind_ == "Driver") return of_driver_;
    return MemoryPool::instance();
  }
  StreamRef stream(int index) override { return index == 0 ? StreamRef() : other_.ref(); }
  const std::string kind_;
  memory::DriverAllocator of_driver_;
  Stream other_;
};

std::vector<NamedSource> sources() {
  std::vector<NamedSource> all;
  for (const std::string kind : {"Pool", "Pinned", "Driver"})
    all.push_back({kind, [kind]() -> std::unique_ptr<MemorySource> {
                     if (cuda_device_count() == 0) return nullptr;
                     return std::make_unique<GpuSource>(kind);
                   }});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Gpu, AllocatorContract, testing::ValuesIn(sources()), name_of_source);

class GpuPool : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "there is no GPU";
  }
};

unsigned char byte_of(const void* data, size_t at, StreamRef stream) {
  unsigned char value = 0;
  cuda::copy_async(&value, static_cast<const unsigned char*>(data) + at, 1, stream);
  stream.synchronize();
  return value;
}

// One stream fills a large block many times; another gets the memory and fills it once. Without the
// wait the first would still write.
TEST_F(GpuPool, AStreamThatIsBusyIsWaitedFor) {
  constexpr size_t kBytes = 64 * kMiB;
  const Stream busy, next;
  MemoryPool pool(memory::cuda_memory_device(0), {.quota = kBytes});
  for (int round = 0; round < 200; ++round) {
    const Block first = pool.allocate(kBytes, busy);
    for (int i = 0; i < 20; ++i) cuda::fill_async(first.data, 1, kBytes, busy);
    pool.free(first.data, busy);
    const Block second = pool.allocate(kBytes, next);
    ASSERT_EQ(second.data, first.data);
    cuda::fill_async(second.data, 2, kBytes, next);
    busy.ref().synchronize();
    next.ref().synchronize();
    for (const size_t at : {size_t(0), kBytes / 2, kBytes - 1})
      ASSERT_EQ(byte_of(second.data, at, next), 2) << round;
    pool.free(second.data, next);
  }
}

// More blocks than fit, each with its own bytes.
TEST_F(GpuPool, EvictedBlocksKeepTheirBytes) {
  constexpr size_t kBytes = 8 * kMiB;
  const Stream streams[3];
  MemoryPool pool(memory::cuda_memory_device(0), {.quota = 8 * kBytes, .host = &pinned_pool()});
  std::mt19937 random(1);
  std::map<BlockId, unsigned char> values;
  const auto fill = [&](BlockId id, StreamRef stream) {
    values[id] = (unsigned char)(random() % 251);
    cuda::fill_async(pool.pin(id, stream), values[id], kBytes, stream);
    pool.unpin(id, stream);
  };
  for (int i = 0; i < 24; ++i) fill(pool.create(kBytes, streams[0]), streams[0]);
  for (int step = 0; step < 3000; ++step) {
    const BlockId id = std::next(values.begin(), long(random() % values.size()))->first;
    const StreamRef stream = streams[random() % 3];
    if (random() % 4 == 0) {
      fill(id, stream);
      continue;
    }
    const void* const data = pool.pin(id, stream);
    ASSERT_EQ(byte_of(data, random() % kBytes, stream), values[id]) << step;
    pool.unpin(id, stream);
  }
  EXPECT_GT(pool.statistics().evictions, 500);
  for (const auto& [id, value] : values) pool.release(id, streams[0]);
}

TEST_F(GpuPool, AGraphOwnsWhatItWasRecordedWith) {
  MemoryPool& pool = MemoryPool::instance();
  const Stream stream, other;
  const int64_t size = int64_t(4) << 20;
  Tensor result(DType::uint8, {size}, Device::cuda(0), stream);
  {
    const Graph graph(stream, [&] {
      const Tensor part(DType::uint8, {size}, Device::cuda(0), stream);
      cuda::fill_async(part.data(), 5, size_t(size), stream);
      cuda::copy_async(result.data(), part.data(), size_t(size), stream);
    });
    EXPECT_GE(pool.statistics().captured, size);
    for (int round = 0; round < 100; ++round) {
      graph.launch(stream);
      const Tensor foreign(DType::uint8, {size}, Device::cuda(0), other);
      cuda::fill_async(foreign.data(), 9, size_t(size), other);
      stream.ref().synchronize();
      ASSERT_EQ(byte_of(result.data(), size_t(size) - 1, stream), 5) << round;
      cuda::fill_async(result.data(), 0, size_t(size), stream);
    }
    other.ref().synchronize();
  }
  // The driver tells of the end of a graph from a thread of its own.
  for (int i = 0; i < 100 && (pool.trim(), pool.statistics().captured > 0); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(pool.statistics().captured, 0);
}

TEST_F(GpuPool, ManyGraphsTakeTheMemoryOfTheFirst) {
  MemoryPool& pool = MemoryPool::instance();
  const Stream stream;
  constexpr int64_t kBytes = int64_t(4) << 20;
  int64_t reserved = 0;
  for (int round = 0; round < 200; ++round) {
    std::optional<Tensor> result;
    const Graph graph(stream, [&] {
      result.emplace(DType::uint8, Dims{kBytes}, Device::cuda(0), stream);
      cuda::fill_async(result->data(), 5, size_t(kBytes), stream);
    });
    graph.launch(stream);
    stream.ref().synchronize();
    if (round == 99) reserved = pool.statistics().reserved;
  }
  EXPECT_LE(pool.statistics().reserved, reserved + 64 * int64_t(kMiB));
}

// Prints what a pair of calls costs beside the driver's stream-ordered allocator; the pool wins.
using GpuPoolTiming = GpuPool;
TEST_F(GpuPoolTiming, APairOfCallsCostsLessThanTheDrivers) {
  memory::DriverAllocator of_driver;
  const Stream own;
  for (const StreamRef stream : {StreamRef(), own.ref()}) {
    const auto cost = [&](Allocator& source) {
      double best = 1e9;
      for (int round = 0; round < 10; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < 2000; ++i) source.deallocate(source.allocate(kMiB, stream), stream);
        const std::chrono::duration<double, std::nano> time =
            std::chrono::steady_clock::now() - begin;
        best = std::min(best, time.count() / 2000);
        stream.synchronize();
      }
      return best;
    };
    const double driver = cost(of_driver), pool = cost(MemoryPool::instance());
    std::printf("%s stream: pool %.0f ns, driver %.0f ns\n", stream.handle() ? "own" : "default",
                pool, driver);
    EXPECT_LE(pool, driver);
  }
}

}  // namespace
}  // namespace tensorcraft::test
