// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/operator.hpp"

namespace tensorcraft::kernel::quantize {

// The registry entry of dequantize, which quantize.hpp declares.
const op::Operator& dequantize_operator();

}  // namespace tensorcraft::kernel::quantize
