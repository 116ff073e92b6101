// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "bench/case.hpp"

namespace tensorcraft::bench {

// Runs a case on a device twice, the second time in a ProfiledRange, when nothing of it is compiled
// or allocated any more: what a profiler starts. Kind key, value or unsupported as the call has it.
void run_profiled(const Case& c, Device device);

}  // namespace tensorcraft::bench
