// SPDX-License-Identifier: Apache-2.0
// Plans the steps in front of the kernels of csr_transpose.
#include "tensorcraft/ops/csr/steps.hpp"

namespace tensorcraft::kernel::csr {
namespace {

const jit::Rung& kCountColumns = *kernel("count_columns", "count_columns.cuh");
const jit::Rung& kSpread = *kernel("spread", "spread.cuh");
const jit::Rung& kBucketChunks = *kernel("bucket_chunks", "bucket_chunks.cuh");
const jit::Rung& kScanRuns = *kernel("scan_runs", "scan_runs.cuh");
const jit::Rung& kCountParts = *kernel("count_parts", "count_parts.cuh");
const jit::Rung& kCountTiles = *kernel("count_tiles", "count_tiles.cuh");
const jit::Rung& kScanChunks = *kernel("scan_chunks", "scan_chunks.cuh");
const jit::Rung& kOffsets = *kernel("offsets", "offsets.cuh");

// The counts of columns in the workspace, which the caller makes, become the indptr of the result.
void add_offsets(op::Plan& plan, const Problem& q) {
  Params columns = params(q);  // whose counts are added up as those of rows are
  columns.a.rows = q.cols;
  plan.add_preparation(step(kOffsets, {&q.index, 1}, offsets(columns, {}, {})), columns);
}

void count_by_atomics(op::Plan& plan, const Problem& q) {
  const Params p = params(q);
  const DType types[] = {moved(*q.data), q.index};
  plan.workspace_bytes = plan.workspace_zeroed = 2 * size_t(q.cols) * sizeof(uint32_t);
  plan.add_preparation(step(kCountColumns, {&q.index, 1}, thread_an_element(p, {}, {})), p);
  add_offsets(plan, q);
  plan.add_preparation(step(kSpread, types, warp_a_row(p, {}, {})), p);
}

void sort_by_buckets(op::Plan& plan, const Problem& q, const DeviceInfo& device) {
  const op::Gpu gpu = op::gpu_of(device);
  Params p = params(q);
  cut_buckets(p, {}, gpu);
  const int64_t parts = most_parts(p, kBucketConfig);
  const DType types[] = {moved(*q.data), q.index};
  plan.workspace_bytes = size_t(part_counts_at(p) + (parts << p.low_bits) * 2);
  plan.add_preparation(step(kBucketChunks, types, start_of_buckets(p.chunks)), p);
  plan.add_preparation(step(kScanRuns, {&q.index, 1}, Start{{}, p.buckets}), p);
  plan.add_preparation(step(kCountParts, {}, start_of_buckets(blocks_of_counts(p, gpu))), p);
}

void sort_by_tiles(op::Plan& plan, const Problem& q, const DeviceInfo& device) {
  Params p = params(q);
  cut_tiles(p, {}, op::gpu_of(device));
  plan.workspace_bytes = size_t((1 + p.chunks) * p.a.cols + p.a.rows * (p.buckets + 1)) * 4;
  plan.add_preparation(step(kCountTiles, {&q.index, 1}, start_of_tile_counts(p)), p);
  plan.add_preparation(step(kScanChunks, {&q.index, 1}, warp_32_columns(p, {}, {})), p);
}

}  // namespace

void complete_transpose(op::Plan& plan, std::string_view variant, const Problem& q,
                        const DeviceInfo& device) {
  plan.main().workspace_at = kWorkspace;
  if (variant == "tiles") return sort_by_tiles(plan, q, device);
  if (variant == "buckets") return sort_by_buckets(plan, q, device);
  count_by_atomics(plan, q);
}

}  // namespace tensorcraft::kernel::csr
