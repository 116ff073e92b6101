// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/wgmma.cuh"
#if !TC_PTX
#include "tensorcraft/device/host.h"
#endif

// Matrix instructions of a warpgroup: 4 warps, the first of a rank divisible by 4, all their
// threads converged (sm_90a). They run beside the threads: between wgmma_fence() before the first
// and wgmma_wait_group() after the last, nothing else touches their registers.
// With g = lane / 4 and t = 2 (lane % 4), warp w of the four holds of D for each 8 columns j:
//   d[4 j + 0, 1]: row 16 w + g, columns 8 j + t and the next; d[4 j + 2, 3]: row 16 w + g + 8
// and of A in registers the rows 16 w to 16 w + 15 as device/ptx/mma.cuh describes its operand A.
namespace tensorcraft::ptx {

// wgmma.fence.sync.aligned: what the threads did to D's and A's registers comes before the wgmma
// that follow. Needed before the first and whenever a thread has touched them, but for a chain on
// one D.
TC_DEVICE void wgmma_fence() {
#if TC_PTX
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#else
  simt::wgmma_fence();
#endif
}

// wgmma.commit_group.sync.aligned: those issued so far and in no group make one.
TC_DEVICE void wgmma_commit_group() {
#if TC_PTX
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
  simt::wgmma_commit_group();
#endif
}

// wgmma.wait_group.sync.aligned: all groups but the last kPending are complete.
template <int kPending>
TC_DEVICE void wgmma_wait_group() {
  static_assert(kPending >= 0 && kPending <= 7);
#if TC_PTX
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
#else
  simt::wgmma_wait_group(kPending);
#endif
}

// After a wait: the compiler reads these registers of D after this line only, not before the wait.
template <int kCount>
TC_DEVICE void wgmma_landed(float (&d)[kCount]) {
#if TC_PTX
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
#else
  (void)d;
#endif
}
template <int kCount>
TC_DEVICE void wgmma_landed(int32_t (&d)[kCount]) {
#if TC_PTX
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(d[i])::"memory");
#else
  (void)d;
#endif
}

// For A in registers: until here the compiler keeps them as they are.
template <int kCount>
TC_DEVICE void wgmma_landed(uint32_t (&a)[kCount]) {
#if TC_PTX
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(a[i])::"memory");
#else
  (void)a;
#endif
}

#if TC_PTX
namespace detail {
// Arrays of char, as the constraint "C" of asm wants: they become part of the instruction's text.
template <WgmmaType>
struct WgmmaTypeText;
template <>
struct WgmmaTypeText<WgmmaType::f16> {
  static constexpr char k[] = "k16.f32", type[] = ".f16";
};
template <>
struct WgmmaTypeText<WgmmaType::bf16> {
  static constexpr char k[] = "k16.f32", type[] = ".bf16";
};
template <>
struct WgmmaTypeText<WgmmaType::tf32> {
  static constexpr char k[] = "k8.f32", type[] = ".tf32";
};
template <>
struct WgmmaTypeText<WgmmaType::e4m3> {
  static constexpr char k[] = "k32.f32", type[] = ".e4m3";
};
template <>
struct WgmmaTypeText<WgmmaType::e5m2> {
  static constexpr char k[] = "k32.f32", type[] = ".e5m2";
};
template <>
struct WgmmaTypeText<WgmmaType::s8> {
  static constexpr char k[] = "k32.s32", type[] = ".s8";
};

// The operands behind scale-d: of floats the signs of A and B, and, if they have a choice, their
// majors.
template <Wgmma Op, bool kARegisters, bool kInteger = is_integer(Op)>
struct WgmmaFlags {
  static constexpr char text[] = {' ', 0};
};
template <Wgmma Op, bool kARegisters>
struct WgmmaFlags<Op, kARegisters, false> {
  static constexpr bool b_choice = element_bytes(Op.b) == 2, a_choice = b_choice && !kARegisters;
  static constexpr char text[] = {',',
                                  Op.negate_a ? '-' : ' ',
                                  '1',
                                  ',',
                                  Op.negate_b ? '-' : ' ',
                                  '1',
                                  a_choice ? ',' : ' ',
                                  a_choice ? char('0' + int(Op.a_major)) : ' ',
                                  b_choice ? ',' : ' ',
                                  b_choice ? char('0' + int(Op.b_major)) : ' ',
                                  0};
};
}  // namespace detail

