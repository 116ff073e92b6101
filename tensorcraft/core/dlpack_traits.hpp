// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/device.hpp"
#include "tensorcraft/core/dlpack.hpp"
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/float8.cuh"

#include <array>
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tensorcraft {

// `dtype_trait<T>::value` is the DLPack type of a C++ type; other types do not compile.
template <class T>
struct dtype_trait;
template <std::integral T>
struct dtype_trait<T> {
  static constexpr dlpack::DLDataType value = {std::is_same_v<T, bool> ? dlpack::kDLBool
                                               : std::is_signed_v<T>   ? dlpack::kDLInt
                                                                       : dlpack::kDLUInt,
                                               8 * sizeof(T), 1};
};
template <>
struct dtype_trait<float> {
  static constexpr dlpack::DLDataType value = {dlpack::kDLFloat, 32, 1};
};
template <>
struct dtype_trait<double> {
  static constexpr dlpack::DLDataType value = {dlpack::kDLFloat, 64, 1};
};
template <>
struct dtype_trait<f16> {
  static constexpr dlpack::DLDataType value = {dlpack::kDLFloat, 16, 1};
};
template <>
struct dtype_trait<bf16> {
  static constexpr dlpack::DLDataType value = {dlpack::kDLBfloat, 16, 1};
};
template <>
struct dtype_trait<e4m3> {
  static constexpr dlpack::DLDataType value = {dlpack::kDLFloat8_e4m3fn, 8, 1};
};
template <>
struct dtype_trait<e5m2> {
  static constexpr dlpack::DLDataType value = {dlpack::kDLFloat8_e5m2, 8, 1};
};

// The library's dtype of a C++ type; types that no tensor of the library holds (double, uint32_t,
// ...) do not compile.
template <class T>
consteval DType dtype_of() {
  constexpr dlpack::DLDataType d = dtype_trait<T>::value;
  constexpr bool is_int = d.code == dlpack::kDLInt;
  static_assert(d.bits != 64 || is_int, "no tensor holds this type");
  static_assert(d.code != dlpack::kDLUInt || d.bits == 8, "uint8 is the only unsigned dtype");
  if (d.code == dlpack::kDLFloat) return d.bits == 32 ? DType::float32 : DType::float16;
  if (d.code == dlpack::kDLBfloat) return DType::bfloat16;
  if (d.code == dlpack::kDLFloat8_e4m3fn) return DType::float8_e4m3fn;
  if (d.code == dlpack::kDLFloat8_e5m2) return DType::float8_e5m2;
  if (d.code == dlpack::kDLBool) return DType::bool_;
  if (d.code == dlpack::kDLUInt) return DType::uint8;
  return d.bits == 8    ? DType::int8
         : d.bits == 16 ? DType::int16
         : d.bits == 32 ? DType::int32
                        : DType::int64;
}

// The index that stands for every device of a type.
inline constexpr int32_t kAnyDeviceID = -1;

// `device_trait<Code>::value` is any device of a type.
template <dlpack::DLDeviceType Code>
struct device_trait {
  // With index kAnyDeviceID.
  static constexpr dlpack::DLDevice value = {Code, kAnyDeviceID};
};

// The DLPack types of C++ types, and any device of some types.
template <class... Ts>
inline constexpr std::array<dlpack::DLDataType, sizeof...(Ts)> kDTypeList = {
    dtype_trait<Ts>::value...};
template <dlpack::DLDeviceType... Codes>
inline constexpr std::array<dlpack::DLDevice, sizeof...(Codes)> kDeviceList = {
    device_trait<Codes>::value...};

// How a type of device is printed.
inline constexpr std::array<std::pair<dlpack::DLDeviceType, std::string_view>, 16>
    kDeviceStringMap = {{
        {dlpack::kDLCPU, "cpu"},
        {dlpack::kDLCUDA, "cuda"},
        {dlpack::kDLCUDAHost, "cuda_host"},
        {dlpack::kDLOpenCL, "opencl"},
        {dlpack::kDLVulkan, "vulkan"},
        {dlpack::kDLMetal, "metal"},
        {dlpack::kDLVPI, "vpi"},
        {dlpack::kDLROCM, "rocm"},
        {dlpack::kDLROCMHost, "rocm_host"},
        {dlpack::kDLExtDev, "ext_dev"},
        {dlpack::kDLCUDAManaged, "cuda_managed"},
        {dlpack::kDLOneAPI, "oneapi"},
        {dlpack::kDLWebGPU, "webgpu"},
        {dlpack::kDLHexagon, "hexagon"},
        {dlpack::kDLMAIA, "maia"},
        {dlpack::kDLTrn, "trn"},
    }};

// Prints "cuda:0", "cpu", "cuda" for any device of the type, "Unknown device: 99".
struct PrintableDevice {
  dlpack::DLDevice device;  // what is printed
};
// Writes it.
std::ostream& operator<<(std::ostream& out, PrintableDevice device);

// Prints "[1, 2, 3]".
template <class T>
struct PrintAbleSpan {
  // The printed values are borrowed.
  std::span<const T> values;
  explicit PrintAbleSpan(std::span<const T> v) : values(v) {}

  template <class Stream>
  friend Stream& operator<<(Stream& out, const PrintAbleSpan& span) {
    out << '[';
    for (size_t i = 0; i < span.values.size(); ++i) out << (i ? ", " : "") << span.values[i];
    out << ']';
    return out;
  }
};
template <class Range>
PrintAbleSpan(const Range& range) -> PrintAbleSpan<std::remove_cvref_t<decltype(*range.begin())>>;

}  // namespace tensorcraft
