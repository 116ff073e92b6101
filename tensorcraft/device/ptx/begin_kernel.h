// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tensorcraft::ptx {

// The statement of begin_kernel() as text: a generated entry begins with it, and includes no header
// but its rung's.
inline constexpr char kBeginKernel[] =
    R"(asm volatile("griddepcontrol.wait; griddepcontrol.launch_dependents;" ::: "memory");)";

}  // namespace tensorcraft::ptx
