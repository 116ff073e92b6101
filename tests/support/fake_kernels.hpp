// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/driver.hpp"

namespace tensorcraft::test {

// The fake driver's calls that load kernels, ask about them and launch them.
void fill_kernel_calls(cuda::Driver& table);
// Handles of kernels are no longer valid.
void forget_kernels();

}  // namespace tensorcraft::test
