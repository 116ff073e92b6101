// SPDX-License-Identifier: Apache-2.0
#pragma once
// <source_location> for every compiler here. nvcc up to 12.1 does not announce consteval, and its
// front end loses the default argument of a consteval function: there the header is read with
// constexpr in its place.
#if defined(__CUDACC_VER_MAJOR__) && \
    __CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10 <= 12010
#pragma push_macro("__cpp_consteval")
#pragma push_macro("consteval")
#undef __cpp_consteval
#define __cpp_consteval 201811L  // NOLINT
#define consteval constexpr      // NOLINT
#include <source_location>
#pragma pop_macro("consteval")
#pragma pop_macro("__cpp_consteval")
#else
#include <source_location>
#endif
