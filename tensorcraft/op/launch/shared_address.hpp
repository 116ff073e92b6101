// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

namespace tensorcraft::op {

// The address for a descriptor that inputs and outputs share. Nobody writes through an input's;
// that an output may be written is checked at the operator's door.
inline void* shared_address(const TensorView& t) { return const_cast<void*>(t.data()); }

}  // namespace tensorcraft::op
