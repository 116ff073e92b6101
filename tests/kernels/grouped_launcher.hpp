// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/plan.h"
#include "tests/kernels/launcher_call.hpp"

namespace tensorcraft::test {

// Compares what launch_grouped_gemm and launch_masked_gemm make of a case; false if they cannot
// express it: groups by offsets, sizes or counts of int32. The ranges of ids are the library's own
// step.
inline bool compare_grouped(const LauncherCall& c) {
  namespace g = kernel::gemm;
  const bool is_masked = c.name() == "masked_gemm";
  const auto* offsets = c.given<TensorView>("offsets");
  const auto* array = is_masked ? &c.in(2) : offsets ? offsets : c.given<TensorView>("sizes");
  const TensorView &a = c.in(), &b = c.in(1), &d = c.out();
  if (!array || array->dtype() != DType::int32 || d.dtype() != a.dtype()) return false;
  if (b.rank() == 2) return false;  // of groups along k
  if (!c.option("transpose_b", false) || c.option("allow_tf32", false) ||
      c.given<int64_t>("expected_rows") || c.choice("gated", Gate::none) != Gate::none ||
      c.choice("activation", Activation::none) != Activation::none)
    return false;
  const auto form = is_masked ? g::GroupForm::counts
                    : offsets ? g::GroupForm::ranges
                              : g::GroupForm::sizes;
  const g::GroupedCall call{.a = a.data(),
                            .b = b.data(),
                            .d = d.writable_data(),
                            .array = array->data_as<int32_t>(),
                            .form = form,
                            .groups = b.shape(0),
                            .rows = a.shape(a.rank() - 2),
                            .n = b.shape(1),
                            .k = b.shape(2)};
  const g::GroupedParams p = g::contiguous_params(call);
  c.expect_rungs(g::kRungs, static_cast<const g::Params&>(p), g::given_of(call, c.element_bytes()));
  c.expect_argument(p);
  return true;
}

}  // namespace tensorcraft::test
