// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/launch.hpp"
#include "tests/wrappers/kernels/params.h"

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

// One case runs one wrapper, or one use of it, on many inputs: a kernel of tests/wrappers/kernels/,
// compiled by the host compiler for SIMT and by the library's JIT for a GPU.
namespace tensorcraft::test {

using Random = std::mt19937;
using Words = std::span<const uint32_t>;

// What one word of the output must be: these bits, or a float this close to them. NaN and infinity
// have no tolerance.
struct Expected {
  uint32_t bits = 0;
  double tolerance = 0;
};

struct Case {
  std::string name;                               // of the kernel function in tensorcraft::test
  std::string header;                             // its file in tests/wrappers/kernels/
  int sm = 80;                                    // the lowest architecture that has the wrapper
  int threads = 32, in_words = 0, out_words = 0;  // of a block
  int blocks = 64;
  uint32_t shared_bytes = 0;
  // The kernel on SIMT for all blocks.
  std::function<void(const Case&, const std::vector<uint32_t>& in, std::vector<uint32_t>& out)>
      simt;
  // The input of one block; each third block (0, 1, 2) has exact, random and special values.
  std::function<void(Random&, int block, std::span<uint32_t> in)> fill;
  // What a block gives, by an obvious computation of its own.
  std::function<std::vector<Expected>(Words in, int block)> expect;
};

// Runs a kernel function of a header that the host compiler has read.
template <void (*kKernel)(const Params&)>
void on_simt(const Case& c, const std::vector<uint32_t>& in, std::vector<uint32_t>& out) {
  const Params params{in.data(), out.data(), c.in_words, c.out_words};
  simt::launch(
      {.name = c.name,
       .grid = {unsigned(c.blocks)},
       .block = {unsigned(c.threads)},
       .shared_bytes = c.shared_bytes},
      [](const void* p) { kKernel(*static_cast<const Params*>(p)); }, &params);
}

std::vector<Case> convert_cases();
std::vector<Case> mma_cases();
std::vector<Case> matrix_cases();
std::vector<Case> warp_cases();
std::vector<Case> atomic_cases();
std::vector<Case> wgmma_cases();

}  // namespace tensorcraft::test
