// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tensorcraft::simt {

// Whether this library's kernels are compiled with -fsanitize=address. Those that are compiled
// later are too, or they would miss what the others see.
bool is_asan_library();

}  // namespace tensorcraft::simt
