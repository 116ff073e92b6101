// SPDX-License-Identifier: Apache-2.0
// A copy engine, a ring of transaction barriers and a warpgroup's products, together.
#include "tests/support/wgmma_tile.hpp"

#include "tensorcraft/simt/launch.hpp"
#include "tensorcraft/simt/tensor_map.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace tensorcraft::simt {
namespace {

namespace tile = kernel::wgmma_tile;

std::vector<float> run(test::TileProblem& problem, const Options& options) {
  std::vector<float> c(tile::kM * tile::kN, NAN);
  const tile::Params params{encode_tiled(problem.tiled(problem.a.data())),
                            encode_tiled(problem.tiled(problem.b.data())), c.data()};
  set_options(options);
  launch(
      {.name = "wgmma_tile", .block = {tile::kThreads}, .shared_bytes = sizeof(tile::Shared)},
      [](const void* p) { tile::run(*static_cast<const tile::Params*>(p)); }, &params);
  set_options({});
  return c;
}

TEST(SimtWgmmaTile, AgreesWithTheDoubleReferenceAtEveryTiming) {
  test::TileProblem problem;
  const auto begin = std::chrono::steady_clock::now();
  const auto late = run(problem, {});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  RecordProperty("milliseconds", int(seconds.count() * 1e3));
  EXPECT_LT(problem.worst_error(late), 1);
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(seconds.count(), 2.0);
#endif
  EXPECT_EQ(run(problem, {.timing = Timing::as_early_as_possible}), late);
  for (uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(run(problem, {.timing = Timing::seeded, .seed = seed}), late) << "seed " << seed;
}

}  // namespace
}  // namespace tensorcraft::simt
