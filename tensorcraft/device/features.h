// SPDX-License-Identifier: Apache-2.0
#pragma once
// Features of the compiler at hand, as 0 or 1, for #if and for code. A toolkit that has a type or
// an instruction says nothing of the GPU: DeviceInfo answers for that.
#define TC_CPP17 (__cplusplus >= 201703L)
#define TC_CPP20 (__cplusplus >= 202002L)
#define TC_CPP23 (__cplusplus >= 202302L)

#if defined(__CUDACC_VER_MAJOR__)
#define TC_CUDA_MAJOR __CUDACC_VER_MAJOR__
#else
#define TC_CUDA_MAJOR 0
#endif
#define TC_CUDA_11 (TC_CUDA_MAJOR >= 11)
#define TC_CUDA_12 (TC_CUDA_MAJOR >= 12)
#define TC_CUDA_13 (TC_CUDA_MAJOR >= 13)
#define TC_HAS_WMMA TC_CUDA_11
#define TC_HAS_TMA TC_CUDA_12
#define TC_HAS_WGMMA TC_CUDA_12
#define TC_HAS_FP8 TC_CUDA_12

// The architecture that device code is compiled for; 0 on the host.
#if defined(__CUDA_ARCH__)
#define TC_ARCH __CUDA_ARCH__
#else
#define TC_ARCH 0
#endif
#define TC_ARCH_VOLTA (TC_ARCH >= 700)
#define TC_ARCH_AMPERE (TC_ARCH >= 800)
#define TC_ARCH_HOPPER (TC_ARCH >= 900)
