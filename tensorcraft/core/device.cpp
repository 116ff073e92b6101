// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/device.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/to_number.hpp"

#include <ostream>

namespace tensorcraft {

std::string_view to_string(DeviceType type) {
  switch (type) {
    case DeviceType::cpu:
      return "cpu";
    case DeviceType::cuda:
      return "cuda";
    case DeviceType::simt:
      return "simt";
  }
  return "unknown";
}

std::string to_string(Device device) {
  if (!device.is_cuda() || device.index < 0) return std::string(to_string(device.type));
  return "cuda:" + std::to_string(device.index);
}

std::ostream& operator<<(std::ostream& out, DeviceType type) { return out << to_string(type); }
std::ostream& operator<<(std::ostream& out, Device device) { return out << to_string(device); }

Device parse_device(std::string_view text) {
  if (text == "cpu") return Device::cpu();
  if (text == "simt") return Device::simt();
  if (text == "cuda") return Device::cuda(0);
  constexpr std::string_view prefix = "cuda:";
  if (text.starts_with(prefix))
    if (const auto index = to_number<int>(text.substr(prefix.size())); index && *index >= 0)
      return Device::cuda(*index);
  fail(ErrorKind::value, "device \"", text,
       "\" is not known; use \"cpu\", \"cuda\", \"cuda:N\" or \"simt\"");
}

Device from_dlpack(dlpack::DLDevice device) {
  switch (device.device_type) {
    case dlpack::kDLCPU:
    case dlpack::kDLCUDAHost:
      return Device::cpu();
    case dlpack::kDLCUDA:
    case dlpack::kDLCUDAManaged:
      return Device::cuda(device.device_id);
    default:
      fail(ErrorKind::value, "DLPack device type ", int(device.device_type),
           " is not supported; arrays on a CPU or a CUDA device are");
  }
}

dlpack::DLDevice to_dlpack(Device device) {
  return {device.is_cuda() ? dlpack::kDLCUDA : dlpack::kDLCPU, device.index};
}

}  // namespace tensorcraft
