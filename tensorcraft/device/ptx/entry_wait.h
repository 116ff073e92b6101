// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tensorcraft::ptx {

// The statement of griddepcontrol_wait() as text: a generated entry begins with it, and includes no
// header but its rung's.
inline constexpr char kEntryWait[] = "asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");";

}  // namespace tensorcraft::ptx
