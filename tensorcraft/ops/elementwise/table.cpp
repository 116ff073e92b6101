// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/elementwise/table.hpp"

#include "tensorcraft/op/host/element_bits.hpp"
#include "tensorcraft/op/rows.hpp"
#include "tensorcraft/ops/elementwise/elementwise_cpu.hpp"
#include "tensorcraft/ops/elementwise/elementwise_simt.hpp"
#include "tensorcraft/ops/elementwise/plan.h"

#include <algorithm>

namespace tensorcraft::kernel::elementwise {
namespace {

constexpr std::string_view kNames[] = {
    "fill",    "copy",  "astype",    "negative",  "abs",      "round",      "exp",    "log",
    "sqrt",    "rsqrt", "tanh",      "sigmoid",   "relu",     "leaky_relu", "elu",    "silu",
    "swish",   "gelu",  "gelu_tanh", "add",       "subtract", "multiply",   "divide", "maximum",
    "minimum", "pow",   "equal",     "not_equal", "less",     "less_equal", "where"};
static_assert(std::size(kNames) == size_t(Operation::where) + 1);

std::string config_text(const void* config) {
  const auto& c = *static_cast<const Config*>(config);
  return join(
      "tensorcraft::kernel::elementwise::Config{.operation = "
      "tensorcraft::kernel::elementwise::Operation::",
      word(c.operation), ", .threads = ", c.threads, ", .vectors = ", c.vectors,
      ", .single_a = ", c.single_a, ", .single_b = ", c.single_b, ", .nested = ", c.nested, "}");
}

constexpr std::string_view kParams = "tensorcraft::kernel::elementwise::Params";
const jit::Rung kNaive{"tensorcraft/ops/elementwise/00_naive.cuh",
                       "tensorcraft::kernel::elementwise::naive", kParams, config_text,
                       naive_instances};
const jit::Rung kVectorized{"tensorcraft/ops/elementwise/01_vectorized.cuh",
                            "tensorcraft::kernel::elementwise::vectorized", kParams, config_text,
                            vectorized_instances};

Params params(const Problem& q) {
  const bool fills = q.operation == Operation::fill;
  return {.a = q.a.data(),
          .b = q.b.data(),
          .out = q.out.data(),
          .size = q.out.size(),
          .a_map = op::element_map(q.a),
          .b_map = op::element_map(q.b),
          .out_map = op::element_map(q.out),
          .alpha = q.alpha,
          .fill_value = fills ? host::element_bits(q.out.dtype(), q.value) : 0};
}

// Where only bits move, one kernel serves every dtype of a size.
DType moved_as(const Problem& q, DType dtype) {
  if (q.operation != Operation::copy && q.operation != Operation::fill) return dtype;
  constexpr DType by_size[] = {DType::uint8, DType::int16, DType::int32, DType::int64};
  return by_size[std::countr_zero(dtype_bytes(dtype))];
}

op::Plan make_plan(const jit::Rung& rung, const Problem& q, const Launch& launch) {
  return op::make_plan(
      rung, {moved_as(q, q.a.dtype()), moved_as(q, q.b.dtype()), moved_as(q, q.out.dtype())},
      launch, params(q));
}

op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  const bool nested = op::element_map(q.out).axes > 1 || op::element_map(q.a).axes > 1 ||
                      op::element_map(q.b).axes > 1;
  return make_plan(kNaive, q, naive_launch(q.operation, q.out.size(), nested));
}

// One element that all of the output shares.
bool is_single(const TensorView& t) {
  for (int i = 0; i < t.rank(); ++i)
    if (t.shape(i) != 1 && t.stride(i) != 0) return false;
  return t.size() > 1;
}

op::Verdict accepts_vectorized(const Problem& q, const DeviceInfo&) {
  const TensorView* const tensors[] = {&q.out, &q.a, &q.b};
  for (int i = 0; i <= num_inputs(q.operation); ++i) {
    const TensorView& t = *tensors[i];
    if (i > 0 && is_single(t)) continue;
    if (!t.is_contiguous()) return op::decline("every tensor must be contiguous or one element");
    if (!t.is_aligned(16)) return op::decline("every address must be a multiple of 16");
  }
  return op::accept;
}

op::Plan plan_vectorized(const Problem& q, const DeviceInfo& device) {
  const size_t widest =
      std::max({dtype_bytes(q.out.dtype()), dtype_bytes(q.a.dtype()), dtype_bytes(q.b.dtype())});
  const bool single_a = num_inputs(q.operation) > 0 && is_single(q.a),
             single_b = num_inputs(q.operation) > 1 && is_single(q.b);
  return make_plan(kVectorized, q,
                   vectorized_launch(q.operation, q.out.size(), int(widest), device.num_sms,
                                     single_a, single_b));
}

op::Verdict always(const Problem&, const DeviceInfo&) { return op::accept; }

const op::Variant<Problem> kTable[] = {
    {"vectorized", "16-byte accesses, several in flight in each thread", DeviceType::cuda,
     accepts_vectorized, nullptr, plan_vectorized},
    {"naive", "one thread an element, any strides", DeviceType::cuda, always, nullptr, plan_naive},
    {"cpu", "float, blocks over all cores", DeviceType::cpu, always, cpu},
    {"reference", "double, obvious loops", DeviceType::cpu, always, reference},
};

}  // namespace

std::string_view word(Operation operation) { return kNames[size_t(operation)]; }

std::string_view name(Operation operation) {
  return operation == Operation::gelu_tanh ? "gelu" : word(operation);
}

std::span<const op::Variant<Problem>> table() { return kTable; }

op::Cost cost(const Problem& q) {
  // Elements that broadcast axes share are read once.
  const auto bytes = [](const TensorView& t) {
    double distinct = double(dtype_bytes(t.dtype()));
    for (int i = 0; i < t.rank(); ++i)
      if (t.stride(i) != 0) distinct *= double(t.shape(i));
    return distinct;
  };
  const int inputs = num_inputs(q.operation);
  return {.bytes = double(q.out.nbytes()) + (inputs > 0 ? bytes(q.a) : 0) +
                   (inputs > 1 ? bytes(q.b) : 0),
          .flops = double(q.out.size())};
}

}  // namespace tensorcraft::kernel::elementwise
