// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/driver.hpp"

namespace tensorcraft::test {

// The fake driver's calls that record work of a stream and launch it.
void fill_graph_calls(cuda::Driver& table);

}  // namespace tensorcraft::test