// asm takes no lists made by templates, so these macros hold the registers of D: their numbers in
// the text, each list beginning with the shorter one, and the operands.
#define TC_D4 "%0, %1, %2, %3"
#define TC_D8 TC_D4 ", %4, %5, %6, %7"
#define TC_D16 TC_D8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define TC_D24 TC_D16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define TC_D32 TC_D24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define TC_D40 TC_D32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define TC_D48 TC_D40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define TC_D56 TC_D48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define TC_D64 TC_D56 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define TC_D72 TC_D64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define TC_D80 TC_D72 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define TC_D88 TC_D80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define TC_D96 TC_D88 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define TC_D104 TC_D96 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define TC_D112 TC_D104 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define TC_D120 TC_D112 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define TC_D128 TC_D120 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define TC_OPERANDS4(c, i) c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3])
#define TC_OPERANDS8(c, i) TC_OPERANDS4(c, i), TC_OPERANDS4(c, i + 4)
#define TC_OPERANDS16(c, i) TC_OPERANDS8(c, i), TC_OPERANDS8(c, i + 8)
#define TC_OPERANDS24(c, i) TC_OPERANDS16(c, i), TC_OPERANDS8(c, i + 16)
#define TC_OPERANDS32(c, i) TC_OPERANDS24(c, i), TC_OPERANDS8(c, i + 24)
#define TC_OPERANDS40(c, i) TC_OPERANDS32(c, i), TC_OPERANDS8(c, i + 32)
#define TC_OPERANDS48(c, i) TC_OPERANDS40(c, i), TC_OPERANDS8(c, i + 40)
#define TC_OPERANDS56(c, i) TC_OPERANDS48(c, i), TC_OPERANDS8(c, i + 48)
#define TC_OPERANDS64(c, i) TC_OPERANDS56(c, i), TC_OPERANDS8(c, i + 56)
#define TC_OPERANDS72(c, i) TC_OPERANDS64(c, i), TC_OPERANDS8(c, i + 64)
#define TC_OPERANDS80(c, i) TC_OPERANDS72(c, i), TC_OPERANDS8(c, i + 72)
#define TC_OPERANDS88(c, i) TC_OPERANDS80(c, i), TC_OPERANDS8(c, i + 80)
#define TC_OPERANDS96(c, i) TC_OPERANDS88(c, i), TC_OPERANDS8(c, i + 88)
#define TC_OPERANDS104(c, i) TC_OPERANDS96(c, i), TC_OPERANDS8(c, i + 96)
#define TC_OPERANDS112(c, i) TC_OPERANDS104(c, i), TC_OPERANDS8(c, i + 104)
#define TC_OPERANDS120(c, i) TC_OPERANDS112(c, i), TC_OPERANDS8(c, i + 112)
#define TC_OPERANDS128(c, i) TC_OPERANDS120(c, i), TC_OPERANDS8(c, i + 120)

// The arguments after n are the numbers of the operands that follow D.
#define TC_WGMMA_TEXT(registers, n_text, a, b, scale_d, k_text, a_type, b_type, flags) \
  "{ .reg .pred p; setp.ne.b32 p, " scale_d                                            \
  ", 0; "                                                                              \
  "wgmma.mma_async.sync.aligned.m64n" n_text k_text a_type b_type " {" TC_D##registers \
      "}, " a ", " b ", p" flags "; }"
#define TC_WGMMA_STRINGS(registers)                                            \
  "C"(detail::WgmmaTypeText<Op.a>::k), "C"(detail::WgmmaTypeText<Op.a>::type), \
      "C"(detail::WgmmaTypeText<Op.b>::type), "C"(detail::WgmmaFlags<Op, registers>::text)
