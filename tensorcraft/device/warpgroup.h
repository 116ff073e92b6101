// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

// Threads of a warpgroup, and the rows of a wgmma instruction.
inline constexpr int kWarpgroup = 128, kGroupRows = 64;

}  // namespace tensorcraft
