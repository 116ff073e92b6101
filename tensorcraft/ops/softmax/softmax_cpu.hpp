// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

namespace tensorcraft::kernel::softmax {

// Host rows; axis is in [0, rank).
void cpu(const TensorView& out, const TensorView& x, int axis);
void reference(const TensorView& out, const TensorView& x, int axis);

}  // namespace tensorcraft::kernel::softmax
