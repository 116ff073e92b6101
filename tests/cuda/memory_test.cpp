// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/memory.hpp"

#include "tensorcraft/core/error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <array>

namespace tensorcraft::cuda {
namespace {

using test::FakeDriver;
using test::FakeGpu;

TEST(CudaMemory, CopiesAndFillsThroughTheDriver) {
  FakeDriver fake;
  std::array<int, 4> in{1, 2, 3, 4}, out{};
  void* block = allocate(sizeof(in), StreamRef());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 256, 0u);
  copy_async(block, in.data(), sizeof(in), StreamRef());
  fill_async(block, 0, sizeof(int), StreamRef());
  copy_async(out.data(), block, sizeof(out), StreamRef());
  EXPECT_EQ(out, (std::array<int, 4>{0, 2, 3, 4}));
  deallocate(block, StreamRef());
  EXPECT_EQ(fake.blocks, 0);
}

TEST(CudaMemory, OutOfMemoryIsItsOwnKindAndNamesTheBytes) {
  FakeDriver fake({FakeGpu{.memory_bytes = 1 << 20}});
  try {
    allocate(2 << 20, StreamRef());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_STREQ(
        error.what(),
        "cuMemAllocAsync: out of memory (2): 2097152 bytes were asked for on cuda:0, where "
        "1048576 of 1048576 bytes are free; free "
        "tensors or use smaller batches");
  }
}

TEST(CudaMemory, NothingIsAskedForZeroBytes) {
  FakeDriver fake;
  EXPECT_EQ(allocate(0, StreamRef()), nullptr);
  EXPECT_EQ(allocate_pinned(0), nullptr);
  copy_async(nullptr, nullptr, 0, StreamRef());
  fill_async(nullptr, 0, 0, StreamRef());
  deallocate(nullptr, StreamRef());
  deallocate_pinned(nullptr);
  EXPECT_EQ(fake.calls["cuMemAllocAsync"] + fake.calls["cuMemcpyAsync"], 0);
}

TEST(CudaMemory, PinnedMemoryIsGivenBack) {
  FakeDriver fake;
  void* block = allocate_pinned(64);
  EXPECT_NE(block, nullptr);
  deallocate_pinned(block);
  EXPECT_EQ(fake.pinned, 0);
}

TEST(CudaMemory, ASegmentIsNullWhereThereIsNoRoom) {
  FakeDriver fake({FakeGpu{.memory_bytes = 1 << 20}});
  EXPECT_EQ(allocate_segment(2 << 20, 0), nullptr);
  EXPECT_EQ(free_bytes(0), size_t(1) << 20);
  void* const segment = allocate_segment(1 << 20, 0);
  EXPECT_EQ(free_bytes(0), 0u);
  fake.failing["cuMemAlloc"] = 999;
  EXPECT_THROW(allocate_segment(1, 0), Error);
  deallocate_segment(segment, 0);
  EXPECT_EQ(free_bytes(0), size_t(1) << 20);
  EXPECT_EQ(fake.damage(), "");
}

TEST(CudaMemory, KeepsFreedMemoryInEachDevicesPool) {
  FakeDriver fake({FakeGpu{}, FakeGpu{}});
  deallocate(allocate(16, StreamRef::default_stream(1)), StreamRef::default_stream(1));
  EXPECT_EQ(fake.calls["cuMemPoolSetAttribute"], 1);
  EXPECT_EQ(FakeDriver::current_context(), nullptr);
}

}  // namespace
}  // namespace tensorcraft::cuda
