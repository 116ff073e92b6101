// SPDX-License-Identifier: Apache-2.0
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/kernels/order.cuh"

namespace tensorcraft::test {
namespace {

template <void (*kKernel)(const Params&)>
Case order(const char* name, int threads, int in_words, int out_words, unsigned cluster = 1) {
  Case c{.name = name,
         .header = "order.cuh",
         .sm = 90,
         .threads = threads,
         .in_words = in_words,
         .out_words = out_words,
         .blocks = 12,  // pauses are slow on the emulator
         .cluster = {cluster},
         .simt = on_simt<kKernel>};
  c.fill = random_words;
  return c;
}

std::vector<Expected> head(uint32_t first) { return {{first}, {kFilled}, {kFilled}, {kFilled}}; }

std::vector<Expected> expect_flag(Words in, int) {
  std::vector<Expected> out = head(1);
  for (uint32_t rank = 0; rank < kOrderBlocks; ++rank)
    for (size_t i = 0; i < 32; ++i) out.push_back({rank ? in[31 - i] + rank : in[i]});
  return out;
}

std::vector<Expected> expect_counter(Words in, int) {
  const size_t n = in.size();
  std::vector<Expected> out = head(kFilled + uint32_t(n * (n + 1) / 2));
  for (const uint32_t word : in) out.push_back({word});
  for (size_t i = 0; i < n; ++i) out.push_back({in[n - 1 - i] + 1});
  return out;
}

constexpr int kLaunches = 6;
std::vector<Expected> expect_launches(Words in, int) {
  std::vector<Expected> out;
  for (const uint32_t word : in) {
    uint32_t x = kFilled;
    for (int i = 0; i < kLaunches; ++i) x = x * 5 + word;
    out.push_back({x});
  }
  return out;
}

std::vector<Expected> expect_registers(Words in, int) {
  std::vector<Expected> out;
  for (size_t t = 0; t < in.size(); ++t) {
    uint32_t x = in[t], held[kHeldWords];
    for (int i = 0; t >= 128 && i < kHeldWords; ++i) held[i] = x = x * 1664525u + 1013904223u;
    for (int i = 0; t >= 128 && i < kHeldWords; ++i) x = x * 31 + held[kHeldWords - 1 - i];
    out.push_back({t < 128 ? x + 1 : x});
  }
  return out;
}

}  // namespace

std::vector<Case> order_cases() {
  constexpr int words = (kOrderBlocks - 1) * 32;
  Case flag =
      order<release_acquire>("release_acquire", 32, 32, 4 + kOrderBlocks * 32, kOrderBlocks);
  flag.expect = expect_flag;
  Case counter = order<red_release>("red_release", 32, words, 4 + 2 * words, kOrderBlocks);
  counter.expect = expect_counter;
  Case launches = order<dependent_launches>("dependent_launches", 64, 64, 64);
  launches.launches = kLaunches;
  launches.expect = expect_launches;
  Case registers =
      order<setmaxnreg>("setmaxnreg", kRegisterThreads, kRegisterThreads, kRegisterThreads);
  registers.expect = expect_registers;
  return {flag, counter, launches, registers};
}

}  // namespace tensorcraft::test
