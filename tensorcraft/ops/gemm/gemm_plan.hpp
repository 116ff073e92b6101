// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/variant.hpp"
#include "tensorcraft/ops/gemm/problem.hpp"

namespace tensorcraft::kernel::gemm {

// Drops batch axes of size 1 and merges neighbours that all operands walk as one axis.
void merge_batch(Problem& q);

// Device rows: what each rung takes, and with which tile it runs.
op::Verdict accepts_any(const Problem& q, const DeviceInfo& device);
op::Verdict accepts_vectorized(const Problem& q, const DeviceInfo& device);
op::Verdict accepts_async(const Problem& q, const DeviceInfo& device);
op::Verdict accepts_tensor_core(const Problem& q, const DeviceInfo& device);
op::Verdict accepts_tensor_core_tf32(const Problem& q, const DeviceInfo& device);
op::Verdict accepts_swizzled(const Problem& q, const DeviceInfo& device);
op::Verdict accepts_swizzled_tf32(const Problem& q, const DeviceInfo& device);
op::Verdict accepts_tma(const Problem& q, const DeviceInfo& device);
op::Verdict suits_tma(const Problem& q, const DeviceInfo& device);
op::Plan plan_naive(const Problem& q, const DeviceInfo& device);
op::Plan plan_coalesced(const Problem& q, const DeviceInfo& device);
op::Plan plan_block_tiled(const Problem& q, const DeviceInfo& device);
op::Plan plan_thread_tiled(const Problem& q, const DeviceInfo& device);
op::Plan plan_vectorized(const Problem& q, const DeviceInfo& device);
op::Plan plan_async(const Problem& q, const DeviceInfo& device);
op::Plan plan_tensor_core(const Problem& q, const DeviceInfo& device);
op::Plan plan_tensor_core_tf32(const Problem& q, const DeviceInfo& device);
op::Plan plan_swizzled(const Problem& q, const DeviceInfo& device);
op::Plan plan_swizzled_tf32(const Problem& q, const DeviceInfo& device);
op::Plan plan_tma(const Problem& q, const DeviceInfo& device);

}  // namespace tensorcraft::kernel::gemm
