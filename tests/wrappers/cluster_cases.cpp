// SPDX-License-Identifier: Apache-2.0
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/kernels/cluster.cuh"

#include <algorithm>

namespace tensorcraft::test {
namespace {

constexpr size_t kBlocks = kClusterBlocks;

template <void (*kKernel)(const Params&)>
Case cluster(const char* name, size_t in_words, size_t out_words,
             std::vector<Expected> (*expect)(Words in, int block)) {
  Case c{.name = name,
         .header = "cluster.cuh",
         .sm = 90,
         .in_words = int(in_words),
         .out_words = int(out_words),
         .cluster = {kClusterBlocks},
         .simt = on_simt<kKernel>};
  c.fill = [](Random& random, int block, std::span<uint32_t> in) {
    const uint32_t special[] = {0, 1, 0x7fffffffu, 0x80000000u, 0xffffffffu};
    for (uint32_t& word : in) word = block % 3 < 2 ? uint32_t(random()) : special[random() % 5];
  };
  c.expect = expect;
  return c;
}

std::vector<Expected> expect_index(Words, int) {
  std::vector<Expected> out;
  for (uint32_t i = 0; i < 8; ++i)
    for (const uint32_t word : {i % 2, i / 2 % 2, i / 4, 2u, 2u, 2u, i, 8u}) out.push_back({word});
  return out;
}

std::vector<Expected> expect_exchange(Words in, int) {
  std::vector<Expected> out;
  // Word i, turned round, of the block so many after this one.
  const auto of = [&](size_t rank, size_t i) { return in[rank % kBlocks * 32 + 31 - i]; };
  for (size_t rank = 0; rank < kBlocks; ++rank) {
    for (size_t i = 0; i < 32; ++i) out.push_back({of(rank + 1, i)});
    for (size_t i = 0; i < 32; ++i) out.push_back({of(rank + 2, i)});
    for (size_t i = 0; i < 32; ++i) out.push_back({of(rank + 3, i) + 1});
    for (size_t i = 0; i < 32; ++i) out.push_back({of(rank + 2, i) + 2});
  }
  return out;
}

std::vector<Expected> expect_relaxed(Words in, int) {
  std::vector<Expected> out;
  for (size_t i = 0; i < kBlocks * 32; ++i) out.push_back({in[kBlocks * 32 - 1 - i]});
  return out;
}

// Expects what the block before sent, turned round.
std::vector<Expected> expect_sent(Words in, int) {
  std::vector<Expected> out;
  for (size_t i = 0; i < kBlocks * 32; ++i)
    out.push_back({in[(i / 32 + kBlocks - 1) % kBlocks * 32 + 31 - i % 32]});
  return out;
}

std::vector<Expected> expect_gather(Words in, int) {
  std::vector<Expected> out;
  for (size_t i = 0; i < kBlocks * 32 * kBlocks; ++i) out.push_back({in[i % kBlocks]});
  return out;
}

std::vector<Expected> expect_cells(Words in, int) {
  uint64_t sum64 = 0, cas64 = 0;
  uint32_t sum = 0, smallest = ~0u, largest = 0;
  int32_t least = 0, most = 0;
  int small = 0;
  for (const uint32_t x : in) {
    sum64 += uint64_t(x) << 20;
    cas64 += x;
    sum += x;
    smallest = std::min(smallest, x);
    largest = std::max(largest, x);
    least = std::min(least, int32_t(x));
    most = std::max(most, int32_t(x));
    small += int(x % 9) - 4;
  }
  const uint32_t words[kCellWords] = {uint32_t(sum64),
                                      uint32_t(sum64 >> 32),
                                      uint32_t(cas64),
                                      uint32_t(cas64 >> 32),
                                      sum,
                                      smallest,
                                      largest,
                                      sum,  // every word passes through the token
                                      sum,
                                      uint32_t(least),
                                      uint32_t(most),
                                      bit_cast<uint32_t>(float(small))};
  std::vector<Expected> out;
  for (const uint32_t word : words) out.push_back({word});
  return out;
}

// Subnormal numbers are kept, as in the own block.
Case remote_float() {
  Case c = cluster<cluster_add_f32>("cluster_add_f32", 33, 33, [](Words in, int) {
    std::vector<Expected> out(33);
    auto now = bit_cast<float>(in[0]);
    for (size_t i = 1; i < 33; ++i) {
      out[i] = {bit_cast<uint32_t>(now)};
      now += bit_cast<float>(in[i]);
    }
    out[0] = {bit_cast<uint32_t>(now)};
    return out;
  });
  c.fill = [](Random& random, int block, std::span<uint32_t> in) {
    const uint32_t small[] = {0, 0x80000000, 1, 0x807fffff, 0x00800000, 0x80c00000, 0x00400000};
    for (uint32_t& word : in)
      word = block % 2 ? small[random() % 7] : (uint32_t(random()) & 0x8fffffff) | 0x38000000;
  };
  return c;
}

std::vector<Expected> expect_phases(Words, int) {
  std::vector<Expected> out;
  // Before a phase's end the one of the other parity is the last; then it is this one.
  for (size_t i = 0; i < kBlocks * kClusterPhases; ++i) {
    out.push_back({2});
    out.push_back({1});
  }
  return out;
}

}  // namespace

std::vector<Case> cluster_cases() {
  constexpr size_t words = kBlocks * 32;
  Case index = cluster<cluster_index>("cluster_index", 4, 8 * kIndexWords, expect_index);
  index.cluster = {2, 2, 2};
  Case phases = cluster<mbarrier_cluster>("mbarrier_cluster", kBlocks, kBlocks * 2 * kClusterPhases,
                                          expect_phases);
  phases.fill = [](Random& random, int block, std::span<uint32_t> in) {
    for (uint32_t& word : in) word = 1 + uint32_t(random()) % (block % 3 ? 300000 : 3);
  };
  return {index,
          cluster<cluster_exchange>("cluster_exchange", words, 4 * words, expect_exchange),
          cluster<cluster_relaxed>("cluster_relaxed", words, words, expect_relaxed),
          cluster<cluster_gather>("cluster_gather", kBlocks, words * kBlocks, expect_gather),
          cluster<cluster_atomics>("cluster_atomics", words, kCellWords, expect_cells),
          remote_float(),
          phases,
          cluster<st_async>("st_async", words, words, expect_sent),
          cluster<bulk_to_cluster>("bulk_to_cluster", words, words, expect_sent)};
}

}  // namespace tensorcraft::test
