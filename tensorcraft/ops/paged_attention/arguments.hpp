// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/schema.hpp"
#include "tensorcraft/ops/paged_attention/paged_attention.hpp"
#include "tensorcraft/ops/paged_attention/problem.hpp"

// The one check of a call, and what it returns.
namespace tensorcraft::kernel::paged_attention {

using Options = PagedAttentionOptions;
inline constexpr std::string_view kName = "paged_attention";

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& o);
Problem check(const op::Call<Options>& call);

}  // namespace tensorcraft::kernel::paged_attention
