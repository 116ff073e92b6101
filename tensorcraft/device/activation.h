// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tensorcraft {

// Activations that a product or a norm applies to its result.
enum class Activation : int { none, relu, gelu, gelu_tanh, silu };

}  // namespace tensorcraft
