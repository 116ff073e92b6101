// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/layout.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/timer.hpp"
#include "tensorcraft/diagnose/timing.hpp"
#include "tensorcraft/jit/compiler.hpp"
#include "tensorcraft/jit/kernel_cache.hpp"
#include "tensorcraft/op/operator.hpp"
#include "tensorcraft/op/tuning/tuning_database.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Names that the project's first documents promise to users. The library itself uses none of them.
namespace tensorcraft {

// Other names of these types.
using DataType = DType;
using PrecisionFormat = DType;
using GPUCapabilities = DeviceInfo;
using KernelSpecification = jit::KernelKey;  // what a kernel is compiled for: no sizes of a call
using CompilationOptions = jit::CompilationOptions;
using CompilationFlags = std::vector<std::string>;  // what jit::compilation_flags() gives
using ConfigurationManager = op::TuningDatabase;    // finds the configuration that a call takes
using KernelRegistry = op::OperatorList;            // what operators() gives
using CacheManager = jit::KernelCache;
using PerformanceProfiler = diagnose::PerformanceProfiler;
using CUDAPerformanceProfiler = EventTimer;  // start(), then stop() gives milliseconds

// The integers 0, 1, ..., end - 1; none if end <= 0.
template <std::integral T>
constexpr auto irange(T end) {
  return std::views::iota(T(0), end < T(0) ? T(0) : end);
}

// The integers begin, ..., end - 1; none if end <= begin.
template <std::integral T>
constexpr auto irange(T begin, T end) {
  return std::views::iota(begin, end < begin ? begin : end);
}

namespace pointer {

// The address that the offsets, in bytes, lead to. Only void pointers are taken, so a count of
// elements does not compile.
template <std::same_as<void> T, std::integral... Offsets>
T* offset(T* base, Offsets... bytes) {
  return static_cast<std::byte*>(base) + (std::ptrdiff_t(bytes) + ... + 0);
}
template <std::same_as<const void> T, std::integral... Offsets>
T* offset(T* base, Offsets... bytes) {
  return static_cast<const std::byte*>(base) + (std::ptrdiff_t(bytes) + ... + 0);
}

}  // namespace pointer

// Fails with kind value unless VecSize values of T can be accessed at once at this address.
template <class T, int VecSize>
void validate_alignment(const void* address) {
  if (reinterpret_cast<std::uintptr_t>(address) % (sizeof(T) * VecSize) != 0)
    fail(ErrorKind::value, "Pointer not aligned for vectorized access");
}

// Whether one precision can run on a device, and what to tell the user if it cannot.
struct Feasibility {
  DType precision;        // that was asked for
  bool supported = true;  // by the device
  std::string message;    // empty if supported
};

// One answer for each precision asked for, in order; a device older than SM 80 supports none.
inline std::vector<Feasibility> validate_requirement_feasibility(
    const DeviceInfo& device, std::span<const DType> precisions) {
  std::vector<Feasibility> answers;
  for (const DType precision : precisions) {
    Feasibility& answer = answers.emplace_back(Feasibility{.precision = precision, .message = {}});
    const bool is_e4m3 = precision == DType::float8_e4m3fn;
    const bool is_fp8 = is_e4m3 || precision == DType::float8_e5m2;
    if (device.compute_capability < 80)
      answer.message = join("Error: GPU compute capability ", device.compute_capability,
                            " not in supported list");
    else if (is_fp8 && !device.has_fp8())
      answer.message =
          join("Warning: ", is_e4m3 ? "FP8_E4M3" : "FP8_E5M2", " not supported on this GPU");
    answer.supported = answer.message.empty();
  }
  return answers;
}

// Names the computation that a product is part of. Gradients are out of scope.
enum class ComputeMode {
  STANDARD_DENSE,
  MOE_GROUPED,
  MASKED_COMPUTATION,
  ATTENTION_KERNELS,
  GRADIENT_COMPUTATION,
};
// The operator that computes a mode; empty for gradients.
constexpr std::string_view operator_of(ComputeMode mode) {
  constexpr std::array<std::string_view, 5> names = {"gemm", "grouped_gemm", "masked_gemm",
                                                     "attention", ""};
  return names[size_t(mode)];
}

// Lists what products have to cover, as data.
struct RequirementMatrix {
  // Each of these with each other.
  std::vector<PrecisionFormat> precisions;
  std::vector<MemoryLayout> layouts;
  std::vector<ComputeMode> modes;
  std::vector<std::array<int64_t, 3>> sizes;  // m, n, k
  std::vector<int> architectures;             // compute capabilities, 90 for 9.0
  double ratio = 0;                           // of the vendor library's speed
};

// Every format, layout and mode, cubes of 64 to 16384, from Ampere to Hopper.
inline RequirementMatrix define_comprehensive_requirements() {
  RequirementMatrix matrix{
      .precisions = {PrecisionFormat::FP8_E4M3, PrecisionFormat::FP8_E5M2, PrecisionFormat::BF16,
                     PrecisionFormat::FP16, PrecisionFormat::FP32},
      .layouts = {MemoryLayout::ROW_COL, MemoryLayout::COL_COL, MemoryLayout::ROW_ROW,
                  MemoryLayout::COL_ROW},
      .modes = {ComputeMode::STANDARD_DENSE, ComputeMode::MOE_GROUPED,
                ComputeMode::MASKED_COMPUTATION, ComputeMode::ATTENTION_KERNELS},
      .sizes = {},
      .architectures = {80, 86, 89, 90},
      .ratio = 0.9};
  for (int64_t size = 64; size <= 16384; size *= 2) matrix.sizes.push_back({size, size, size});
  return matrix;
}

}  // namespace tensorcraft
