// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/host.h"

#include <array>

namespace tensorcraft::simt {

// Each lane of a warp passes one to a warp-wide instruction; null for lanes that take no part.
using LaneArguments = std::array<void*, 32>;

// An instruction that lanes of a warp execute together: each passes its own argument, the last to
// come runs `body` once for all, then all go on. Exited lanes are not waited for.
struct WarpInstruction {
  const char* name;            // "mma.sync.m16n8k16", for reports
  bool whole_warp = false;     // all 32 lanes must take part, else it is reported
  bool orders_memory = false;  // what the lanes did before is ordered before what they do after
};
void warp_collective(const WarpInstruction& instruction, unsigned mask, void* argument,
                     void (*body)(const LaneArguments& lanes), const SourceLine& line);

}  // namespace tensorcraft::simt
