// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/cross_entropy/01_online.cuh"
#include "tensorcraft/ops/cross_entropy/plan.h"
#include "tensorcraft/ops/cross_entropy/reduce.cuh"

// Cross-entropy along the last axis. Compiled for each T and Id: online for rows of a warp, of a
// small block and of a large one (3 kernels); and once what reduces losses, few and many (2).
namespace tensorcraft::kernels {
namespace detail::cross_entropy {

using namespace kernel::cross_entropy;

template <class T, class Id, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    cross_entropy_online(const __grid_constant__ Params p) {
  begin_kernel();
  online<T, Id, C::value.config>(p);
}
template <class C>
__global__ void __launch_bounds__(C::value.config.threads)
    cross_entropy_reduce(const __grid_constant__ ReduceParams p) {
  begin_kernel();
  kernel::cross_entropy::reduce<C::value.config>(p);
}

template <class T, class Id>
struct Online {
  static constexpr std::array list{Instance<Config>{{.threads = 128, .group = 32}},
                                   Instance<Config>{{.threads = 128, .group = 128}},
                                   Instance<Config>{{}, long_row_blocks(std::is_same_v<T, f16>)}};
  template <class C>
  static constexpr auto entry() {
    return &cross_entropy_online<T, Id, C>;
  }
};
struct Reduce {
  static constexpr std::array list{Instance<ReduceConfig>{{.threads = 32}},
                                   Instance<ReduceConfig>{{.threads = 128}},
                                   Instance<ReduceConfig>{{.threads = 1024}}};
  template <class C>
  static constexpr auto entry() {
    return &cross_entropy_reduce<C>;
  }
};

}  // namespace detail::cross_entropy

// losses[i] = log(sum(exp(row i))) - row i[targets[i]] for `rows` rows of `classes` logits, one
// after another, and, if lse is not null, lse[i] = log(sum(exp(row i))), all in float. A row whose
// target is ignore_index has loss -0, which is what launch_mean_loss knows it by; one whose target
// is no class has loss NaN. T: float, f16 or bf16; Id: int32_t or int64_t. Returns the name of the
// variant, empty if there is nothing to do. Errors and stream as launch_softmax.
template <class T, class Id>
std::string_view launch_cross_entropy(const T* logits, const Id* targets, float* losses, float* lse,
                                      int64_t rows, int64_t classes,
                                      int64_t ignore_index = kernel::cross_entropy::kIgnoreIndex,
                                      cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace e = detail::cross_entropy;
  validate_size("launch_cross_entropy", "rows", rows);
  validate_size("launch_cross_entropy", "classes", classes);
  if (rows == 0) return {};
  if (classes > 0) validate_pointer("launch_cross_entropy", "logits", logits);
  validate_pointer("launch_cross_entropy", "targets", targets);
  validate_pointer("launch_cross_entropy", "losses", losses);
  e::Params p = e::contiguous_params(logits, targets, losses, lse, rows, classes);
  p.ignore_index = ignore_index;
  p.ignored = -0.0f;
  return launch_or_fail<e::Online<T, Id>>(
      "online", e::online_launch(p, sizeof(T), std::is_same_v<T, f16>), p, stream, where);
}

// *out = the mean of the losses that launch_cross_entropy wrote, over the rows that were not
// ignored: NaN if there are none. `losses` starts at a multiple of 16 bytes. Errors and stream as
// launch_softmax.
inline std::string_view launch_mean_loss(const float* losses, float* out, int64_t rows,
                                         cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace e = detail::cross_entropy;
  validate_size("launch_mean_loss", "rows", rows);
  if (rows > 0) validate_pointer("launch_mean_loss", "losses", losses);
  validate_pointer("launch_mean_loss", "out", out);
  validate_alignment<float, 4>(losses);
  const e::ReduceParams p{.losses = losses, .out = out, .rows = rows, .mean = 1};
  return launch_or_fail<e::Reduce>("reduce", e::reduce_launch(rows), p, stream, where);
}

}  // namespace tensorcraft::kernels
