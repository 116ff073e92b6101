// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/host/gemm.hpp"

#include <string>
#include <string_view>

// oneDNN 3, opened at run time: beside this library, in the lib folder of the Python environment
// this library is in, or where the loader finds it. Nothing links to it.
namespace tensorcraft::host::onednn {

bool available();
// "3.2.0"; empty if it is not available.
std::string_view version();
// Why not, as a sentence; empty if it is available.
std::string_view unavailable_reason();

// Why matmul() does not take the problem; null if it does. The first answer for a problem prepares
// its primitive, later ones are a look-up.
const char* declines(const GemmProblem& problem);

// Means the same as gemm(), and for int8 operands gives int32 sums in an int32 D. Products of
// float32 stay float32 (no bfloat16, no tf32). Fails with kind unsupported if declines() has a
// reason.
void matmul(const GemmProblem& problem);

}  // namespace tensorcraft::host::onednn
