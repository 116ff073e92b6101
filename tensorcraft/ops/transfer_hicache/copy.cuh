// SPDX-License-Identifier: Apache-2.0
#pragma once
// The step in front of a rung if a transfer does not go into the cache itself.
#include "tensorcraft/device/copy.cuh"

namespace tensorcraft::kernel::transfer_hicache {

using kernel::Copy;
using kernel::CopyConfig;
using kernel::CopyParams;

}  // namespace tensorcraft::kernel::transfer_hicache
