// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/masked_mean/00_naive.cuh"
#include "tensorcraft/ops/masked_mean/01_block.cuh"
#include "tensorcraft/ops/masked_mean/plan.h"

// Means over the first steps of sequences. Compiled for each T and Length: block, and naive for
// more than 2^31 - 1 blocks (2 kernels).
namespace tensorcraft::kernels {

// out[b, :] = the mean of in[b, 0 .. lengths[b], :] for row-major in [batch, steps, cols], lengths
// [batch] and out [batch, cols]; 0 for a length of 0, one outside [0, steps] is taken to the nearer
// end. T: float, f16 or bf16, summed in float; Length: int32_t or int64_t. Returns the name of the
// variant, empty if there is nothing to do. Errors and stream as launch_softmax.
template <class T, class Length>
std::string_view launch_masked_mean(const T* in, const Length* lengths, T* out, int64_t batch,
                                    int64_t steps, int64_t cols, cudaStream_t stream = nullptr,
                                    DebugInfo where = {}) {
  namespace m = kernel::masked_mean;
  validate_sizes("launch_masked_mean", {{"batch", batch}, {"steps", steps}, {"cols", cols}});
  if (batch == 0 || cols == 0) return {};
  if (steps > 0) validate_pointer("launch_masked_mean", "in", in);
  validate_arrays("launch_masked_mean", {{"lengths", lengths}, {"out", out}});
  const m::Params p = m::contiguous_params(in, lengths, out, batch, steps, cols);
  return launch_ladder(m::kRungs, p, op::NoGiven{}, stream, where,
                       Kernels<m::Block, kDefaultInstance<m::Config>, T, Length>{"block"},
                       Kernels<m::Naive, kDefaultInstance<m::Config>, T, Length>{"naive"});
}

}  // namespace tensorcraft::kernels
