// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/rung.h"
#include "tensorcraft/ops/conv2d/params.h"

// What the choices of plan.h and depthwise_plan.h ask of a call; host only.
namespace tensorcraft::kernel::conv2d {

using Choice = op::Choice<Config>;
using Start = op::Start<Config>;
struct Given {  // what choices look at besides Params
  int element_bytes;
  ConvActivation activation;
  bool allow_tf32 = false;  // float32 may be rounded
};

inline int64_t num_places(const Params& p) { return p.batch * p.rows.out * p.columns.out; }
inline bool is_depthwise(const Params& p) { return p.channels == 1 && p.filters == 1; }

inline bool are_multiples(const ImageStrides& at, int64_t of) {
  return at.sample % of == 0 && at.row % of == 0 && at.column % of == 0;
}
inline bool is_aligned(const void* address, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(address) % uintptr_t(bytes) == 0;
}
// Can one access take `vector` channels of the result, and of the residual?
inline bool has_result_vectors(const Params& p, int vector, int element_bytes) {
  const int64_t bytes = int64_t(vector) * element_bytes;
  const auto takes = [&](const void* data, const ImageStrides& at) {
    return !data || (at.channel == 1 && are_multiples(at, vector) && is_aligned(data, bytes));
  };
  return takes(p.out, p.out_at) && takes(p.residual, p.residual_at);
}
// Can one access take 16 bytes of channels of x?
inline bool has_input_vectors(const Params& p, int element_bytes) {
  return p.x_at.channel == 1 && are_multiples(p.x_at, 16 / element_bytes) &&
         op::is_vector_aligned(p.x);
}

}  // namespace tensorcraft::kernel::conv2d
