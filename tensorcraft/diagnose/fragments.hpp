// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/device.hpp"

#include <string>
#include <vector>

// Which element of a matrix each register of a lane holds in the tensor-core instructions: mma.sync
// (f16, bf16, tf32, e4m3, s8), WMMA 16x16x8 tf32 and 16x16x16 f16, ldmatrix and wgmma. The emulator
// computes by these maps.
namespace tensorcraft::diagnose {

// The maps as text, one table an operand: a line for each row of the matrix, in it the registers
// that hold the row's elements from left to right, "13.a0" being register a0 of lane 13. Operand B
// is shown by columns.
std::string describe_fragments();

// An instruction's maps against what it did.
struct FragmentCheck {
  std::string instruction;
  int registers = 0;  // compared
  int wrong = 0;      // of these, hold something else than the map says
  std::string first;  // of them, as text
};

// Runs each instruction with numbered or random elements on a CUDA device, or with any other device
// on the emulator, and compares each register. What the device does not have is left out. Throws as
// a launch does if the device cannot be used.
std::vector<FragmentCheck> verify_fragments(Device device);

}  // namespace tensorcraft::diagnose
