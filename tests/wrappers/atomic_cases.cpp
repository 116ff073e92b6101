// SPDX-License-Identifier: Apache-2.0
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/formats.hpp"
#include "tests/wrappers/kernels/atomic.cuh"

#include <algorithm>

namespace tensorcraft::test {
namespace {

// Returns what the memory holds after one thread with operands x and y; 64-bit values, or 32
// zero-extended.
using Change = uint64_t (*)(uint64_t old, uint64_t x, uint64_t y);

template <void (*kKernel)(const Params&)>
Case atomic(const char* name, int words, Change change, int sm = 80,
            uint32_t (*word)(Random&, int block) = nullptr) {
  Case c{.name = name, .header = "atomic.cuh", .sm = sm, .simt = on_simt<kKernel>};
  c.in_words = 2 + 32 * 4;
  c.out_words = 2 + 32 * 2;
  c.fill = [word](Random& random, int block, std::span<uint32_t> in) {
    for (uint32_t& w : in)
      w = word ? word(random, block) : random() % 4 ? uint32_t(random()) : random() % 3;
  };
  c.expect = [=](Words in, int) {
    const auto value = [&](size_t at) {
      return words == 1 ? in[at] : uint64_t(in[at + 1]) << 32 | in[at];
    };
    std::vector<Expected> out(size_t(2 + 32 * 2));
    const auto put = [&](size_t at, uint64_t v) {
      out[at] = {uint32_t(v)};
      out[at + 1] = {words == 1 ? 0 : uint32_t(v >> 32)};
    };
    uint64_t now = value(0);
    for (size_t t = 0; t < 32; ++t) {
      put(2 + t * 2, now);
      now = change(now, value(2 + t * 4), value(2 + t * 4 + size_t(words)));
      if (words == 1) now = uint32_t(now);
    }
    put(0, now);
    return out;
  };
  return c;
}

uint32_t few(Random& random, int) { return random() % 3; }
// Every other block has sums near the smallest normal number.
uint32_t any_float(Random& random, int block) {
  const uint32_t small[] = {0, 0x80000000, 1, 0x807fffff, 0x00800000, 0x80c00000, 0x00400000};
  return block % 2 ? small[random() % 7] : uint32_t(random() & 0x8fffffff) | 0x38000000;
}
uint32_t any_pair(Random& random, int) { return (random() & 0x8fff8fff) | 0x30003000; }

float flush(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }
uint64_t add_floats(uint64_t old, uint64_t x, uint64_t) {
  const float a = flush(bit_cast<float>(uint32_t(old))), b = flush(bit_cast<float>(uint32_t(x)));
  return bit_cast<uint32_t>(flush(a + b));
}
uint64_t add_shared_floats(uint64_t old, uint64_t x, uint64_t) {
  return bit_cast<uint32_t>(bit_cast<float>(uint32_t(old)) + bit_cast<float>(uint32_t(x)));
}
uint32_t add_halves(const Format& f, uint32_t a, uint32_t b) {
  const double sum = decode(f, a & 0xffff) + decode(f, b & 0xffff);
  return sum != sum ? 0x7fff : nearest(f, sum, false);
}
template <const Format& kFormat>
uint64_t add_pairs(uint64_t old, uint64_t x, uint64_t) {
  const auto a = uint32_t(old), b = uint32_t(x);
  return add_halves(kFormat, a, b) | uint64_t(add_halves(kFormat, a >> 16, b >> 16)) << 16;
}
uint64_t add(uint64_t old, uint64_t x, uint64_t) { return old + x; }
uint64_t min_s32(uint64_t old, uint64_t x, uint64_t) {
  return uint32_t(std::min(int32_t(old), int32_t(x)));
}
uint64_t max_s32(uint64_t old, uint64_t x, uint64_t) {
  return uint32_t(std::max(int32_t(old), int32_t(x)));
}
uint64_t increment(uint64_t old, uint64_t last, uint64_t) { return old < last ? old + 1 : 0; }
uint64_t swap_if(uint64_t old, uint64_t x, uint64_t y) { return old == y ? x : old; }

}  // namespace

std::vector<Case> atomic_cases() {
  return {
      atomic<atomic_add_s32>("atomic_add_s32", 1, add),
      atomic<atomic_add_u32>("atomic_add_u32", 1, add),
      atomic<atomic_add_u64>("atomic_add_u64", 2, add),
      atomic<atomic_add_f32>("atomic_add_f32", 1, add_floats, 80, any_float),
      atomic<atomic_add_f32_shared>("atomic_add_f32_shared", 1, add_shared_floats, 80, any_float),
      atomic<atomic_add_f16x2>("atomic_add_f16x2", 1, add_pairs<kF16>, 80, any_pair),
      atomic<atomic_add_bf16x2>("atomic_add_bf16x2", 1, add_pairs<kBf16>, 90, any_pair),
      atomic<atomic_min_s32>("atomic_min_s32", 1, min_s32),
      atomic<atomic_max_s32>("atomic_max_s32", 1, max_s32),
      atomic<atomic_min_u32>("atomic_min_u32", 1,
                             [](uint64_t old, uint64_t x, uint64_t) { return std::min(old, x); }),
      atomic<atomic_max_u32>("atomic_max_u32", 1,
                             [](uint64_t old, uint64_t x, uint64_t) { return std::max(old, x); }),
      atomic<atomic_increment_u32>("atomic_increment_u32", 1, increment),
      atomic<atomic_increment_u32>("atomic_increment_u32:few", 1, increment, 80, few),
      atomic<atomic_exchange_u32>("atomic_exchange_u32", 1,
                                  [](uint64_t, uint64_t x, uint64_t) { return x; }),
      atomic<atomic_cas_u32>("atomic_cas_u32", 1, swap_if, 80, few),
      atomic<atomic_cas_u64>("atomic_cas_u64", 2, swap_if, 80,
                             [](Random& random, int) { return uint32_t(random() % 2); })};
}

}  // namespace tensorcraft::test
