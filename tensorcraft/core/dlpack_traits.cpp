// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/dlpack_traits.hpp"

#include <ostream>

namespace tensorcraft {

std::ostream& operator<<(std::ostream& out, PrintableDevice printable) {
  const auto [type, id] = printable.device;
  for (const auto& [code, name] : kDeviceStringMap) {
    if (code != type) continue;
    out << name;
    if (type != dlpack::kDLCPU && id != kAnyDeviceID) out << ':' << id;
    return out;
  }
  return out << "Unknown device: " << int(type);
}

}  // namespace tensorcraft
