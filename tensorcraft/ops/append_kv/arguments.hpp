// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/schema.hpp"
#include "tensorcraft/ops/append_kv/append_kv.hpp"
#include "tensorcraft/ops/append_kv/problem.hpp"

// The one check of a call, and what it returns.
namespace tensorcraft::kernel::append_kv {

using Options = AppendKvOptions;
inline constexpr std::string_view kName = "append_kv";

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& o);
Problem check(const op::Call<Options>& call);

}  // namespace tensorcraft::kernel::append_kv
