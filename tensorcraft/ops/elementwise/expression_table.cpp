// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/elementwise/expression_table.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/ops/elementwise/expression_simt.hpp"
#include "tensorcraft/ops/elementwise/plan.h"

#include <algorithm>
#include <cstring>

namespace tensorcraft::kernel::elementwise {
namespace {

using ExpressionLaunch = op::LaunchPlan<ExpressionConfig>;

std::string interpreted_config(const void* config) {
  const auto& c = *static_cast<const ExpressionConfig*>(config);
  return join("tensorcraft::kernel::elementwise::ExpressionConfig{.threads = ", c.threads, "}");
}
const jit::Rung kInterpreted{"tensorcraft/ops/elementwise/02_interpreted.cuh",
                             "tensorcraft::kernel::elementwise::interpreted",
                             "tensorcraft::kernel::elementwise::InterpretedParams",
                             interpreted_config, interpreted_instances};

// Axis i of all tensors follows the last of p without a gap in any of them.
bool merges(const ExpressionParams& p, const std::vector<const TensorView*>& tensors, int i) {
  if (p.axes == 0) return false;
  for (size_t t = 0; t < tensors.size(); ++t)
    if (p.strides[t][p.axes - 1] != tensors[t]->stride(i) * tensors[t]->shape(i)) return false;
  return true;
}

ExpressionParams params(const ExpressionProblem& q) {
  ExpressionParams p{};
  std::vector<const TensorView*> tensors{&q.out};
  for (const TensorView& t : q.inputs) {
    p.inputs[tensors.size() - 1] = t.data();
    tensors.push_back(&t);
  }
  p.out = q.out.data();
  p.size = q.out.size();
  p.num_inputs = int32_t(q.inputs.size());
  std::copy(q.program.numbers.begin(), q.program.numbers.end(), p.numbers);
  for (int i = 0; i < q.out.rank(); ++i) {
    if (q.out.shape(i) == 1) continue;
    const bool is_next = !merges(p, tensors, i);
    if (is_next) p.shape[p.axes++] = 1;
    p.shape[p.axes - 1] *= q.out.shape(i);
    for (size_t t = 0; t < tensors.size(); ++t) p.strides[t][p.axes - 1] = tensors[t]->stride(i);
  }
  if (p.axes == 0) {  // one element
    p.shape[p.axes++] = 1;
    p.strides[0][0] = 1;
  }
  return p;
}

size_t widest(const ExpressionProblem& q) {
  size_t bytes = dtype_bytes(q.out.dtype());
  for (const TensorView& t : q.inputs) bytes = std::max(bytes, dtype_bytes(t.dtype()));
  return bytes;
}

bool is_wide(const ExpressionParams& p) { return p.size > (int64_t(1) << 31) - 1; }

op::Verdict accepts_fused(const ExpressionProblem& q, const DeviceInfo&) {
  const ExpressionParams p = params(q);
  const int64_t n = int64_t(16 / widest(q));
  const int last = p.axes - 1;
  if (last > 0 && p.shape[last] % n != 0)
    return op::decline("the last axis must be whole vectors of 16 bytes");
  for (int t = 0; t <= p.num_inputs; ++t) {
    const TensorView& tensor = t ? q.inputs[size_t(t - 1)] : q.out;
    if (t && p.strides[t][last] == 0) continue;
    if (p.strides[t][last] != 1)
      return op::decline("elements of the last axis must be neighbours, or one in an input");
    for (int axis = 0; axis < last; ++axis)
      if (p.strides[t][axis] % n != 0)
        return op::decline("every stride must be a multiple of a vector of 16 bytes");
    if (!tensor.is_aligned(size_t(n) * dtype_bytes(tensor.dtype())))
      return op::decline("every address must be a multiple of a vector's bytes");
  }
  return op::accept;
}

op::Plan plan_fused(const ExpressionProblem& q, const DeviceInfo& device) {
  const ExpressionParams p = params(q);
  // As two inputs have it; more of them have as much in flight with fewer accesses each.
  const Launch like = vectorized_launch(Operation::add, p.size, int(widest(q)), device.num_sms);
  const int most = p.num_inputs <= 2 ? like.config.vectors : p.num_inputs <= 4 ? 2 : 1;
  ExpressionConfig config{.threads = like.config.threads,
                          .vectors = std::min(like.config.vectors, most),
                          .nested = p.axes > 1,
                          .wide = p.axes > 1 && is_wide(p)};
  for (int i = 0; i < p.num_inputs; ++i)
    config.shared |= int(p.strides[i + 1][p.axes - 1] == 0) << i;
  const int64_t per_block = int64_t(16 / widest(q)) * config.threads * config.vectors;
  return op::make_plan(rungs_of(q.program).fused, {},
                       ExpressionLaunch{config, div_ceil(p.size, per_block)}, p);
}

op::Verdict always(const ExpressionProblem&, const DeviceInfo&) { return op::accept; }

op::Plan plan_strided(const ExpressionProblem& q, const DeviceInfo&) {
  const ExpressionParams p = params(q);
  const ExpressionConfig config{
      .threads = kThreads, .nested = p.axes > 1, .wide = p.axes > 1 && is_wide(p)};
  return op::make_plan(rungs_of(q.program).strided, {},
                       ExpressionLaunch{config, div_ceil(p.size, int64_t(kThreads))}, p);
}

op::Verdict accepts_interpreted(const ExpressionProblem& q, const DeviceInfo&) {
  if (q.program.num_steps <= InterpretedParams::kMaxSteps) return op::accept;
  return op::decline("the parameters of a kernel hold 32 steps");
}

op::Plan plan_interpreted(const ExpressionProblem& q, const DeviceInfo&) {
  const InterpretedParams all = interpreted_params(q.program, params(q));
  const ExpressionLaunch launch{{.threads = kThreads}, div_ceil(all.p.size, int64_t(kThreads))};
  return op::make_plan(kInterpreted, {}, launch, all);
}

const op::Variant<ExpressionProblem> kTable[] = {
    {"fused", "compiled for the expression; 16-byte accesses, several in flight in each thread",
     DeviceType::cuda, accepts_fused, nullptr, plan_fused, "vectorized"},
    {"strided", "compiled for the expression; one thread an element, any strides", DeviceType::cuda,
     always, nullptr, plan_strided},
    {"naive", "one thread an element reads the steps as data: nothing is compiled for them",
     DeviceType::cuda, accepts_interpreted, nullptr, plan_interpreted, "interpreted",
     "values are indexed at run time, so they are in local memory"},
    {"cpu", "float, step after step on blocks over all cores", DeviceType::cpu, always,
     expression_cpu},
    {"reference", "double, the reference of each operator in sequence", DeviceType::cpu, always,
     expression_reference},
};

}  // namespace

std::span<const op::Variant<ExpressionProblem>> expression_table() { return kTable; }

InterpretedParams interpreted_params(const Program& program, const ExpressionParams& params) {
  InterpretedParams all{.p = params, .steps = {}, .dtypes = {}, .num_numbers = 0, .num_steps = 0};
  std::memcpy(all.steps, program.steps.data(), size_t(program.num_steps) * sizeof(Step));
  all.dtypes[0] = uint8_t(program.out());
  for (int i = 0; i < program.num_inputs; ++i)
    all.dtypes[i + 1] = uint8_t(program.inputs[size_t(i)]);
  all.num_numbers = uint8_t(program.num_numbers);
  all.num_steps = uint8_t(program.num_steps);
  return all;
}

op::Cost expression_cost(const ExpressionProblem& q) {
  double bytes = double(q.out.nbytes());
  for (const TensorView& t : q.inputs) {  // elements that broadcast axes share are read once
    double distinct = double(dtype_bytes(t.dtype()));
    for (int i = 0; i < t.rank(); ++i)
      if (t.stride(i) != 0) distinct *= double(t.shape(i));
    bytes += distinct;
  }
  return {.bytes = bytes, .flops = double(q.out.size()) * q.program.num_steps};
}

}  // namespace tensorcraft::kernel::elementwise
