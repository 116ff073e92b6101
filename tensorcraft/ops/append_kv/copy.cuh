// SPDX-License-Identifier: Apache-2.0
#pragma once
// The step in front of a rung if the tokens do not go into the cache itself.
#include "tensorcraft/device/copy.cuh"

namespace tensorcraft::kernel::append_kv {

using kernel::Copy;
using kernel::CopyConfig;
using kernel::CopyParams;

}  // namespace tensorcraft::kernel::append_kv
