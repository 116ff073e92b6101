// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/version.hpp"

namespace tensorcraft {

std::string_view version() { return TENSORCRAFT_VERSION; }

}  // namespace tensorcraft
