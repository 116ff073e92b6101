// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

namespace tensorcraft::kernel::l2_normalize {

// Host rows; axis is in [0, rank).
void cpu(const TensorView& out, const TensorView& x, int axis, float eps);
void reference(const TensorView& out, const TensorView& x, int axis, double eps);

}  // namespace tensorcraft::kernel::l2_normalize
