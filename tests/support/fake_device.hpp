// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/driver.hpp"

namespace tensorcraft::test {

// The fake driver's calls about devices and their contexts.
void fill_device_calls(cuda::Driver& table);

}  // namespace tensorcraft::test
