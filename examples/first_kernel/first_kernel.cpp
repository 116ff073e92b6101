// SPDX-License-Identifier: Apache-2.0
// Turns each 64 of 256 numbers round, through shared memory: a kernel as CUDA has it, on the CPU.
// Compiled with -DWITHOUT=1 or -DWITHOUT=2 it lacks that barrier.
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/simt/launch.hpp"

#include <iostream>

using namespace tensorcraft;  // CUDA's words are in it: threadIdx, __syncthreads()

struct Params {
  const float* in;
  float* out;
};
struct Tile {
  float values[64];
};

TC_DEVICE void reverse(const Params& p) {
  auto& tile = static_shared<Tile>();  // one for the block: what CUDA calls __shared__
  const int i = threadIdx.x;
  for (int begin = 0; begin < 256; begin += 64) {
    tile.values[i] = p.in[begin + i];
#if WITHOUT != 1
    __syncthreads();  // 1: the tile is complete before a thread reads what others wrote
#endif
    p.out[begin + i] = tile.values[63 - i];
#if WITHOUT != 2
    __syncthreads();  // 2: all have read it before a thread writes the next
#endif
  }
}

void call(const void* params) { reverse(*static_cast<const Params*>(params)); }

int main() {
  float in[256], out[256];
  for (int i = 0; i < 256; ++i) in[i] = float(i);
  const Params params{in, out};
  try {
    simt::launch({.name = "reverse", .grid = {1}, .block = {64}}, call, &params);
  } catch (const Error& fault) {
    std::cout << fault.what() << '\n';
    return 1;
  }
  int wrong = 0;
  for (int i = 0; i < 256; ++i) wrong += out[i] != in[i / 64 * 64 + 63 - i % 64];
  std::cout << "out[0] = " << out[0] << ", " << wrong << " of 256 are wrong\n";
}
