// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/conv_activation.h"

#include <cstdint>

namespace tensorcraft::host {

// In double, and of n neighbouring floats in place; NaN stays NaN.
double activate(ConvActivation activation, double x);
void row_activate(ConvActivation activation, float* x, int64_t n);

}  // namespace tensorcraft::host
