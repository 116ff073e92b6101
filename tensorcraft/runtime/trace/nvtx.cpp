// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/trace/nvtx.hpp"

#include "tensorcraft/core/config.hpp"

#ifdef TENSORCRAFT_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace tensorcraft::nvtx {

#ifdef TENSORCRAFT_NVTX
bool is_listening() { return !config().profiler_library.empty(); }
void push(const std::string& name) noexcept { nvtxRangePushA(name.c_str()); }
void pop() noexcept { nvtxRangePop(); }
#else
bool is_listening() { return false; }
void push(const std::string&) noexcept {}
void pop() noexcept {}
#endif

}  // namespace tensorcraft::nvtx
