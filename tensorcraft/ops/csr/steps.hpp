// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/csr/plan.h"
#include "tensorcraft/ops/csr/problem.hpp"

#include <cstddef>
#include <span>
#include <string_view>

// Shared parts of the plans of this folder's operators.
namespace tensorcraft::kernel::csr {

inline constexpr int kWorkspace = offsetof(Params, workspace);

// A kernel beside those of ladders.
const jit::Rung* kernel(std::string_view name, std::string_view file);

Params params(const Problem& q);

// Returns the dtype as which elements are moved.
DType moved(const TensorView& t);

// A step of a kernel that uses the workspace.
op::Step step(const jit::Rung& rung, std::span<const DType> types, const Choice& choice);

// Adds to the plan of a variant of csr_transpose what runs in front of its own kernel.
void complete_transpose(op::Plan& plan, std::string_view variant, const Problem& q,
                        const DeviceInfo& device);

}  // namespace tensorcraft::kernel::csr
