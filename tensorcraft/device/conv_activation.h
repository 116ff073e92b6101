// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tensorcraft {

// Activations that a convolution applies to its result.
enum class ConvActivation : int { none, relu, relu6, gelu, silu, hard_swish };

}  // namespace tensorcraft
