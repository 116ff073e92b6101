// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/workspace.hpp"

#include "tensorcraft/cuda/graph.hpp"
#include "tensorcraft/cuda/graph_memory.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using test::FakeDriver;

TEST(Workspace, OfAPlainCallIsTheAllocators) {
  FakeDriver fake;
  const Stream stream;
  {
    const Workspace workspace(DType::float32, {2, 3}, Device::cuda(0), stream);
    EXPECT_EQ(workspace.view().shape(), (Dims{2, 3}));
    EXPECT_EQ(workspace.view().device(), Device::cuda(0));
    EXPECT_EQ(allocator(Device::cuda()).statistics().live_blocks, 1);
  }
  EXPECT_EQ(allocator(Device::cuda()).statistics().live_blocks, 0);
}

TEST(Workspace, OfARecordedCallAddsNoNodes) {
  FakeDriver fake;
  const Stream stream;
  const Graph graph(stream, [&] {
    const Workspace small(DType::uint8, {100}, Device::cuda(0), stream);
    EXPECT_NE(small.view().data(), nullptr);
    const Workspace large(DType::uint8, {int64_t(cuda::kMaxGraphBytes) + 1}, Device::cuda(0),
                          stream);
    EXPECT_NE(large.view().data(), nullptr);
  });
  EXPECT_EQ(fake.calls["cuMemAllocAsync"] + fake.calls["cuMemFreeAsync"], 0);
  EXPECT_GT(allocator(Device::cuda()).statistics().captured, 0);  // the graph has the large one
}

TEST(Workspace, OnTheHostAndOfNothing) {
  const Workspace host(DType::float32, {4}, Device::cpu(), {});
  host.view().data_as<float>()[3] = 1;
  const Workspace nothing(DType::float32, {0}, Device::cpu(), {});
  EXPECT_EQ(nothing.view().data(), nullptr);
}

TEST(Workspace, RefusesMoreBytesThanThereAre) {
  test::expect_error(
      ErrorKind::out_of_memory,
      [] { Workspace(DType::int64, {int64_t(1) << 61, 2}, Device::cpu(), {}); },
      "4611686018427387904 elements of int64 are more bytes than 64 bits count");
}

}  // namespace
}  // namespace tensorcraft
