// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dlpack.hpp"

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace tensorcraft {

// The host, a GPU, or the emulator of one on the host.
enum class DeviceType : uint8_t { cpu, cuda, simt };

// Where memory is and work runs: "cpu", "cuda:0", "simt".
struct Device {
  // Compared by both.
  DeviceType type = DeviceType::cpu;
  int index = 0;  // among the devices of the type

  // By type; nothing is opened, and the device need not exist.
  static constexpr Device cpu() { return {}; }
  static constexpr Device cuda(int index = 0) { return {DeviceType::cuda, index}; }
  static constexpr Device simt() { return {DeviceType::simt, 0}; }
  constexpr bool is_cuda() const { return type == DeviceType::cuda; }
  friend bool operator==(const Device&, const Device&) = default;
};

// As Python writes them: "cuda", "cuda:0".
std::string_view to_string(DeviceType type);
std::string to_string(Device device);
std::ostream& operator<<(std::ostream& out, DeviceType type);
std::ostream& operator<<(std::ostream& out, Device device);
// "cpu", "simt", "cuda" (index 0) or "cuda:N"; kind value otherwise, with the accepted forms.
Device parse_device(std::string_view text);
// Device of a DLPack tensor: CPU, CUDA, CUDAHost (as cpu) and CUDAManaged (as cuda); else kind
// value.
Device from_dlpack(dlpack::DLDevice device);
// Converts back; the emulator is a CPU there.
dlpack::DLDevice to_dlpack(Device device);

}  // namespace tensorcraft
