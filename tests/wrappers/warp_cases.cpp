// SPDX-License-Identifier: Apache-2.0
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/kernels/warp.cuh"

#include <algorithm>
#include <functional>
#include <numeric>

namespace tensorcraft::test {
namespace {

constexpr int kThreads = 64;

// Returns what lane `lane` gets if the lanes of its warp pass x.
using Meaning = std::function<uint32_t(Words x, int lane)>;

template <void (*kKernel)(const Params&)>
Case warp(const char* name, Meaning meaning, int sm = 80) {
  Case c{
      .name = name, .header = "warp.cuh", .sm = sm, .threads = kThreads, .simt = on_simt<kKernel>};
  c.in_words = c.out_words = kThreads;
  c.fill = [](Random& random, int block, std::span<uint32_t> in) {
    // Small numbers in every third block, so that votes are not always alike.
    for (uint32_t& word : in) word = block % 3 ? random() : random() % 48;
  };
  c.expect = [meaning](Words in, int) {
    std::vector<Expected> out;
    for (size_t i = 0; i < kThreads; ++i)
      out.push_back({meaning(in.subspan(i / 32 * 32, 32), int(i % 32))});
    return out;
  };
  return c;
}

Meaning from_lane(std::function<int(Words x, int lane)> source) {
  return [source](Words x, int lane) { return x[size_t(source(x, lane))]; };
}
Meaning folded(
    std::function<uint32_t(uint32_t, uint32_t)> op, uint32_t first,
    std::function<uint32_t(uint32_t)> prepare = [](uint32_t x) { return x; }) {
  return [=](Words x, int) {
    uint32_t result = first;
    for (const uint32_t v : x) result = op(result, prepare(v));
    return result;
  };
}

float number(uint32_t x) { return float(int(x % 2048) - 1024); }
// Sums over `width` lanes from a multiple of it.
Meaning float_sum(int width) {
  return [width](Words x, int lane) {
    float sum = 0;
    for (int i = 0; i < width; ++i) sum += number(x[size_t(lane / width * width + i)]);
    return bit_cast<uint32_t>(sum);
  };
}

template <void (*kKernel)(const Params&)>
Case block(const char* name, std::function<float(float, float)> op, float first) {
  Case c = warp<kKernel>(name, nullptr);
  c.expect = [=](Words in, int) {
    float result = first;
    for (const uint32_t x : in) result = op(result, number(x));
    return std::vector<Expected>(kThreads, {bit_cast<uint32_t>(result)});
  };
  return c;
}

uint32_t ballot_of(Words x, std::function<bool(uint32_t)> is) {
  uint32_t bits = 0;
  for (size_t i = 0; i < 32; ++i) bits |= uint32_t(is(x[i])) << i;
  return bits;
}
bool is_odd(uint32_t x) { return x % 2 != 0; }
bool ends_in_zero(uint32_t x) { return x % 32 == 0; }
uint32_t all_nonzero(Words x, int) { return ballot_of(x, ends_in_zero) == 0; }
uint32_t any_zero(Words x, int) { return ballot_of(x, ends_in_zero) != 0; }

uint32_t max_float(Words x, int) {
  float largest = number(x[0]);
  for (const uint32_t v : x) largest = std::max(largest, number(v));
  return bit_cast<uint32_t>(largest);
}

std::vector<Case> shuffle_cases() {
  return {
      warp<shfl>("shfl", from_lane([](Words x, int lane) { return int(x[size_t(lane)] % 32); })),
      warp<shfl_width>("shfl_width", from_lane([](Words x, int lane) {
                         return lane / 8 * 8 + int(x[size_t(lane)] % 8);
                       })),
      warp<shfl_xor>("shfl_xor", from_lane([](Words, int lane) { return lane ^ 5; })),
      warp<shfl_up>("shfl_up",
                    from_lane([](Words, int lane) { return lane % 16 < 3 ? lane : lane - 3; })),
      warp<shfl_down>("shfl_down",
                      from_lane([](Words, int lane) { return lane + 7 > 31 ? lane : lane + 7; })),
      warp<ballot>("ballot", [](Words x, int) { return ballot_of(x, is_odd); }),
      warp<any>("any", any_zero),
      warp<all>("all", all_nonzero),
  };
}

// Returns what the lanes below 11, or the others, pass.
Words group_of(Words x, int lane) { return lane < 11 ? x.first(11) : x.subspan(11); }

uint32_t redux_of_group(Words all, int lane) {
  const Words x = group_of(all, lane);
  uint32_t sum = 0, both = ~0u, any = 0, odd = 0;
  int32_t least = INT32_MAX, most = INT32_MIN;
  for (const uint32_t v : x) {
    sum += v;
    both &= v;
    any |= v;
    odd ^= v;
    least = std::min(least, int32_t(v));
    most = std::max(most, int32_t(v));
  }
  return sum ^ uint32_t(least) * 3 ^ uint32_t(most) * 5 ^
         *std::min_element(x.begin(), x.end()) * 7 ^ *std::max_element(x.begin(), x.end()) * 11 ^
         both * 13 ^ any * 17 ^ odd * 19;
}

uint32_t votes_of_group(Words all, int lane) {
  const Words x = group_of(all, lane);
  uint32_t bits = 0;
  for (size_t i = 0; i < x.size(); ++i) bits |= uint32_t(is_odd(x[i])) << i;
  const auto zeros = uint32_t(std::count_if(x.begin(), x.end(), ends_in_zero));
  return (lane < 11 ? bits : bits << 11) ^ uint32_t(zeros > 0) << 30 ^ uint32_t(zeros == 0) << 31;
}

std::vector<Case> vote_cases() {
  const auto smaller = [](uint32_t a, uint32_t b) {
    return uint32_t(std::min(int32_t(a), int32_t(b)));
  };
  const auto larger = [](uint32_t a, uint32_t b) {
    return uint32_t(std::max(int32_t(a), int32_t(b)));
  };
  return {
      warp<redux_add>("redux_add", folded(std::plus<uint32_t>(), 0)),
      warp<redux_min_s32>("redux_min_s32", folded(smaller, 0x7fffffffu)),
      warp<redux_max_s32>("redux_max_s32", folded(larger, 0x80000000u)),
      warp<redux_min_u32>("redux_min_u32",
                          folded([](uint32_t a, uint32_t b) { return std::min(a, b); }, ~0u)),
      warp<redux_max_u32>("redux_max_u32",
                          folded([](uint32_t a, uint32_t b) { return std::max(a, b); }, 0)),
      warp<redux_and>("redux_and", folded(std::bit_and<uint32_t>(), ~0u,
                                          [](uint32_t x) { return x | 0xffffu; })),
      warp<redux_or>("redux_or",
                     folded(std::bit_or<uint32_t>(), 0, [](uint32_t x) { return x & 0xff00ffu; })),
      warp<redux_xor>("redux_xor", folded(std::bit_xor<uint32_t>(), 0)),
      warp<redux_masked>("redux_masked", redux_of_group),
      warp<vote_masked>("vote_masked", votes_of_group),
      warp<elect>(
          "elect", [](Words, int lane) { return uint32_t(lane == 0); }, 90),
      warp<elect_masked>(
          "elect_masked", [](Words, int lane) { return uint32_t(lane == 9); }, 90),
  };
}

Case block_words() {
  Case c = warp<block_sum_words>("block_sum_words", nullptr);
  c.expect = [](Words in, int) {
    const uint32_t sum = std::accumulate(in.begin(), in.end(), 0u);
    return std::vector<Expected>(kThreads, {3 * sum + uint32_t(kThreads)});
  };
  return c;
}

// The primitives of device/reduce.cuh.
std::vector<Case> reduce_cases() {
  return {
      warp<warp_sum_float>("warp_sum_float", float_sum(32)),
      warp<warp_max_float>("warp_max_float", max_float),
      warp<warp_reduce_group>("warp_reduce_group", float_sum(8)),
      warp<warp_reduce_down_first>("warp_reduce_down_first", float_sum(32)),
      warp<warp_exchange_words>("warp_exchange_words",
                                [](Words x, int lane) { return 2 * x[size_t(lane ^ 5)] + 1; }),
      warp<warp_broadcast_21>("warp_broadcast_21",
                              [](Words x, int) { return bit_cast<uint32_t>(number(x[21])); }),
      warp<warp_all_nonzero>("warp_all_nonzero", all_nonzero),
      warp<warp_any_zero>("warp_any_zero", any_zero),
      block_words(),
      block<block_sum_float>("block_sum_float", std::plus<float>(), 0),
      block<block_max_float>(
          "block_max_float", [](float a, float b) { return std::max(a, b); }, -2000),
  };
}

}  // namespace

std::vector<Case> warp_cases() {
  std::vector<Case> cases = shuffle_cases();
  for (const auto& more : {vote_cases(), reduce_cases()})
    cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

}  // namespace tensorcraft::test
