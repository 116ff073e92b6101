// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tiled_tensor.hpp"
#include "tensorcraft/device/tensor_map.h"
#include "tensorcraft/simt/launch.hpp"

#include <span>

// Faults planted in small kernels that follow the rungs, each with its corrected twin. The table
// drives the tests and the list in docs/simt.md.
namespace tensorcraft::test {

constexpr int kFaultValues = 1024;

struct FaultParams {
  const float* in;  // kFaultValues: 1, 2, 3, ...
  float* out;       // kFaultValues, NaN
  TensorMap map;    // `in` as 32 x 32, boxes of 32 x 8 with the 128-byte swizzle
};

using FaultKernel = void (*)(const FaultParams& p, bool fault);

struct Fault {
  const char* name;
  const char* pattern;  // the place of such code
  FaultKernel kernel;
  Index3 block{32};
  Index3 cluster{1};  // and the grid
  size_t shared_bytes = 0;
  // The report must say `any` in every build, but `asan` or `race` if ASan or the race build say
  // something else; null if a build does not find it. "wrong result" stands for values that differ
  // from the twin's.
  const char* any = nullptr;
  const char* asan = any;
  const char* race = any;
};

std::span<const Fault> thread_faults();
std::span<const Fault> copy_faults();
std::span<const Fault> hopper_faults();

}  // namespace tensorcraft::test
