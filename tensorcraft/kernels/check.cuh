// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/check.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/features.h"

#if !defined(__CUDACC__)
#error \
    "tensorcraft/kernels/*.cuh needs nvcc; without it link tensorcraft::tensorcraft, which compiles kernels itself"
#endif
#include <cuda_runtime_api.h>

#include <stdexcept>

static_assert(TC_CPP20, "the launchers need nvcc -std=c++20");

// TC_CUDA_CHECK(call) throws std::runtime_error "file:line CUDA error: text" if a call of the CUDA
// runtime fails; TC_CUDA_CHECK_LAST() does so for the last error, a launch's for one.
#define TC_CUDA_CHECK(...) ::tensorcraft::kernels::check_cuda((__VA_ARGS__), __FILE__, __LINE__)
#define TC_CUDA_CHECK_LAST() TC_CUDA_CHECK(cudaGetLastError())

namespace tensorcraft::kernels {

// The function behind the two macros.
inline void check_cuda(cudaError_t status, const char* file, long line) {
  if (status != cudaSuccess) [[unlikely]]
    throw std::runtime_error(join(file, ':', line, " CUDA error: ", cudaGetErrorString(status)));
}

// The library's checks of this name, by the CUDA runtime: of a status, and of the last error.
inline void RuntimeDeviceCheck(cudaError_t status, DebugInfo where = {}) {
  check_cuda(status, where.file_name(), long(where.line()));
}
inline void RuntimeDeviceCheck(DebugInfo where = {}) {
  RuntimeDeviceCheck(cudaGetLastError(), where);
}

}  // namespace tensorcraft::kernels
