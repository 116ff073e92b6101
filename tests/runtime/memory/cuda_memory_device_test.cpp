// SPDX-License-Identifier: Apache-2.0
// A pool over the driver's calls, which are those of a driver in host memory.
#include "tensorcraft/runtime/memory/cuda_memory_device.hpp"

#include "tensorcraft/cuda/graph.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"
#include "tests/support/simulated_memory.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

namespace tensorcraft {
namespace {

using test::FakeDriver;
using test::FakeGpu;

TEST(CudaPool, IsWhatTensorsUse) {
  FakeDriver driver;
  MemoryPool& pool = MemoryPool::instance();
  EXPECT_EQ(&allocator(Device::cuda()), &pool);
  {
    const Tensor tensor(DType::float32, {100}, Device::cuda(0));
    EXPECT_EQ(pool.statistics().live_bytes, 400);
  }
  const Tensor again(DType::float32, {100}, Device::cuda(0));
  EXPECT_EQ(driver.calls["cuMemAlloc"], 1);
  EXPECT_EQ(driver.calls["cuMemAllocAsync"], 0);
  EXPECT_EQ(pool.statistics().quota, int64_t(FakeGpu{}.memory_bytes));
  test::expect_error(
      ErrorKind::value, [] { MemoryPool::instance(Device::cpu()); },
      "MemoryPool::instance: cpu has no pool; give a CUDA device");
}

TEST(CudaPool, IsMadeOnceHoweverManyThreadsAskFirst) {
  const FakeDriver driver;
  std::vector<MemoryPool*> seen(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < seen.size(); ++i)
    threads.emplace_back([&, i] { seen[i] = &MemoryPool::instance(); });
  for (std::thread& thread : threads) thread.join();
  for (MemoryPool* const pool : seen) EXPECT_EQ(pool, seen[0]);
}

TEST(CudaPool, OutlivesTheDriver) {
  std::optional<Tensor> tensor;
  {
    const FakeDriver driver;
    tensor.emplace(DType::float32, Dims{100}, Device::cuda(0));
  }
  tensor.reset();  // the memory went with the driver
  const FakeDriver next;
  EXPECT_EQ(MemoryPool::instance().statistics().live_blocks, 0);
}

TEST(CudaPool, RefusesAStreamOfAnotherDevice) {
  const FakeDriver driver({FakeGpu{}, FakeGpu{}});
  test::expect_error(
      ErrorKind::value,
      [] { MemoryPool::instance(Device::cuda(1)).allocate(1, StreamRef::default_stream(0)); },
      "memory of cuda:1 was asked for on a stream of cuda:0; use a stream of the memory's device");
}

// The second stream has the handle of the first, and must wait for its work all the same.
TEST(CudaPool, AStreamThatEndsIsWaitedForByTheNext) {
  FakeDriver driver({FakeGpu{.memory_bytes = 4096}});
  driver.deferred = true;
  MemoryPool& pool = MemoryPool::instance();
  const Stream next;
  void* first = nullptr;
  {
    const Stream ends;
    const Block block = pool.allocate(4096, ends);
    first = block.data;
    cuda::fill_async(first, 1, 4096, ends);
    pool.free(first, ends);
  }
  EXPECT_EQ(pool.allocate(4096, next).data, first);
  EXPECT_EQ(driver.calls["cuStreamWaitEvent"], 1);
  cuda::fill_async(first, 2, 4096, next);
  next.ref().synchronize();
  EXPECT_EQ(*static_cast<unsigned char*>(first), 2);
  EXPECT_EQ(driver.damage(), "");
}

TEST(CudaPool, ABlockOfAGraphIsItsOwn) {
  FakeDriver driver;
  MemoryPool& pool = MemoryPool::instance();
  const Stream stream;
  const void* address = nullptr;
  {
    const Graph graph(stream, [&] {
      const Tensor recorded(DType::float32, {100}, Device::cuda(0), stream);
      address = recorded.data();
    });
    for (int i = 0; i < 4; ++i)
      EXPECT_NE(Tensor(DType::float32, {100}, Device::cuda(0), stream).data(), address);
    EXPECT_EQ(driver.calls["cuMemAllocAsync"] + driver.calls["cuMemFreeAsync"], 0);
    EXPECT_EQ(pool.statistics().captured, 512);
  }
  pool.trim();
  EXPECT_EQ(pool.statistics().used, 0);
  EXPECT_EQ(pool.statistics().reserved, 0);
}

TEST(CudaPool, EvictsToPageLockedMemoryAndBack) {
  FakeDriver driver({FakeGpu{.memory_bytes = 4096}});
  MemoryPool& pool = MemoryPool::instance();
  const Stream stream;
  const BlockId first = pool.create(4096, stream), second = pool.create(4096, stream);
  EXPECT_TRUE(pool.block(first).on_host());
  EXPECT_EQ(driver.pinned, 1);
  cuda::fill_async(pool.pin(first, stream), 7, 4096, stream);
  pool.unpin(first, stream);
  pool.pin(second, stream);
  pool.unpin(second, stream);
  const auto* const bytes = static_cast<unsigned char*>(pool.pin(first, stream));
  EXPECT_EQ(bytes[4095], 7);
  pool.unpin(first, stream);
  EXPECT_EQ(pool.statistics().evictions, 4);
  pool.release(first, stream);
  pool.release(second, stream);
  EXPECT_EQ(driver.damage(), "");
}

// Each call of the driver fails once: a typed error or memory, and what is left is given back.
TEST(CudaPool, ADriverThatRefusesAnyCallLeavesNothingBehind) {
  for (int k = 1; k <= 120; ++k) {
    FakeDriver driver({FakeGpu{.memory_bytes = 8 << 20}});
    driver.deferred = true;
    MemoryPool& pool = MemoryPool::instance();
    const Stream a, b;
    driver.faults.plan(k, 1, test::Repeat::once);
    for (int step = 0; step < 12; ++step) {
      try {
        const StreamRef stream = step % 2 ? a.ref() : b.ref();
        const Tensor tensor(DType::uint8, {int64_t(3) << 20}, Device::cuda(0), stream);
        const Tensor small(DType::uint8, {step + 1}, Device::cuda(0), stream);
        tensor.record(step % 3 ? a : b);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::value) << error.what();
      }
      ASSERT_EQ(test::wrong_sums(pool.statistics()), "") << k;
    }
    driver.faults.clear();
    EXPECT_EQ(pool.statistics().live_blocks, 0) << k;
    pool.trim();
    EXPECT_EQ(pool.statistics().reserved, 0) << k;
    EXPECT_EQ(driver.events, 0) << k;
    EXPECT_EQ(driver.damage(), "") << k;
  }
}

}  // namespace
}  // namespace tensorcraft
