// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/choice/call_plan.h"

// How rungs are chosen and started if batch entries are groups of rows; host only. How long the
// groups are is known to the device alone.
namespace tensorcraft::kernel::gemm {

// A call without strides, as launchers take it: row-major matrices, of which B is transposed.
struct GroupedCall {
  const void *a, *b;
  void* d;
  const int32_t* array;
  GroupForm form;
  int64_t groups, rows, n, k;  // rows: of all groups, or with counts of each
  bool are_apart() const { return form == GroupForm::counts; }
};

inline GroupedParams contiguous_params(const GroupedCall& call) {
  const auto& [a, b, d, array, form, groups, rows, n, k] = call;
  GroupedParams p{contiguous_params(a, Layout::row_major, b, Layout::column_major, nullptr, d, rows,
                                    n, k, 1, 0),
                  {array, 1, form == GroupForm::ranges ? 1 : 0, int32_t(groups), form, 0, 0},
                  0,
                  0};
  p.batch_rank = 1;
  p.batch_shape[0] = uint32_t(groups);
  p.b.batch_strides[0] = n * k;
  if (call.are_apart()) {
    p.a.batch_strides[0] = rows * k;
    p.d.batch_strides[0] = rows * n;
  }
  return p;
}
inline Given given_of(const GroupedCall& call, int element_bytes) {
  return {.operand_bytes = element_bytes,
          .result_bytes = element_bytes,
          .batch = call.groups,
          .grouped = kGroupsOfRows,
          .are_groups_apart = call.are_apart(),
          .expected_rows = call.are_apart() ? call.rows : div_ceil(call.rows, call.groups)};
}

// The product that tiles are compared for: every group has as many rows as is expected.
inline Params as_expected(Params p, const Given& given) {
  if (given.grouped == kGroupsOfK)
    p.k = std::min(p.k, std::max<int64_t>(given.expected_rows, 1));
  else if (given.grouped)
    p.m = std::min(p.m, std::max<int64_t>(given.expected_rows, 1));
  return p;
}

// The most tiles that groups can have, where one is so many rows and columns of D. A group of rows
// that lie one behind the other begins a tile of its own.
inline int64_t most_tiles(const Params& p, const Given& given, int rows, int cols) {
  const double of_rows = given.are_groups_apart
                             ? double(given.batch) * double(div_ceil(p.m, rows))
                             : double(p.m / rows) + double(std::min(given.batch, p.m));
  const double tiles = of_rows * double(div_ceil(p.n, cols));
  return tiles > double(op::kMaxBlocks) ? op::kMaxBlocks + 1 : int64_t(tiles);
}

// The blocks of a start: a tile each, or those that stay, which share more tiles than expected.
inline int64_t grouped_blocks(const Params& p, const Given& given, const op::Gpu& gpu,
                              const Config& c) {
  const int m = c.block_m * c.cluster_m, n = tile_columns(c) * c.cluster_n;
  const int64_t tiles = c.swap ? most_tiles(p, given, n, m) : most_tiles(p, given, m, n);
  if (c.consumers == 0) return std::max<int64_t>(tiles, 1);
  const int cluster = c.cluster_m * c.cluster_n;
  return std::clamp<int64_t>(tiles, 1, std::max(gpu.num_sms, cluster) / cluster) * cluster;
}

// A rung's choice for groups along k: as for a batch of average groups.
inline Choice along_k(const Choice& c, const Params& p, const Given& given) {
  const Config& config = c.start.config;
  if (config.consumers > 0)
    return op::refuse("groups along k end anywhere, and the copy engine brings whole boxes");
  const bool reads_single_elements = config.block_k == 0;
  if (!reads_single_elements && (a_lines(p, given).layout == Layout::row_major ||
                                 b_lines(p, given).layout == Layout::column_major))
    return op::refuse("a or b is along k, and groups along k begin anywhere");
  return c.start;
}

// Does it read single elements of lines across k? The copy engine begins at multiples of 16 bytes,
// a copy to shared memory at one of 4.
constexpr bool takes_columns_from_anywhere(const Config& c, const Given& given) {
  const bool copies_in_flight = c.stages > 1;
  return c.consumers == 0 && c.a_vector == 1 && (!copies_in_flight || given.operand_bytes % 4 == 0);
}

// A rung's choice for groups: as for a batch of such products, with blocks for all tiles there may
// be.
template <auto choose>
Choice grouped(const Params& p, const Given& given, const op::Gpu& gpu) {
  const Choice c = choose(as_expected(p, given), given, gpu);
  if (!c.refusal.empty()) return op::refuse(c.refusal);
  if (given.grouped == kGroupsOfK) return along_k(c, p, given);
  const Config& config = c.start.config;
  if (a_lines(p, given).layout != Layout::row_major && !given.are_groups_apart &&
      !takes_columns_from_anywhere(config, given))
    return op::refuse("a is not along k, and groups of its rows begin anywhere");
  Start start = c.start;
  start.blocks = grouped_blocks(p, given, gpu, config);
  return start;
}

}  // namespace tensorcraft::kernel::gemm
