// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

namespace tensorcraft::kernel::masked_mean {

// Host rows. Fail with kind value before they write where a length is outside [0, steps].
void cpu(const TensorView& out, const TensorView& x, const TensorView& lengths);
void reference(const TensorView& out, const TensorView& x, const TensorView& lengths);

}  // namespace tensorcraft::kernel::masked_mean
