// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/cluster.hpp"

#include "tensorcraft/core/error.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tensorcraft::simt {
namespace {

std::string fault_of(const Launch& l, Body body, const void* params = nullptr) {
  try {
    launch(l, body, params);
  } catch (const Error& e) {
    return e.what();
  }
  return "no fault";
}

TEST(SimtCluster, BlocksOfAClusterRunTogether) {
  std::vector<unsigned> ranks(24, 99);
  unsigned* const data = ranks.data();
  const Launch l{.name = "k", .grid = {6, 2}, .block = {2}, .cluster = {3}};
  EXPECT_EQ(fault_of(
                l,
                [](const void* p) {
                  Cluster& c = *Cluster::current();
                  EXPECT_EQ(c.blocks().size(), 3u);
                  EXPECT_EQ(c.self().block->index.x, blockIdx.x);
                  const unsigned at = (blockIdx.y * gridDim.x + blockIdx.x) * 2 + threadIdx.x;
                  (*static_cast<unsigned* const*>(p))[at] = c.self().block->rank;
                },
                &data),
            "no fault");
  for (size_t i = 0; i < ranks.size(); ++i) EXPECT_EQ(ranks[i], i / 2 % 3);
}

TEST(SimtCluster, AThreadWaitsForACondition) {
  EXPECT_EQ(fault_of({.name = "k", .block = {2}},
                     [](const void*) {
                       static bool set;
                       if (threadIdx.x == 0) {
                         set = false;
                         Cluster::current()->wait_until(
                             "a flag", SourceLine::current(),
                             [](void* flag) { return *static_cast<bool*>(flag); }, &set);
                         EXPECT_TRUE(set);
                       } else {
                         set = true;
                       }
                     }),
            "no fault");
}

TEST(SimtCluster, AConditionThatNeverHoldsIsADeadlock) {
  EXPECT_NE(
      fault_of({.name = "k"},
               [](const void*) {
                 Cluster::current()->wait_until(
                     "a flag", SourceLine::current(), [](void*) { return false; }, nullptr);
               })
          .find("from block (0, 0, 0), thread (0, 0, 0): a flag (tests/simt/cluster_test.cpp"),
      std::string::npos);
}

TEST(SimtCluster, AFaultNamesKernelBlockThreadAndLine) {
  const std::string text = fault_of({.name = "k", .grid = {1, 2}, .block = {4}}, [](const void*) {
    const SourceLine line = SourceLine::current();
    if (blockIdx.y == 1 && threadIdx.x == 3) Cluster::current()->fault("is broken", &line);
  });
  EXPECT_EQ(text.find("simt: k: block (0, 1, 0), thread (3, 0, 0): is broken "
                      "(tests/simt/cluster_test.cpp:"),
            0u)
      << text;
}

}  // namespace
}  // namespace tensorcraft::simt
