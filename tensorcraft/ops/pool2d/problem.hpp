// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/op/checks/window.hpp"

namespace tensorcraft::kernel::pool2d {

// A checked call. Images are [batch, rows, columns, channels], whatever the layout of the call.
struct Problem {
  TensorView out, x;
  op::Window window;
  bool mean;           // else the maximum
  bool count_padding;  // in a mean
};

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::pool2d
