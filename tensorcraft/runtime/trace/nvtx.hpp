// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

// Ranges of NVTX, which NVIDIA's profilers show beside what a GPU does.
namespace tensorcraft::nvtx {

// Does a profiler listen? Those that start a program, such as nsys and ncu, name their library in
// the variable NVTX_INJECTION64_PATH. Asked once; false in a build without the headers of NVTX.
bool is_listening();
// Opens a range of this thread, which the next pop() closes; ranges nest.
void push(const std::string& name) noexcept;
void pop() noexcept;

}  // namespace tensorcraft::nvtx
