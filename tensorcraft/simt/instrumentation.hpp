// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"

// How this library's kernels are compiled (cmake/simt.cmake). Those that are compiled later are
// compiled alike, or they would miss what the others see.
namespace tensorcraft::simt {

// With -fsanitize=address.
bool is_asan_library();
// With -fsanitize=thread: the library sees their accesses to shared memory.
bool is_race_library();
// Are kernels of the type compiled ahead? In an instrumented library those of float16 are not: they
// are bfloat16's, access by access and barrier by barrier, and would be a third of all that it
// compiles and runs.
bool compiles(DType type);

}  // namespace tensorcraft::simt
