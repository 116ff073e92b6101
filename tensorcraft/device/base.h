// SPDX-License-Identifier: Apache-2.0
#pragma once
// Included by every device file: integer types, qualifiers, bit_cast and div_ceil for nvcc,
// NVRTC and a plain C++20 compiler. It includes no other file of ours.
#if defined(__CUDACC_RTC__)
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
#else
#include <cstddef>
#include <cstdint>
#endif

// TC_PTX: a CUDA compiler reads this text, so CUDA's own words exist.
// TC_COLD: a function that is called rarely, so a kernel holds it once and apart.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define TC_PTX 1
#define TC_DEVICE __device__ __forceinline__
#define TC_HOST_DEVICE __host__ __device__ __forceinline__
#define TC_COLD static __device__ __noinline__
#else
#define TC_PTX 0
#define TC_DEVICE inline
#define TC_HOST_DEVICE inline
#define TC_COLD inline
#endif

namespace tensorcraft {

// The value whose bytes are those of x.
template <class To, class From>
TC_HOST_DEVICE constexpr To bit_cast(const From& x) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast needs two types of one size");
  return __builtin_bit_cast(To, x);
}

// a / b rounded up, for integers a >= 0 and b > 0 of any two types; the result has their common
// type. Correct up to the largest value, for which a + b - 1 would overflow.
template <class A, class B>
TC_HOST_DEVICE constexpr auto div_ceil(A a, B b) {
  static_assert(A(1) / A(2) == A(0) && B(1) / B(2) == B(0), "div_ceil takes integers");
  return a / b + (a % b != 0);
}

// a rounded up to a multiple of b.
template <class A, class B>
TC_HOST_DEVICE constexpr auto round_up(A a, B b) {
  return div_ceil(a, b) * b;
}

// A if `first` is true, else B: device text has no <type_traits>.
namespace detail {
template <bool first, class A, class B>
struct SelectType {
  using type = A;
};
template <class A, class B>
struct SelectType<false, A, B> {
  using type = B;
};
}  // namespace detail
template <bool first, class A, class B>
using Select = typename detail::SelectType<first, A, B>::type;

template <class A, class B>
inline constexpr bool kAreSame = false;
template <class A>
inline constexpr bool kAreSame<A, A> = true;

// The params of a kernel: the P of its rung's `void run(const P&)`, from the type of &Rung::run.
namespace detail {
template <class Function>
struct ParamsType;
template <class P>
struct ParamsType<void (*)(const P&)> {
  using type = P;
};
}  // namespace detail
// As what a P is passed; rows.h has parameters that are passed as something else.
template <class P>
struct Passed {
  using type = P;
};
template <class Function>
using KernelParams = typename Passed<typename detail::ParamsType<Function>::type>::type;

// Does a rung wait for the kernels before it itself (begin_kernel()), after what needs no memory?
template <class Rung>
inline constexpr bool kBeginsItself = requires { Rung::begins_itself; };

}  // namespace tensorcraft
