// SPDX-License-Identifier: Apache-2.0
// When things take effect; the instructions have tests of their own.
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tests/simt/async_wrappers.cuh"
#include "tests/simt/kernels.hpp"

#include <set>

namespace tensorcraft::simt {
namespace {

using tensorcraft::static_shared;

struct Shared {
  alignas(16) int values[4][4];
  uint64_t barriers[4];
};
struct Data {
  alignas(16) int in[4] = {1, 2, 3, 4};
  int seen[4];
};

// Notes which of four loads have landed when one thread has waited for the last.
void look_early(const void* p) {
  Shared& s = static_shared<Shared>();
  Data& d = **static_cast<Data* const*>(p);
  if (threadIdx.x == 0) {
    for (auto& b : s.barriers) ptx::mbarrier_init(&b, 1);
    ptx::fence_mbarrier_init();
    for (int i = 0; i < 4; ++i) {
      ptx::mbarrier_arrive_expect_tx(&s.barriers[i], 16);
      ptx::cp_async_bulk_load(s.values[i], d.in, 16, &s.barriers[i]);
    }
  }
  for (int i = 0; i < 5; ++i) __syncthreads();
  ptx::mbarrier_wait_parity(&s.barriers[3], 0);
  if (threadIdx.x == 0)
    for (int i = 0; i < 4; ++i) d.seen[i] = s.values[i][0];
  for (auto& b : s.barriers) ptx::mbarrier_wait_parity(&b, 0);
}

std::string seen(const Options& o) {
  Data d;
  Data* const p = &d;
  run({.name = "look_early", .block = {8}}, look_early, &p, o);
  std::string text;
  for (const int s : d.seen) text += s == 1 ? '1' : s == -1 ? '-' : '?';
  return text;
}

TEST(SimtAsync, LandsOnlyWhatIsAwaitedAtTheLatest) {
  if (kRaceBuild) GTEST_SKIP() << kSooner;
  EXPECT_EQ(seen({}), "---1");
  EXPECT_EQ(seen({.timing = Timing::as_early_as_possible}), "1111");
}

TEST(SimtAsync, SeedsGiveManyOrdersAndEachIsRepeatable) {
  if (kRaceBuild) GTEST_SKIP() << kSooner;
  std::set<std::string> all;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Options o{.timing = Timing::seeded, .seed = seed};
    const std::string once = seen(o);
    EXPECT_EQ(once[3], '1');
    EXPECT_EQ(once, seen(o));
    all.insert(once);
  }
  EXPECT_GE(all.size(), 4u);
}

// Linking this is the test: a wrapper without a host body fails it.
TEST(SimtAsync, EveryWrapperHasAHostBody) {
  void (*const volatile all)(const kernel::async_wrappers::Params&) = kernel::async_wrappers::run;
  EXPECT_NE(all, nullptr);
}

}  // namespace
}  // namespace tensorcraft::simt
