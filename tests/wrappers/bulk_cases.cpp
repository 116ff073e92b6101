// SPDX-License-Identifier: Apache-2.0
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/formats.hpp"
#include "tests/wrappers/kernels/bulk.cuh"
#include "tests/wrappers/reductions.hpp"

namespace tensorcraft::test {
namespace {

constexpr size_t kWords = kBulkWords;

template <void (*kKernel)(const Params&)>
Case bulk(const char* name, size_t in_words, size_t out_words) {
  Case c{.name = name,
         .header = "bulk.cuh",
         .sm = 90,
         .in_words = int(in_words),
         .out_words = int(out_words),
         .simt = on_simt<kKernel>};
  // A whole number of 16 bytes first, which the reductions do not read.
  c.fill = [](Random& random, int block, std::span<uint32_t> in) {
    random_words(random, block, in);
    const uint32_t special[] = {16, kBulkWords * 4};
    in[0] = block % 3 == 2 ? special[random() % 2] : 16 + uint32_t(random() % kWords) / 4 * 16;
  };
  return c;
}

std::vector<Expected> expect_load(Words in, int) {
  std::vector<Expected> out;
  for (size_t i = 0; i < kWords; ++i) out.push_back({i * 4 < in[0] ? in[4 + i] : 0});
  return out;
}

std::vector<Expected> expect_store(Words in, int) {
  std::vector<Expected> out;
  for (size_t i = 0; i < kWords; ++i) out.push_back({i * 4 < in[0] ? in[4 + i] : 0xdddddddd});
  for (size_t i = 0; i < kWords; ++i) out.push_back({in[4 + i]});
  return out;
}

template <void (*kKernel)(const Params&)>
Case reduction(const char* name, const Reduction& r) {
  Case c = bulk<kKernel>(name, 2 * kReduceWords, kReduceWords);
  c.fill = [r](Random& random, int block, std::span<uint32_t> in) {
    for (uint32_t& word : in) word = r.random_word(random, block % 3);
  };
  c.expect = [r](Words in, int) {
    std::vector<Expected> out;
    for (size_t i = 0; i < kReduceWords; i += 2) {
      const auto [low, high] =
          r.reduce({in[i], in[i + 1]}, {in[kReduceWords + i], in[kReduceWords + i + 1]});
      out.push_back({low});
      out.push_back({high});
    }
    return out;
  };
  return c;
}

constexpr size_t kSent = kMulticastWords;

std::vector<Expected> expect_multicast(Words in, int) {
  std::vector<Expected> out;
  for (size_t rank = 0; rank < kMulticastBlocks; ++rank)
    for (size_t i = 0; i < kWords; ++i)
      out.push_back({in[i / kSent] >> rank & 1u ? in[kMulticastBlocks + i] : 0});
  return out;
}

Case multicast() {
  Case c = bulk<bulk_multicast>("bulk_multicast", kMulticastBlocks * (1 + kSent),
                                kMulticastBlocks * kWords);
  c.cluster = {kMulticastBlocks};
  c.fill = [](Random& random, int block, std::span<uint32_t> in) {
    random_words(random, block, in);
    for (size_t i = 0; i < kMulticastBlocks; ++i) in[i] = block % 3 ? 1 + in[i] % 15 : 15;
  };
  c.expect = expect_multicast;
  return c;
}

}  // namespace

std::vector<Case> bulk_cases() {
  Case load = bulk<bulk_load>("bulk_load", 4 + kWords, kWords);
  load.expect = expect_load;
  Case hinted = bulk<bulk_load_hint>("bulk_load_hint", 4 + kWords, kWords);
  hinted.expect = expect_load;
  Case store = bulk<bulk_store>("bulk_store", 4 + kWords, 2 * kWords);
  store.expect = expect_store;
  using Op = Reduction::Op;
  using Type = Reduction::Type;
  return {load,
          hinted,
          store,
          reduction<bulk_add_f32>("bulk_add_f32", {Op::add, Type::f32}),
          reduction<bulk_add_f16>("bulk_add_f16", {Op::add, Type::f16}),
          reduction<bulk_add_bf16>("bulk_add_bf16", {Op::add, Type::bf16}),
          reduction<bulk_add_u32>("bulk_add_u32", {Op::add, Type::u32}),
          reduction<bulk_add_u64>("bulk_add_u64", {Op::add, Type::u64}),
          reduction<bulk_min_s32>("bulk_min_s32", {Op::min, Type::s32}),
          reduction<bulk_max_s32>("bulk_max_s32", {Op::max, Type::s32}),
          multicast()};
}

}  // namespace tensorcraft::test
