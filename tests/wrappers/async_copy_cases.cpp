// SPDX-License-Identifier: Apache-2.0
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/kernels/async_copy.cuh"

#include <cstring>

namespace tensorcraft::test {
namespace {

constexpr size_t kThreads = kCopyThreads, kWords = kCopyWords;

template <void (*kKernel)(const Params&)>
Case copy(const char* name, size_t in_words, size_t out_words, int sm = 80) {
  Case c{.name = name,
         .header = "async_copy.cuh",
         .sm = sm,
         .threads = kCopyThreads,
         .in_words = int(in_words),
         .out_words = int(out_words),
         .simt = on_simt<kKernel>};
  c.fill = random_words;
  return c;
}

// kPerThread words a thread, of which so many bytes move; every third block has only the ends.
template <void (*kKernel)(const Params&), size_t kPerThread>
Case partial(const char* name) {
  Case c = copy<kKernel>(name, kThreads * (1 + kPerThread), kThreads * kPerThread);
  c.fill = [](Random& random, int block, std::span<uint32_t> in) {
    random_words(random, block, in);
    constexpr uint32_t bytes = kPerThread * 4;
    for (size_t t = 0; t < kThreads; ++t)
      in[t] = block % 3 ? uint32_t(random() % (bytes + 1)) : bytes * uint32_t(random() % 2);
  };
  c.expect = [](Words in, int) {
    std::vector<Expected> out(kThreads * kPerThread);
    for (size_t t = 0; t < kThreads; ++t) {
      uint32_t words[kPerThread] = {};
      std::memcpy(words, &in[kThreads + t * kPerThread], in[t]);
      for (size_t i = 0; i < kPerThread; ++i) out[t * kPerThread + i] = {words[i]};
    }
    return out;
  };
  return c;
}

std::vector<Expected> expect_groups(Words in, int) {
  std::vector<Expected> out;
  for (size_t i = 0; i < in.size(); ++i)
    out.push_back({in[i] ^ uint32_t(kCopyStages - 1 - i / kWords)});
  return out;
}

std::vector<Expected> expect_ring(Words in, int) {
  std::vector<Expected> out;
  for (size_t i = 0; i < kRingTiles * kThreads; ++i)
    out.push_back({in[i / kThreads * kThreads + kThreads - 1 - i % kThreads]});
  for (size_t t = 0; t < kThreads; ++t) out.push_back({in[kThreads - 1 - t] + 1});
  return out;
}

std::vector<Expected> expect_arrivals(Words in, int) {
  std::vector<Expected> out;
  for (size_t i = 0; i < 2 * kWords; ++i) {
    const size_t phase = i / kWords, thread = i % kWords / 4;
    out.push_back({in[phase * kWords + (kThreads - 1 - thread) * 4 + i % 4]});
  }
  return out;
}

std::vector<Expected> expect_load(Words in, int) {
  std::vector<Expected> out;
  for (size_t i = 0; i < kWords; ++i) out.push_back({in[i / 4 * 4 + 3 - i % 4]});
  return out;
}

}  // namespace

std::vector<Case> async_copy_cases() {
  std::vector<Case> cases{partial<cp_async_4, 1>("cp_async_4"),
                          partial<cp_async_8, 2>("cp_async_8"),
                          partial<cp_async_16, 4>("cp_async_16")};
  const auto add = [&](Case c, std::vector<Expected> (*expect)(Words, int)) {
    c.expect = expect;
    cases.push_back(c);
  };
  constexpr size_t groups = kCopyStages * kWords, ring = kRingTiles * kThreads;
  add(copy<cp_async_groups>("cp_async_groups", groups, groups), expect_groups);
  add(copy<copy_ring>("copy_ring", ring, ring + kThreads), expect_ring);
  add(copy<cp_async_arrive>("cp_async_arrive", 2 * kWords, 2 * kWords, 90), expect_arrivals);
  add(copy<cp_async_arrive_noinc>("cp_async_arrive_noinc", 2 * kWords, 2 * kWords, 90),
      expect_arrivals);
  add(copy<ld_global_nc>("ld_global_nc", kWords, kWords), expect_load);
  add(copy<global_cs_v4>("global_cs_v4", kWords, kWords), expect_load);
  add(copy<global_cs_narrow>("global_cs_narrow", kWords, kWords), expect_load);
  add(copy<ld_global_hint>("ld_global_hint", kWords, kWords), expect_load);
  add(copy<cp_async_16_hint>("cp_async_16_hint", kWords, kWords), expect_load);
  return cases;
}

}  // namespace tensorcraft::test
