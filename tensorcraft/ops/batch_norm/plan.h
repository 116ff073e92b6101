// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/row_plan.h"
#include "tensorcraft/ops/batch_norm/params.h"

#include <numeric>
#include <string_view>

// Which Config and grid each rung gets; host only. A `problem` is why a rung declines, or empty.
namespace tensorcraft::kernel::batch_norm {

using Launch = op::LaunchPlan<Config>;

inline constexpr int kThreads = 256;
inline constexpr int kSlots = 4;         // 64 bytes of each thread in flight
inline constexpr int kChannelSlots = 2;  // where a channel is shared, with more blocks
inline constexpr int kMaxCluster = 8;    // blocks that every GPU with clusters accepts
inline constexpr int64_t kMaxPlane = int64_t(1) << 30;  // elements that Params::by_spatial takes

// The layout of (batch, channels, spatial) without gaps.
inline Layout dense_layout(int64_t channels, int64_t spatial) {
  return {
      .batch = channels * spatial, .channel = spatial, .spatial = op::contiguous_rows(spatial, 1)};
}

// The tensors of a forward call as raw pointers, null where one is not given.
struct Tensors {
  const void *x, *weight, *bias, *running_mean, *running_var;
  void* out;
  float *mean, *rstd;
  void *running_mean_out, *running_var_out;
};

inline Divider spatial_divider(int64_t spatial) {
  return Divider::of(std::clamp<int64_t>(spatial, 1, kMaxPlane));
}

// Every tensor without gaps.
inline Params contiguous_params(const Tensors& t, int64_t batch, int64_t channels, int64_t spatial,
                                float eps, float momentum, Activation activation) {
  return {.x = t.x,
          .weight = t.weight,
          .bias = t.bias,
          .running_mean = t.running_mean,
          .running_var = t.running_var,
          .out = t.out,
          .mean = t.mean,
          .rstd = t.rstd,
          .running_mean_out = t.running_mean_out,
          .running_var_out = t.running_var_out,
          .batch = batch,
          .channels = channels,
          .spatial = spatial,
          .x_layout = dense_layout(channels, spatial),
          .out_layout = dense_layout(channels, spatial),
          .by_spatial = spatial_divider(spatial),
          .eps = eps,
          .momentum = momentum,
          .activation = activation};
}

inline bool is_nested(const Layout& a, const Layout& b) {
  return a.spatial.axes > 1 || b.spatial.axes > 1;
}

inline bool has_unit_planes(const Layout& l) {
  return l.spatial.axes == 0 || (l.spatial.axes == 1 && l.spatial.stride[0] == 1);
}

// Elements of (batch, channels, spatial...) lie one behind another.
template <class P>
bool is_dense(const P& p, const Layout& l) {
  return has_unit_planes(l) && (p.channels == 1 || l.channel == p.spatial) &&
         (p.batch == 1 || l.batch == p.channels * p.spatial);
}

// Those of (batch, spatial..., channels) do.
template <class P>
bool is_channels_last(const P& p, const Layout& l) {
  const RowMap& s = l.spatial;
  return (p.channels == 1 || l.channel == 1) &&
         (s.axes == 0 || (s.axes == 1 && s.stride[0] == p.channels)) &&
         (p.batch == 1 || l.batch == p.channels * p.spatial);
}

// Every plane is unit strides from a 16-byte boundary on.
inline bool has_aligned_planes(const void* data, const Layout& l, int element_bytes) {
  return op::is_vector_aligned(data) && has_unit_planes(l) && l.batch * element_bytes % 16 == 0 &&
         l.channel * element_bytes % 16 == 0;
}

inline Launch naive_launch(const Params& p, bool training) {
  const int64_t threads = training ? p.channels : p.batch * p.channels * p.spatial;
  return {{.threads = 128, .training = training, .nested = is_nested(p.x_layout, p.out_layout)},
          div_ceil(threads, int64_t(128))};
}

// 0 slots: a block would meet too many planes.
constexpr int planes_slots(int64_t spatial, int vector) {
  for (const int slots : {kSlots, 1})
    if ((kThreads * vector * slots - 1) / std::max<int64_t>(spatial, 1) + 2 <= kMaxPlanes)
      return slots;
  return 0;
}

inline Launch planes_launch(const Params& p, int element_bytes) {
  const int vector = 16 / element_bytes, slots = std::max(1, planes_slots(p.spatial, vector));
  return {{.threads = kThreads,
           .vector = vector,
           .slots = slots,
           .activation = p.activation,
           .whole = p.spatial % vector == 0},
          div_ceil(p.batch * p.channels * p.spatial, int64_t(kThreads * vector * slots)),
          4};  // 64 KiB in flight on a multiprocessor
}

inline std::string_view planes_problem(const Params& p, int element_bytes) {
  if (!is_dense(p, p.x_layout) || !is_dense(p, p.out_layout))
    return "x and out must be dense, in the order of their axes";
  if (!op::is_vector_aligned(p.x) || !op::is_vector_aligned(p.out))
    return "x and out must start at 16-byte boundaries";
  if (planes_slots(p.spatial, 16 / element_bytes) == 0)
    return "planes must have 3 elements, so that a block meets few of them";
  if (p.spatial > kMaxPlane) return "planes must have at most 2^30 elements";
  return "";
}

// The stride of the grid is whole rows, or the grid covers the tensor.
inline Launch channels_last_launch(const Params& p, int element_bytes, int num_sms) {
  const int vector = 16 / element_bytes;
  const int64_t row = std::max<int64_t>(1, p.channels / vector);
  const int64_t units = p.batch * p.spatial * row;
  const int64_t whole_rows = row / std::gcd(row, int64_t(kThreads));
  const int64_t wanted = std::min<int64_t>(div_ceil(units, kThreads * kSlots), 8 * num_sms);
  const int64_t blocks = std::min(round_up(wanted, whole_rows), div_ceil(units, kThreads));
  return {{.threads = kThreads, .vector = vector, .slots = kSlots, .activation = p.activation},
          std::min(blocks, op::kMaxBlocks),
          2};
}

inline std::string_view channels_last_problem(const Params& p, int element_bytes) {
  if (!is_channels_last(p, p.x_layout) || !is_channels_last(p, p.out_layout))
    return "channels must be neighbours, in rows one behind another";
  if (p.channels * element_bytes % 16 || !op::is_vector_aligned(p.x) ||
      !op::is_vector_aligned(p.out))
    return "rows must start at 16-byte boundaries and be a multiple of 16 bytes long";
  return "";
}

// As many blocks a channel as fill the GPU twice and still have an access for each thread.
inline int cluster_of(int64_t channels, int64_t accesses, int num_sms, bool has_clusters) {
  int cluster = 1;
  while (has_clusters && cluster < kMaxCluster && channels * cluster < 2 * num_sms &&
         accesses >= 2 * cluster * kThreads)
    cluster *= 2;
  return cluster;
}

// A cluster of blocks for each channel.
template <class P>
Launch shared_channel_launch(const P& p, int vector, bool nested, Activation activation,
                             int num_sms, bool has_clusters) {
  const int cluster = cluster_of(p.channels, p.batch * p.spatial / vector, num_sms, has_clusters);
  return {.config = {.threads = kThreads,
                     .vector = vector,
                     .slots = kChannelSlots,
                     .cluster = cluster,
                     .activation = activation,
                     .nested = nested && vector == 1},
          .blocks = p.channels * cluster,
          .cluster = cluster};
}

inline Launch cluster_launch(const Params& p, int element_bytes, int num_sms, bool has_clusters) {
  const int vector = 16 / element_bytes;
  const bool aligned = p.spatial % vector == 0 &&
                       has_aligned_planes(p.x, p.x_layout, element_bytes) &&
                       has_aligned_planes(p.out, p.out_layout, element_bytes);
  return shared_channel_launch(p, aligned ? vector : 1, is_nested(p.x_layout, p.out_layout),
                               p.activation, num_sms, has_clusters);
}

inline Launch backward_naive_launch(const BackwardParams& p) {
  return {{.threads = 128,
           .nested = is_nested(p.grad_layout, p.x_layout) || p.out_layout.spatial.axes > 1},
          div_ceil(p.channels, int64_t(128))};
}

inline Launch backward_cluster_launch(const BackwardParams& p, int element_bytes, int num_sms,
                                      bool has_clusters) {
  const int vector = 16 / element_bytes;
  const bool aligned = p.spatial % vector == 0 &&
                       has_aligned_planes(p.grad, p.grad_layout, element_bytes) &&
                       has_aligned_planes(p.x, p.x_layout, element_bytes) &&
                       has_aligned_planes(p.grad_input, p.out_layout, element_bytes);
  return shared_channel_launch(
      p, aligned ? vector : 1,
      is_nested(p.grad_layout, p.x_layout) || p.out_layout.spatial.axes > 1, Activation::none,
      num_sms, has_clusters);
}

}  // namespace tensorcraft::kernel::batch_norm
