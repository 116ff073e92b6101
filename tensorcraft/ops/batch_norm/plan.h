// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/batch_norm/params.h"

#include <numeric>
#include <string_view>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::batch_norm {

using Start = op::Start<Config>;
using Choice = op::Choice<Config>;

struct Given {  // what the call says besides Params
  int element_bytes;
  bool training = false;
};

inline constexpr int kThreads = 256;
inline constexpr int kSlots = 4;         // 64 bytes of each thread in flight
inline constexpr int kChannelSlots = 2;  // if a channel is shared, with more blocks
inline constexpr int kMaxCluster = 8;    // blocks that every GPU with clusters accepts
inline constexpr int64_t kMaxPlane = int64_t(1) << 30;  // elements that Params::by_spatial takes

// The layout of (batch, channels, spatial) without gaps.
inline Layout dense_layout(int64_t channels, int64_t spatial) {
  return {
      .batch = channels * spatial, .channel = spatial, .spatial = op::contiguous_rows(spatial, 1)};
}

// The tensors of a forward call as raw pointers, null if one is not given.
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

// Tensors of a backward call.
struct BackwardTensors {
  const void *grad, *x, *weight;
  const float *mean, *rstd;
  void *grad_input, *grad_weight, *grad_bias;
};
inline BackwardParams contiguous_params(const BackwardTensors& t, int64_t batch, int64_t channels,
                                        int64_t spatial) {
  const Layout layout = dense_layout(channels, spatial);
  return {.grad = t.grad,
          .x = t.x,
          .weight = t.weight,
          .mean = t.mean,
          .rstd = t.rstd,
          .grad_input = t.grad_input,
          .grad_weight = t.grad_weight,
          .grad_bias = t.grad_bias,
          .batch = batch,
          .channels = channels,
          .spatial = spatial,
          .grad_layout = layout,
          .x_layout = layout,
          .out_layout = layout};
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

// Elements of (batch, spatial..., channels) lie so.
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

inline Choice naive(const Params& p, const Given& given, const op::Gpu&) {
  const int64_t threads = given.training ? p.channels : p.batch * p.channels * p.spatial;
  return Start{
      {.threads = 128, .training = given.training, .nested = is_nested(p.x_layout, p.out_layout)},
      div_ceil(threads, int64_t(128))};
}

// 0 slots: a block would meet too many planes.
constexpr int planes_slots(int64_t spatial, int vector) {
  for (const int slots : {kSlots, 1})
    if ((kThreads * vector * slots - 1) / std::max<int64_t>(spatial, 1) + 2 <= kMaxPlanes)
      return slots;
  return 0;
}

inline Choice planes(const Params& p, const Given& given, const op::Gpu&) {
  if (given.training) return op::refuse("needs training=False");
  if (!is_dense(p, p.x_layout) || !is_dense(p, p.out_layout))
    return op::refuse("x and out must be dense, in the order of their axes");
  if (!op::is_vector_aligned(p.x) || !op::is_vector_aligned(p.out))
    return op::refuse("x and out must start at 16-byte boundaries");
  const int vector = 16 / given.element_bytes, slots = planes_slots(p.spatial, vector);
  if (slots == 0)
    return op::refuse("planes must have 3 elements, so that a block meets few of them");
  if (p.spatial > kMaxPlane) return op::refuse("planes must have at most 2^30 elements");
  return Start{{.threads = kThreads,
                .vector = vector,
                .slots = slots,
                .activation = p.activation,
                .whole = p.spatial % vector == 0},
               div_ceil(p.batch * p.channels * p.spatial, int64_t(kThreads * vector * slots)),
               4};  // 64 KiB in flight on a multiprocessor
}

// The stride of the grid is whole rows, or the grid covers the tensor.
inline Choice channels_last(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (given.training) return op::refuse("needs training=False");
  if (!is_channels_last(p, p.x_layout) || !is_channels_last(p, p.out_layout))
    return op::refuse("channels must be neighbours, in rows one behind another");
  if (p.channels * given.element_bytes % 16 || !op::is_vector_aligned(p.x) ||
      !op::is_vector_aligned(p.out))
    return op::refuse("rows must start at 16-byte boundaries and be a multiple of 16 bytes long");
  const int vector = 16 / given.element_bytes;
  const int64_t row = std::max<int64_t>(1, p.channels / vector);
  const int64_t units = p.batch * p.spatial * row;
  const int64_t whole_rows = row / std::gcd(row, int64_t(kThreads));
  const int64_t wanted = std::min<int64_t>(div_ceil(units, kThreads * kSlots), 8 * gpu.num_sms);
  const int64_t blocks = std::min(round_up(wanted, whole_rows), div_ceil(units, kThreads));
  return Start{{.threads = kThreads, .vector = vector, .slots = kSlots, .activation = p.activation},
               std::min(blocks, op::kMaxBlocks),
               2};
}

// A cluster of blocks for each channel: as many as fill the GPU twice and still have an access for
// each thread.
template <class P>
Start shared_channel(const P& p, int vector, bool nested, Activation activation,
                     const op::Gpu& gpu) {
  const int64_t accesses = p.batch * p.spatial / vector;
  int cluster = 1;
  while (gpu.has_clusters() && cluster < kMaxCluster && p.channels * cluster < 2 * gpu.num_sms &&
         accesses >= 2 * cluster * kThreads)
    cluster *= 2;
  return {.config = {.threads = kThreads,
                     .vector = vector,
                     .slots = kChannelSlots,
                     .cluster = cluster,
                     .activation = activation,
                     .nested = nested && vector == 1},
          .blocks = p.channels * cluster,
          .cluster = cluster};
}

inline Choice cluster(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (!given.training) return op::refuse("needs training=True");
  const int vector = 16 / given.element_bytes;
  const bool aligned = p.spatial % vector == 0 &&
                       has_aligned_planes(p.x, p.x_layout, given.element_bytes) &&
                       has_aligned_planes(p.out, p.out_layout, given.element_bytes);
  const bool nested = is_nested(p.x_layout, p.out_layout);
  Start start = shared_channel(p, aligned ? vector : 1, nested, p.activation, gpu);
  if (aligned && !nested && vector <= 4) start.min_blocks = 5;  // as many as its hot path has
  return start;
}

inline bool is_nested(const BackwardParams& p) {
  return is_nested(p.grad_layout, p.x_layout) || p.out_layout.spatial.axes > 1;
}

inline Choice backward_naive(const BackwardParams& p, const Given&, const op::Gpu&) {
  return Start{{.threads = 128, .nested = is_nested(p)}, div_ceil(p.channels, int64_t(128))};
}

inline Choice backward_cluster(const BackwardParams& p, const Given& given, const op::Gpu& gpu) {
  const int bytes = given.element_bytes, vector = 16 / bytes;
  const bool aligned = p.spatial % vector == 0 &&
                       has_aligned_planes(p.grad, p.grad_layout, bytes) &&
                       has_aligned_planes(p.x, p.x_layout, bytes) &&
                       has_aligned_planes(p.grad_input, p.out_layout, bytes);
  return shared_channel(p, aligned ? vector : 1, is_nested(p), Activation::none, gpu);
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "planes",
     .file = "01_planes.cuh",
     .idea = "parameters folded once a block; one read, one write, 16-byte accesses",
     .choose = planes},
    {.name = "channels_last",
     .file = "02_channels_last.cuh",
     .idea = "a thread keeps its channels: one read, one write, 16-byte accesses",
     .choose = channels_last},
    {.name = "cluster",
     .file = "03_cluster.cuh",
     .idea = "training: the blocks of a cluster share a channel; two reads, one write",
     .choose = cluster,
     .spills = "channels whose squares no float32 holds are walked again, which is rare"},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread an element, in training a channel; any strides",
     .choose = naive,
     .general = op::with_nested<Config>},
};

inline constexpr op::Rung<BackwardParams, Given, Config> kBackwardRungs[] = {
    {.name = "cluster",
     .file = "05_backward_cluster.cuh",
     .idea = "the blocks of a cluster share a channel; two reads, one write, 16-byte accesses",
     .choose = backward_cluster,
     .kernel = "backward_cluster"},
    {.name = "naive",
     .file = "04_backward_naive.cuh",
     .idea = "one thread a channel; any strides",
     .choose = backward_naive,
     .kernel = "backward_naive",
     .general = op::with_nested<Config>},
};

}  // namespace tensorcraft::kernel::batch_norm
