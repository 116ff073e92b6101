// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/groups/groups.hpp"

#include "tensorcraft/op/choice/ladder.hpp"
#include "tensorcraft/ops/gemm/maps.hpp"

#include <cstddef>

namespace tensorcraft::kernel::gemm {
namespace {

constexpr ConfigField kFields[] = {{"threads"}};
const jit::Rung& kRanges =
    op::make_rung("gemm", "group_ranges", "groups/group_ranges.cuh", kFields, "GroupRangesConfig");

bool is_wide(const TensorView& array) { return array.dtype() == DType::int64; }

Groups groups_of(const RowGroups& from) {
  const TensorView& t = from.array;
  const int64_t step = t.stride(0);
  const auto count = [&](int64_t more) { return int32_t(t.shape(0) - more); };
  switch (from.kind) {
    case GroupArray::offsets:
      return {t.data(), step, step, count(1), GroupForm::ranges, is_wide(t), 0};
    case GroupArray::sizes:
      return {t.data(), step, 0, count(0), GroupForm::sizes, is_wide(t), 0};
    case GroupArray::counts:
      return {t.data(), step, 0, count(0), GroupForm::counts, is_wide(t), 0};
    case GroupArray::ids:
      break;
  }
  return {nullptr, 2, 1, 0, GroupForm::ranges, false, 0};  // the ranges in the workspace
}

void add_ranges(op::Plan& plan, const TensorView& ids, int64_t groups) {
  const GroupRangesParams p{.ids = ids.data(),
                            .workspace = nullptr,
                            .rows = ids.shape(0),
                            .groups = groups,
                            .step = ids.stride(0),
                            .is_wide = is_wide(ids),
                            .filler = 0};
  const GroupRangesConfig config;
  const op::Start<GroupRangesConfig> start{config, div_ceil(p.rows, int64_t(config.threads))};
  op::Step& step = plan.add_preparation(op::make_step(kRanges, {}, start), p);
  step.workspace_at = offsetof(GroupRangesParams, workspace);
  plan.workspace_bytes = plan.workspace_zeroed = size_t(groups) * 2 * sizeof(int32_t);
}

}  // namespace

void add_groups(op::Plan& plan, const Problem& q, const Params& params, const Given& given,
                const DeviceInfo& device) {
  const auto next = [](const std::optional<TensorView>& scale) {
    return scale ? scale->stride(0) : 0;
  };
  GroupedParams p{params, groups_of(*q.groups), next(q.a_scale), next(q.b_scale)};
  const bool has_ids = q.groups->kind == GroupArray::ids;
  if (has_ids) p.groups.count = int32_t(given.batch);
  plan.set_params(plan.main_index(), p);
  add_maps(plan, p, given, device);
  if (!has_ids) return;
  plan.main().workspace_at =
      int32_t(reinterpret_cast<const char*>(&p.groups.array) - reinterpret_cast<const char*>(&p));
  add_ranges(plan, q.groups->array, given.batch);
}

}  // namespace tensorcraft::kernel::gemm