#define TC_WGMMA_SS(registers, n_text, a, b, scale_d, k_text, a_type, b_type, flags)            \
  if constexpr (Op.n == 2 * registers && !is_integer(Op))                                       \
    asm volatile(TC_WGMMA_TEXT(registers, n_text, a, b, scale_d, k_text, a_type, b_type, flags) \
                 : TC_OPERANDS##registers("+f", 0)                                              \
                 : "l"(a_descriptor), "l"(b_descriptor), "r"(int(accumulate)),                  \
                   TC_WGMMA_STRINGS(false));                                                    \
  if constexpr (Op.n == 2 * registers && is_integer(Op))                                        \
  asm volatile(TC_WGMMA_TEXT(registers, n_text, a, b, scale_d, k_text, a_type, b_type, flags)   \
               : TC_OPERANDS##registers("+r", 0)                                                \
               : "l"(a_descriptor), "l"(b_descriptor), "r"(int(accumulate)),                    \
                 TC_WGMMA_STRINGS(false))
#define TC_WGMMA_RS(registers, n_text, a0, a1, a2, a3, b, scale_d, k_text, a_type, b_type, flags) \
  if constexpr (Op.n == 2 * registers)                                                            \
  asm volatile(TC_WGMMA_TEXT(registers, n_text, "{" a0 ", " a1 ", " a2 ", " a3 "}", b, scale_d,   \
                             k_text, a_type, b_type, flags)                                       \
               : TC_OPERANDS##registers("+f", 0)                                                  \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b_descriptor),                   \
                 "r"(int(accumulate)), TC_WGMMA_STRINGS(true))
#endif

namespace detail {
TC_HOST_DEVICE constexpr bool has_wgmma_text(int n) {
  return n == 8 || (n >= 16 && n <= 256 && n % 16 == 0);
}
}  // namespace detail

// wgmma.mma_async.sync.aligned, both operands in shared memory: D = A B + D, or A B if `accumulate`
// is false; float, or int32_t of s8. The descriptors come from wgmma_descriptor().
template <Wgmma Op, class Sum>
TC_DEVICE void wgmma_mma_async(Sum (&d)[Op.n / 2], uint64_t a_descriptor, uint64_t b_descriptor,
                               bool accumulate) {
  static_assert(is_valid(Op), "no wgmma has this shape, these types or these majors");
  static_assert(sizeof(Sum) == 4 && (Sum(0.5f) == 0) == is_integer(Op), "D is float or int32_t");
  static_assert(detail::has_wgmma_text(Op.n), "n is 8 or a multiple of 16 up to 256");
#if TC_PTX
  TC_WGMMA_SS(4, "8", "%4", "%5", "%6", "%7", "%8", "%9", "%10");
  TC_WGMMA_SS(8, "16", "%8", "%9", "%10", "%11", "%12", "%13", "%14");
  TC_WGMMA_SS(16, "32", "%16", "%17", "%18", "%19", "%20", "%21", "%22");
  TC_WGMMA_SS(24, "48", "%24", "%25", "%26", "%27", "%28", "%29", "%30");
  TC_WGMMA_SS(32, "64", "%32", "%33", "%34", "%35", "%36", "%37", "%38");
  TC_WGMMA_SS(40, "80", "%40", "%41", "%42", "%43", "%44", "%45", "%46");
  TC_WGMMA_SS(48, "96", "%48", "%49", "%50", "%51", "%52", "%53", "%54");
  TC_WGMMA_SS(56, "112", "%56", "%57", "%58", "%59", "%60", "%61", "%62");
  TC_WGMMA_SS(64, "128", "%64", "%65", "%66", "%67", "%68", "%69", "%70");
  TC_WGMMA_SS(72, "144", "%72", "%73", "%74", "%75", "%76", "%77", "%78");
  TC_WGMMA_SS(80, "160", "%80", "%81", "%82", "%83", "%84", "%85", "%86");
  TC_WGMMA_SS(88, "176", "%88", "%89", "%90", "%91", "%92", "%93", "%94");
  TC_WGMMA_SS(96, "192", "%96", "%97", "%98", "%99", "%100", "%101", "%102");
  TC_WGMMA_SS(104, "208", "%104", "%105", "%106", "%107", "%108", "%109", "%110");
  TC_WGMMA_SS(112, "224", "%112", "%113", "%114", "%115", "%116", "%117", "%118");
  TC_WGMMA_SS(120, "240", "%120", "%121", "%122", "%123", "%124", "%125", "%126");
  TC_WGMMA_SS(128, "256", "%128", "%129", "%130", "%131", "%132", "%133", "%134");
#else
  simt::wgmma_mma_async(reinterpret_cast<float*>(d), Op, a_descriptor, b_descriptor, accumulate);
#endif
}

