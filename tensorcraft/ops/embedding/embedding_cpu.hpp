// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

namespace tensorcraft::kernel::embedding {

// Host rows. Fail with kind index before they write where an id is outside the table.
void cpu(const TensorView& out, const TensorView& ids, const TensorView& table);
void reference(const TensorView& out, const TensorView& ids, const TensorView& table);

}  // namespace tensorcraft::kernel::embedding
