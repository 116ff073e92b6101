// SPDX-License-Identifier: Apache-2.0
// features.h under compilers that this file pretends to be.
#define __CUDACC_VER_MAJOR__ 11
#define __CUDA_ARCH__ 860
#include "tensorcraft/device/features.h"

#include <gtest/gtest.h>

static_assert(TC_CPP17 && TC_CPP20 && TC_CPP23 == (__cplusplus >= 202302L));
static_assert(TC_CUDA_11 && !TC_CUDA_12 && !TC_CUDA_13);
static_assert(TC_HAS_WMMA && !TC_HAS_TMA && !TC_HAS_WGMMA && !TC_HAS_FP8);
static_assert(TC_ARCH_VOLTA && TC_ARCH_AMPERE && !TC_ARCH_HOPPER);

namespace {

// A macro names another, so what they say changes with the compiler that reads them.
#undef __CUDACC_VER_MAJOR__
#undef __CUDA_ARCH__
#define __CUDACC_VER_MAJOR__ 12
static_assert(TC_CUDA_11 && TC_CUDA_12 && !TC_CUDA_13 && TC_HAS_TMA && TC_HAS_WGMMA && TC_HAS_FP8);
#undef __CUDACC_VER_MAJOR__
#define __CUDACC_VER_MAJOR__ 13
static_assert(TC_CUDA_13);
#undef __CUDACC_VER_MAJOR__
#define __CUDACC_VER_MAJOR__ 10
static_assert(!TC_CUDA_11 && !TC_HAS_WMMA);
#define __CUDA_ARCH__ 900
static_assert(TC_ARCH_HOPPER && TC_ARCH_AMPERE);
#undef __CUDA_ARCH__
#define __CUDA_ARCH__ 750
static_assert(TC_ARCH_VOLTA && !TC_ARCH_AMPERE);

TEST(Features, FollowTheCompiler) { SUCCEED(); }  // the assertions above are the test

}  // namespace
