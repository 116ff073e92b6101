// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/graph_memory.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/graph.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <vector>

namespace tensorcraft::cuda {
namespace {

using test::FakeDriver;

// Returns the blocks that a call recorded on `stream` gets.
std::vector<void*> recorded(std::optional<Graph>& graph, const Stream& stream,
                            const std::vector<size_t>& sizes) {
  std::vector<void*> blocks;
  graph.emplace(stream, [&] {
    for (const size_t bytes : sizes) blocks.push_back(allocate_for_graph(bytes, stream));
  });
  return blocks;
}

TEST(GraphMemory, BlocksLieApartAndAreAligned) {
  FakeDriver fake;
  const Stream stream;
  std::optional<Graph> graph;
  const std::vector<size_t> sizes{1, 256, 257, 4096, kMaxGraphBytes, 512};
  const auto blocks = recorded(graph, stream, sizes);
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_NE(blocks[i], nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks[i]) % 256, 0u);
    fill_async(blocks[i], static_cast<unsigned char>(i), sizes[i], stream);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto* const bytes = static_cast<const unsigned char*>(blocks[i]);
    EXPECT_EQ(bytes[0], i);
    EXPECT_EQ(bytes[sizes[i] - 1], i);
  }
  EXPECT_EQ(fake.damage(), "");
}

TEST(GraphMemory, ABlockServesAgainOnceItsGraphIsGone) {
  FakeDriver fake;
  const Stream stream;
  std::optional<Graph> first, second;
  const auto old = recorded(first, stream, {1000, 1000});
  EXPECT_NE(old[0], old[1]);
  for (void* const block : recorded(second, stream, {1000, 1000})) {
    EXPECT_NE(block, old[0]);
    EXPECT_NE(block, old[1]);
  }
  first.reset();
  std::optional<Graph> third;
  const auto again = recorded(third, stream, {1000, 1024, 2000});
  EXPECT_EQ(std::set(again.begin(), again.begin() + 2), std::set(old.begin(), old.end()));
  EXPECT_NE(again[2], nullptr);  // of another size
  EXPECT_EQ(fake.calls["cuMemAlloc"], 1);
}

TEST(GraphMemory, TakesAnotherSlabWhereOneIsFull) {
  FakeDriver fake;
  const Stream stream;
  std::optional<Graph> graph;
  const std::vector<size_t> sizes(9, kMaxGraphBytes);
  const auto blocks = recorded(graph, stream, sizes);
  EXPECT_EQ(std::set(blocks.begin(), blocks.end()).size(), sizes.size());
  EXPECT_EQ(fake.calls["cuMemAlloc"], 2);
}

TEST(GraphMemory, GivesNothingToCallsThatNoGraphRecords) {
  FakeDriver fake;
  const Stream stream;
  EXPECT_EQ(allocate_for_graph(16, stream), nullptr);
  EXPECT_EQ(allocate_for_graph(16, StreamRef()), nullptr);
  std::optional<Graph> graph;
  EXPECT_EQ(recorded(graph, stream, {0, kMaxGraphBytes + 1}),
            (std::vector<void*>{nullptr, nullptr}));
  EXPECT_EQ(fake.calls["cuMemAlloc"], 0);
}

TEST(GraphMemory, GivesNothingWhereTheDriverRefuses) {
  for (const char* const call :
       {"cuStreamGetCaptureInfo", "cuMemAlloc", "cuUserObjectCreate", "cuGraphRetainUserObject"}) {
    FakeDriver fake;
    const Stream stream;
    fake.failing[call] = 801;
    std::optional<Graph> graph;
    EXPECT_EQ(recorded(graph, stream, {16})[0], nullptr) << call;
    fake.failing.clear();
    EXPECT_NE(recorded(graph, stream, {16})[0], nullptr) << call;
    EXPECT_LE(fake.calls["cuMemAlloc"], 2) << call;
  }
}

TEST(GraphMemory, IsToldWhenAGraphIsGone) {
  FakeDriver fake;
  const Stream stream;
  int released = 0;
  const auto release = [](void* count) { ++*static_cast<int*>(count); };
  {
    const Graph graph(stream, [&] { give_to_graph(stream, release, &released); });
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  EXPECT_THROW(give_to_graph(stream, release, &released), Error);
  for (const char* const call : {"cuUserObjectCreate", "cuGraphRetainUserObject"}) {
    fake.failing[call] = 801;
    EXPECT_THROW(Graph(stream, [&] { give_to_graph(stream, release, &released); }), Error);
    fake.failing.clear();
  }
  EXPECT_EQ(released, 1);
}

}  // namespace
}  // namespace tensorcraft::cuda
