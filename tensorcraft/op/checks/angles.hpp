// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

namespace tensorcraft::op {

// Where kernels find the cos and sin of rotary embeddings, each [max_seq, half] of any strides: in
// fields that all their Params have.
template <class Params>
void set_angles(Params& p, const TensorView& cos, const TensorView& sin) {
  p.cos = cos.data();
  p.sin = sin.data();
  p.cos_row = cos.stride(0);
  p.cos_step = cos.stride(1);
  p.sin_row = sin.stride(0);
  p.sin_step = sin.stride(1);
  p.max_seq = cos.shape(0);
}

}  // namespace tensorcraft::op
