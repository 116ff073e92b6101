// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string_view>

namespace tensorcraft::jit {

// The instructions in a cubin, without symbols and tables; 0 for PTX and for bytes that are no
// cubin.
size_t machine_code_bytes(std::string_view image);

// Has a cubin for sm_90 an instruction that no GPU has, which ends the process's use of CUDA? ptxas
// of CUDA 13.0 writes one for some cp.async by a policy of the L2 cache whose shared address it
// takes for an offset from a uniform register.
bool has_broken_copies(std::string_view image);

}  // namespace tensorcraft::jit