// A product with A, k-major, in registers.
template <Wgmma Op>
TC_DEVICE void wgmma_mma_async(float (&d)[Op.n / 2], const uint32_t (&a)[4], uint64_t b_descriptor,
                               bool accumulate) {
  static_assert(is_valid(Op) && Op.a_major == Major::k, "no wgmma has this shape or these types");
  static_assert(detail::has_wgmma_text(Op.n), "n is 8 or a multiple of 16 up to 256");
#if TC_PTX
  TC_WGMMA_RS(4, "8", "%4", "%5", "%6", "%7", "%8", "%9", "%10", "%11", "%12", "%13");
  TC_WGMMA_RS(8, "16", "%8", "%9", "%10", "%11", "%12", "%13", "%14", "%15", "%16", "%17");
  TC_WGMMA_RS(16, "32", "%16", "%17", "%18", "%19", "%20", "%21", "%22", "%23", "%24", "%25");
  TC_WGMMA_RS(24, "48", "%24", "%25", "%26", "%27", "%28", "%29", "%30", "%31", "%32", "%33");
  TC_WGMMA_RS(32, "64", "%32", "%33", "%34", "%35", "%36", "%37", "%38", "%39", "%40", "%41");
  TC_WGMMA_RS(40, "80", "%40", "%41", "%42", "%43", "%44", "%45", "%46", "%47", "%48", "%49");
  TC_WGMMA_RS(48, "96", "%48", "%49", "%50", "%51", "%52", "%53", "%54", "%55", "%56", "%57");
  TC_WGMMA_RS(56, "112", "%56", "%57", "%58", "%59", "%60", "%61", "%62", "%63", "%64", "%65");
  TC_WGMMA_RS(64, "128", "%64", "%65", "%66", "%67", "%68", "%69", "%70", "%71", "%72", "%73");
  TC_WGMMA_RS(72, "144", "%72", "%73", "%74", "%75", "%76", "%77", "%78", "%79", "%80", "%81");
  TC_WGMMA_RS(80, "160", "%80", "%81", "%82", "%83", "%84", "%85", "%86", "%87", "%88", "%89");
  TC_WGMMA_RS(88, "176", "%88", "%89", "%90", "%91", "%92", "%93", "%94", "%95", "%96", "%97");
  TC_WGMMA_RS(96, "192", "%96", "%97", "%98", "%99", "%100", "%101", "%102", "%103", "%104",
              "%105");
  TC_WGMMA_RS(104, "208", "%104", "%105", "%106", "%107", "%108", "%109", "%110", "%111", "%112",
              "%113");
  TC_WGMMA_RS(112, "224", "%112", "%113", "%114", "%115", "%116", "%117", "%118", "%119", "%120",
              "%121");
  TC_WGMMA_RS(120, "240", "%120", "%121", "%122", "%123", "%124", "%125", "%126", "%127", "%128",
              "%129");
  TC_WGMMA_RS(128, "256", "%128", "%129", "%130", "%131", "%132", "%133", "%134", "%135", "%136",
              "%137");
#else
  simt::wgmma_mma_async(d, Op, a, b_descriptor, accumulate);
#endif
}

}  // namespace tensorcraft::ptx
