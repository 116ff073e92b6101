// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

namespace tensorcraft::kernel::permute {

// Host rows: out = x, element by element; both have one shape and dtype.
void cpu(const TensorView& out, const TensorView& x);
void reference(const TensorView& out, const TensorView& x);

}  // namespace tensorcraft::kernel::permute
