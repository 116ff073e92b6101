// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/tensor_map.h"
#include "tensorcraft/kernels/check.cuh"

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstring>

// Tensor maps for launchers: the driver's function is found through the runtime, so nothing links
// the driver.
namespace tensorcraft::kernels {

namespace detail {

template <class T>
inline constexpr CUtensorMapDataType kMapType = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
template <>
inline constexpr CUtensorMapDataType kMapType<f16> = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
template <>
inline constexpr CUtensorMapDataType kMapType<bf16> = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

inline EncodeTiled find_encode_tiled() {
  constexpr const char* kName = "cuTensorMapEncodeTiled";
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  cudaGetDriverEntryPointByVersion(kName, &found, 12000, cudaEnableDefault, &result);
#else
  cudaGetDriverEntryPoint(kName, &found, cudaEnableDefault, &result);
#endif
  cudaGetLastError();  // the next check shall not see this error
  return result == cudaDriverEntryPointSuccess ? reinterpret_cast<EncodeTiled>(found) : nullptr;
}

// Drivers up to 13010 set a bit for small tensors that must be clear.
inline void clear_small_tensor_bit(TensorMap& map) {
  uint64_t word = 0;
  std::memcpy(&word, map.bytes + 8, sizeof(word));
  word &= ~(uint64_t(1) << 21);
  std::memcpy(map.bytes + 8, &word, sizeof(word));
}

}  // namespace detail

// A matrix of `count` lines, each `length` elements of T with unit stride and `line` elements
// behind the one before, or several of them, `next` elements apart, as boxes of 128 bytes by
// box_lines, swizzled. Throws Error of kind
// unsupported if the driver knows no tensor maps, std::runtime_error if it refuses.
template <class T>
TensorMap encode_lines(const void* data, int64_t length, int64_t count, int64_t line, int box_lines,
                       DebugInfo where, int64_t matrices = 1, int64_t next = 0) {
  static const detail::EncodeTiled encode = detail::find_encode_tiled();
  if (!encode)
    fail({ErrorKind::unsupported, where}, "the NVIDIA driver knows no tensor maps; update it");
  TensorMap map{};
  const uint64_t line_bytes = count > 1 ? uint64_t(line) * sizeof(T) : 16;
  const uint64_t next_bytes = matrices > 1 ? uint64_t(next) * sizeof(T) : 16;
  const cuuint64_t dims[] = {uint64_t(length), uint64_t(count), uint64_t(matrices)},
                   strides[] = {line_bytes, next_bytes};
  const cuuint32_t box[] = {128 / sizeof(T), uint32_t(box_lines), 1}, steps[] = {1, 1, 1};
  const CUresult status =
      encode(reinterpret_cast<CUtensorMap*>(&map), detail::kMapType<T>, 3, const_cast<void*>(data),
             dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  check_cuda(status == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue, where.file_name(),
             long(where.line()));
  int driver = 0;
  cudaDriverGetVersion(&driver);
  if (driver <= 13010 && double(line_bytes) * double(count) * double(matrices) < 131072)
    detail::clear_small_tensor_bit(map);
  return map;
}

}  // namespace tensorcraft::kernels
