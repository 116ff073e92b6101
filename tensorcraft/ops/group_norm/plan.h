// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/group_norm/params.h"

#include <string_view>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::group_norm {

using Start = op::Start<Config>;
using Choice = op::Choice<Config>;

struct Given {  // what the call says besides Params
  int element_bytes;
};

inline constexpr int kMaxCluster = 8;                 // blocks that every GPU with clusters accepts
inline constexpr int kClusterSlots = 2;               // 32 bytes of each thread in flight
inline constexpr int64_t kMaxRow = int64_t(1) << 30;  // elements that Params::by_spatial takes

inline Divider spatial_divider(int64_t spatial) {
  return Divider::of(std::clamp<int64_t>(spatial, 1, kMaxRow));
}

// (batch, channels, spatial) without gaps.
inline Params contiguous_params(const void* x, const void* weight, const void* bias, void* out,
                                int64_t batch, int64_t channels, int64_t spatial, int64_t groups,
                                float eps) {
  const int64_t group_channels = channels / groups, cols = group_channels * spatial;
  const RowMap plane = op::contiguous_rows(spatial, 1);
  return {.x = x,
          .weight = weight,
          .bias = bias,
          .out = out,
          .rows = batch * groups,
          .cols = cols,
          .groups = groups,
          .group_channels = group_channels,
          .spatial = spatial,
          .x_batch = channels * spatial,
          .x_channel = spatial,
          .out_batch = channels * spatial,
          .out_channel = spatial,
          .x_spatial = plane,
          .out_spatial = plane,
          .by_spatial = spatial_divider(spatial),
          .inverse_cols = 1.0f / float(cols),
          .eps = eps};
}

inline bool is_dense(const Params& p, int64_t batch, int64_t channel, const RowMap& plane) {
  const int64_t channels = p.groups * p.group_channels;
  return (plane.axes == 0 || (plane.axes == 1 && plane.stride[0] == 1)) &&
         (channels == 1 || channel == p.spatial) &&
         (p.rows == p.groups || batch == channels * p.spatial);
}

// Elements of a 16-byte access, or 1 if rows cannot be divided into such accesses.
inline int vector_of(const Params& p, int element_bytes) {
  const int vector = 16 / element_bytes;
  const bool aligned =
      p.cols % vector == 0 && op::is_vector_aligned(p.x) && op::is_vector_aligned(p.out);
  return aligned ? vector : 1;
}

// Why accesses cannot be taken out of whole rows, or empty.
inline std::string_view rows_refusal(const Params& p) {
  if (!is_dense(p, p.x_batch, p.x_channel, p.x_spatial) ||
      !is_dense(p, p.out_batch, p.out_channel, p.out_spatial))
    return "x and out must be dense, in the order of their axes";
  if (p.cols > kMaxRow) return "groups must have at most 2^30 elements";
  if (p.rows > op::kMaxBlocks / kMaxCluster) return "needs fewer than 2^28 groups";
  return "";
}

inline Choice naive(const Params& p, const Given&, const op::Gpu&) {
  const bool nested = p.x_spatial.axes > 1 || p.out_spatial.axes > 1;
  return Start{{.threads = 128, .group = 1, .nested = nested}, div_ceil(p.rows, int64_t(128))};
}

// As many blocks a row as fill the GPU twice and still have an access for each thread.
inline Choice cluster(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = rows_refusal(p); !why.empty()) return op::refuse(why);
  const int vector = vector_of(p, given.element_bytes);
  Config config{.vector = vector, .slots = kClusterSlots, .planes = p.spatial % vector == 0};
  while (gpu.has_clusters() && config.cluster < kMaxCluster &&
         p.rows * config.cluster < 2 * gpu.num_sms &&
         p.cols / vector >= 2 * config.cluster * config.threads)
    config.cluster *= 2;
  return Start{.config = config, .blocks = p.rows * config.cluster, .cluster = config.cluster};
}

constexpr Config in_registers_config(int64_t cols, int vector, bool whole_planes) {
  Config config = op::registers_config<Config>(cols, vector);
  config.planes = whole_planes;
  return config;
}

// 768 threads of 32 elements on a multiprocessor keep enough bytes in flight.
constexpr int in_registers_min_blocks(const Config& c) {
  return c.slots * c.vector <= 32 ? 768 / c.threads : 1;
}

inline Choice in_registers(const Params& p, const Given& given, const op::Gpu&) {
  if (const auto why = rows_refusal(p); !why.empty()) return op::refuse(why);
  if (p.cols > op::kMaxRegisterRow)
    return op::refuse("groups of more than 16384 elements do not fit the registers");
  const int vector = vector_of(p, given.element_bytes);
  const Config config = in_registers_config(p.cols, vector, p.spatial % vector == 0);
  return Start{config, div_ceil(p.rows, int64_t(config.threads / config.group)),
               in_registers_min_blocks(config)};
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "in_registers",
     .file = "02_in_registers.cuh",
     .idea = "the group stays in registers: one read, one write, 16-byte accesses",
     .choose = in_registers},
    {.name = "cluster",
     .file = "01_cluster.cuh",
     .idea = "the blocks of a cluster share a group; two reads, one write, 16-byte accesses",
     .choose = cluster},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread a group; any strides",
     .choose = naive,
     .general = op::with_nested<Config>},
};

}  // namespace tensorcraft::kernel::group_norm
