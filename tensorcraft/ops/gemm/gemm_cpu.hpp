// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/variant.hpp"
#include "tensorcraft/ops/gemm/problem.hpp"

namespace tensorcraft::kernel::gemm {

// Host rows.
op::Verdict accepts_onednn(const Problem& q, const DeviceInfo&);
void onednn(const Problem& q);
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::gemm
