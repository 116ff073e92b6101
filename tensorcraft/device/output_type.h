// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tensorcraft {

// The type that a kernel stores results as, if a call may ask for another type than the kernel's
// own. An integer of some bits keeps the low ones, so signed and unsigned types are one.
enum class OutputType : int { own, float32, float16, bfloat16, bits8, bits16, bits32, bits64 };

}  // namespace tensorcraft
