// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/cross_entropy/01_online.cuh"
#include "tensorcraft/ops/cross_entropy/plan.h"
#include "tensorcraft/ops/cross_entropy/reduce.cuh"

// Cross-entropy along the last axis. Compiled for each T and Id: online for rows of a warp, of a
// small block and of a large one (3 kernels); and once what reduces losses (3).
namespace tensorcraft::kernels {
namespace detail::cross_entropy {

using namespace kernel::cross_entropy;

template <class T>
inline constexpr std::array kOnlineInstances{
    Instance<Config>{{.threads = 128, .group = 32}},
    Instance<Config>{{.threads = 128, .group = 128}},
    Instance<Config>{{}, long_row_blocks(std::is_same_v<T, f16>)}};
inline constexpr std::array kReduceInstances{Instance<ReduceConfig>{{.threads = 32}},
                                             Instance<ReduceConfig>{{.threads = 128}},
                                             Instance<ReduceConfig>{{.threads = 1024}}};

}  // namespace detail::cross_entropy

// losses[i] = log(sum(exp(row i))) - row i[targets[i]] for `rows` rows of `classes` logits, one
// after another, and, unless lse is null, lse[i] = log(sum(exp(row i))), all in float. A row
// whose target is ignore_index has loss -0, which is what launch_mean_loss knows it by; one whose
// target is no class has loss NaN. T: float, f16 or bf16; Id: int32_t or int64_t. Returns the name
// of the variant, empty if there is nothing to do. Errors and stream as launch_softmax.
template <class T, class Id>
std::string_view launch_cross_entropy(const T* logits, const Id* targets, float* losses, float* lse,
                                      int64_t rows, int64_t classes,
                                      int64_t ignore_index = kernel::cross_entropy::kIgnoreIndex,
                                      cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace e = detail::cross_entropy;
  validate_sizes("launch_cross_entropy", {{"rows", rows}, {"classes", classes}});
  if (rows == 0) return {};
  if (classes > 0) validate_pointer("launch_cross_entropy", "logits", logits);
  validate_arrays("launch_cross_entropy", {{"targets", targets}, {"losses", losses}});
  e::CallParams p = e::contiguous_params(logits, targets, losses, lse, rows, classes);
  p.ignore_index = ignore_index;
  p.ignored = -0.0f;
  const e::Given given{.element_bytes = sizeof(T), .is_float16 = std::is_same_v<T, f16>};
  return launch_ladder(e::kRungs, p, given, stream, where,
                       Kernels<e::Online, e::kOnlineInstances<T>, T, Id>{"online"});
}

// *out = the mean of the losses that launch_cross_entropy wrote, over the rows that were not
// ignored: NaN if there are none. `losses` starts at a multiple of 16 bytes. Errors and stream
// as launch_softmax.
inline std::string_view launch_mean_loss(const float* losses, float* out, int64_t rows,
                                         cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace e = detail::cross_entropy;
  validate_size("launch_mean_loss", "rows", rows);
  if (rows > 0) validate_pointer("launch_mean_loss", "losses", losses);
  validate_pointer("launch_mean_loss", "out", out);
  validate_alignment<float, 4>(losses);
  const e::ReduceParams p{.losses = losses, .out = out, .rows = rows, .mean = 1};
  return launch_or_fail<Kernels<e::Reduce, e::kReduceInstances>>("reduce", e::reduce_start(rows), p,
                                                                 stream, where);
}

}  // namespace tensorcraft::kernels
