// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/requirements.hpp"

#include "tensorcraft/core/error.hpp"

namespace tensorcraft {
namespace {

std::string_view format_name(DType dtype) {
  return dtype == DType::float8_e4m3fn ? "FP8_E4M3" : "FP8_E5M2";
}

Feasibility judge(const DeviceInfo& device, DType precision) {
  if (device.compute_capability < 80)
    return {precision, false,
            join("Error: GPU compute capability ", device.compute_capability,
                 " not in supported list")};
  const bool is_fp8 = precision == DType::float8_e4m3fn || precision == DType::float8_e5m2;
  if (is_fp8 && !device.has_fp8())
    return {precision, false,
            join("Warning: ", format_name(precision), " not supported on this GPU")};
  return {precision};
}

}  // namespace

std::vector<Feasibility> validate_requirement_feasibility(const DeviceInfo& device,
                                                          std::span<const DType> precisions) {
  std::vector<Feasibility> answers;
  for (DType precision : precisions) answers.push_back(judge(device, precision));
  return answers;
}

}  // namespace tensorcraft
