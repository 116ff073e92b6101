// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/im2col_tensor.hpp"
#include "tensorcraft/cuda/launch.hpp"
#include "tensorcraft/simt/launch.hpp"
#include "tests/wrappers/kernels/params.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

// One case runs one wrapper, or one use of it, on many inputs: a kernel of tests/wrappers/kernels/,
// compiled by the host compiler for the emulator and by the library's JIT for a GPU.
namespace tensorcraft::test {

using Random = std::mt19937;
using Words = std::span<const uint32_t>;

// Says what one word of the output must be: these bits, or a float this close to them. NaN and
// infinity have no tolerance.
struct Expected {
  uint32_t bits = 0;
  double tolerance = 0;
};

// A tensor in each block's words of `in` (or, if the kernel writes it, of `out`) from this word on;
// its address is filled in. `windows`: the map is of windows over it, else of boxes.
struct CaseTensor {
  TiledTensor tensor;
  bool written = false;
  size_t word = 0;
  std::optional<Im2colTensor> windows = {};
};

struct Case {
  std::string name;                               // of the kernel function in tensorcraft::test
  std::string header;                             // its file in tests/wrappers/kernels/
  int sm = 80;                                    // the lowest architecture that has the wrapper
  int threads = 32, in_words = 0, out_words = 0;  // of a block
  int blocks = 64;
  uint32_t shared_bytes = 0;
  // If it has more than one block, all that is said of a block means a cluster.
  Index3 cluster;
  std::optional<CaseTensor> tensor;  // each block is then a launch of its own
  int launches = 1;  // one after another into the same `out`; each may begin before the last ends
  // The kernel on the emulator for all blocks.
  std::function<void(const Case&, const std::vector<uint32_t>& in, std::vector<uint32_t>& out)>
      simt;
  // The input of one block; each third block (0, 1, 2) has exact, random and special values.
  std::function<void(Random&, int block, std::span<uint32_t> in)> fill;
  // Returns what a block gives, by an obvious computation of its own.
  std::function<std::vector<Expected>(Words in, int block)> expect;
};

// A `fill` of any bits.
inline void random_words(Random& random, int, std::span<uint32_t> in) {
  for (uint32_t& word : in) word = uint32_t(random());
}

// `out` begins as bytes 0xdd. The body is a kernel function of a header that the host compiler has
// read.
void run_on_simt(const Case& c, simt::Body body, const std::vector<uint32_t>& in,
                 std::vector<uint32_t>& out);
void run_on_gpu(const Case& c, const LoadedKernel& kernel, const std::vector<uint32_t>& in,
                std::vector<uint32_t>& out);

template <void (*kKernel)(const Params&)>
void on_simt(const Case& c, const std::vector<uint32_t>& in, std::vector<uint32_t>& out) {
  run_on_simt(c, [](const void* p) { kKernel(*static_cast<const Params*>(p)); }, in, out);
}

std::vector<Case> convert_cases();
std::vector<Case> mma_cases();
std::vector<Case> wmma_cases();
std::vector<Case> matrix_cases();
std::vector<Case> warp_cases();
std::vector<Case> atomic_cases();
std::vector<Case> wgmma_cases();
std::vector<Case> layout_cases();
std::vector<Case> async_copy_cases();
std::vector<Case> barrier_cases();
std::vector<Case> order_cases();
std::vector<Case> cluster_cases();
std::vector<Case> bulk_cases();
std::vector<Case> tma_cases();
const std::vector<Case>& cases();  // all of these

}  // namespace tensorcraft::test
