// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/sample/sample.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/sample/plan.h"
#include "tensorcraft/ops/sample/problem.hpp"
#include "tensorcraft/ops/sample/weight.cuh"

#include <cstddef>
#include <initializer_list>
#include <limits>
#include <utility>

namespace tensorcraft {
namespace kernel::sample {
namespace {

static_assert(sizeof(Part) == kPartBytes);
constexpr std::string_view kName = "sample";
constexpr ConfigField kFields[] = {{"threads"}, {"vector"}, {"filters"}, {"nested"}};
using Dtypes = std::initializer_list<DType>;
constexpr Dtypes kFloats = {DType::float32}, kIntegers = {DType::int32, DType::int64};

const void* data_of(const NumberOrTensor& n) { return n.tensor ? n.tensor->data() : nullptr; }
const float* floats_of(const NumberOrTensor& n) { return static_cast<const float*>(data_of(n)); }
int32_t is_wide(const NumberOrTensor& n) { return n.tensor && n.tensor->dtype() == DType::int64; }
RowMap map_of(const NumberOrTensor& n) { return n.tensor ? op::element_map(*n.tensor) : RowMap{}; }
double number_of(const NumberOrTensor& n, double otherwise) {
  return n.number ? to_double(*n.number) : otherwise;
}
int64_t integer_of(const NumberOrTensor& n) { return n.number ? std::get<int64_t>(*n.number) : 0; }

op::RungCall<CallParams, Given> rung_call(const Problem& q) {
  const Params p{.logits = q.logits.data(),
                 .out = q.out.data_as<int64_t>(),
                 .temperatures = floats_of(q.temperature),
                 .top_ps = floats_of(q.top_p),
                 .min_ps = floats_of(q.min_p),
                 .top_ks = data_of(q.top_k),
                 .seeds = data_of(q.seed),
                 .offsets = data_of(q.offset),
                 .rows = q.rows(),
                 .cols = q.cols(),
                 .col_step = q.logits.stride(q.logits.rank() - 1),
                 .top_k = integer_of(q.top_k),
                 .seed = integer_of(q.seed),
                 .offset = integer_of(q.offset),
                 .temperature = float(number_of(q.temperature, 1)),
                 .top_p = float(number_of(q.top_p, 1)),
                 .min_p = float(number_of(q.min_p, 0)),
                 .wide_top_ks = is_wide(q.top_k),
                 .wide_seeds = is_wide(q.seed),
                 .wide_offsets = is_wide(q.offset),
                 .row_counts = q.row_counts};
  return {with_maps(p, op::row_map(q.logits, q.logits.rank() - 1), op::element_map(q.out),
                    map_of(q.temperature), map_of(q.top_k), map_of(q.top_p), map_of(q.min_p),
                    map_of(q.seed), map_of(q.offset)),
          {.element_bytes = int(dtype_bytes(q.logits.dtype())), .filters = q.filters()},
          {q.logits.dtype()}};
}

const jit::Rung& kPick = op::make_rung(kName, "pick", "pick.cuh", kFields);

// A second step picks from the parts of split.
void complete(op::Plan& plan, std::string_view rung, const Problem& q, const DeviceInfo&) {
  if (rung != "split") return;
  const auto& p = plan.params_as<CallParams>(plan.first());
  plan.workspace_bytes = workspace_bytes(p);
  plan.first().workspace_at = offsetof(Params, workspace);
  const auto call = rung_call(q);
  const Config config{
      .vector = vector_of(p, call.given), .filters = call.given.filters, .nested = p.is_nested()};
  plan.add(op::make_step(kPick, {call.types, call.num_types}, pick_start(p, config)));
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "rows over all cores; filters by selection and a heap", .run = cpu},
    {.name = "reference", .idea = "double, a stable sort of every row", .run = reference},
};

// The shape of out.
Dims batch_of(const TensorView& logits) {
  op::check_dtype(kName, "logits", logits, {DType::float32, DType::float16, DType::bfloat16});
  if (logits.rank() == 0)
    fail(ErrorKind::value, kName, ": logits: expected (..., vocabulary), got a single number");
  const int64_t cols = logits.shape(logits.rank() - 1);
  if (cols == 0)
    fail(ErrorKind::value, kName, ": logits: the last axis of shape ", logits.shape(),
         " must have at least one element: of none there is nothing to draw");
  if (cols > kMaxCols)
    fail(ErrorKind::unsupported, kName, ": logits: rows of more than 2^27 elements are not ",
         "supported, got ", cols);
  return Dims(std::span<const int64_t>(logits.shape()).first(size_t(logits.rank() - 1)));
}

// A setting whose tensor, if it has one, is broadcast to the shape of out.
NumberOrTensor checked(std::string_view name, const NumberOrTensor& given, const Dims& batch,
                       Dtypes dtypes) {
  if (!given.tensor) return given;
  op::check_dtype(kName, name, *given.tensor, dtypes);
  if (given.tensor->rank() != 0 && given.tensor->shape() != batch)
    fail(ErrorKind::value, kName, ": ", name, ": expected a number, or a tensor of shape () or ",
         batch, ", one for each row of logits, got shape ", given.tensor->shape());
  return given.tensor->broadcast_to(batch);
}

void check_number(std::string_view name, const NumberOrTensor& given, bool fits(double),
                  std::string_view expected) {
  if (!given.number || fits(to_double(*given.number))) return;
  fail(ErrorKind::value, kName, ": ", name, " must be ", expected, ", got ",
       to_double(*given.number));
}
void check_whole(std::string_view name, const NumberOrTensor& given) {
  if (given.number && !std::holds_alternative<int64_t>(*given.number))
    fail(ErrorKind::type, kName, ": ", name, " must be a whole number or a tensor of int32 or ",
         "int64, got ", to_double(*given.number));
}

void check_numbers(const SampleOptions& o) {
  for (const auto& [name, given] : {std::pair("temperature", &o.temperature),
                                    std::pair("seed", &o.seed), std::pair("offset", &o.offset)})
    if (!given->is_given())
      fail(ErrorKind::type, kName, ": ", name, " must be a number or a tensor");
  for (const auto& [name, given] :
       {std::pair("top_k", &o.top_k), std::pair("seed", &o.seed), std::pair("offset", &o.offset)})
    check_whole(name, *given);
  check_number(
      "temperature", o.temperature,
      [](double t) { return t >= 0 && t <= double(std::numeric_limits<float>::max()); },
      "a finite number, at least 0");
  check_number(
      "top_k", o.top_k, [](double k) { return k >= 1; }, "at least 1; leave it out to keep all");
  check_number(
      "top_p", o.top_p, [](double p) { return p > 0 && p <= 1; },
      "above 0 and at most 1; leave it out to keep all");
  check_number("min_p", o.min_p, [](double p) { return p >= 0 && p <= 1; }, "from 0 to 1");
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const SampleOptions&) {
  return {{"out", DType::int64, batch_of(in[0])}};
}

Problem check(const op::Call<SampleOptions>& call) {
  const SampleOptions& o = call.options;
  const Dims batch = batch_of(call.in());
  op::check_like(kName, "out", call.out(), DType::int64, batch);
  check_numbers(o);
  const bool own_seeds = o.seed.tensor && o.seed.tensor->rank() > 0;
  return {call.out(),
          call.in(),
          checked("temperature", o.temperature, batch, kFloats),
          checked("top_k", o.top_k, batch, kIntegers),
          checked("top_p", o.top_p, batch, kFloats),
          checked("min_p", o.min_p, batch, kFloats),
          checked("seed", o.seed, batch, kIntegers),
          checked("offset", o.offset, batch, kIntegers),
          !own_seeds};
}

op::Cost cost(const Problem& q) {
  constexpr double kFlops = 12;  // of a weight
  return {.bytes = double(q.logits.nbytes() + q.out.nbytes()),
          .flops = kFlops * double(q.logits.size())};
}

const op::Definition<Problem, SampleOptions> kDefinition{
    .name = kName,
    .group = "generate",
    .summary = "Draws an index for each row of logits, as a language model draws a token.",
    .details =
        "The weight of an index is exp(logit / temperature). Logits are ordered by value, of "
        "equals "
        "the lower index first. Then, in this order: top_k keeps the first top_k; top_p keeps the "
        "fewest first ones whose weight reaches top_p of what is left, one at least; min_p keeps "
        "those whose weight is at least min_p of the largest. Temperature 0 gives the index of the "
        "largest, as argmax does, and so does a row whose largest is NaN or an infinity; a row of "
        "-inf gives 0. At most 2^27 elements a row, any strides. "
        "Each setting is a number, or a tensor with one for each row or for all. A number out of "
        "its range is a ValueError. A tensor is not looked at: temperature that is not above 0 is "
        "0, top_k below 1, top_p of 1 or more and min_p of 0 or less keep all, and top_p of 0 or "
        "less and min_p of 1 or more the largest. "
        "Weights are whole numbers, so every device and variant draws the same. A row draws from "
        "Philox4x32-10 with the key seed and the counter (offset, 0), or (offset, row) if all rows "
        "have one seed: first which 1,024 neighbours, by their weights, then which of them. What "
        "else is in the batch changes nothing. A graph reads tensors at each replay, so one whose "
        "offset is a tensor that it advances draws anew; a number it repeats.",
    .inputs = {{"logits", "(..., vocabulary), any strides"}},
    .options = {op::option("temperature", &SampleOptions::temperature,
                           op::takes(op::kFloat32, "%: divides logits, at least 0")),
                op::option("top_k", &SampleOptions::top_k,
                           op::takes(op::kIndexTypes, "%: how many logits stay")),
                op::option("top_p", &SampleOptions::top_p,
                           op::takes(op::kFloat32,
                                     "%: how much of the weight stays, above 0 and at most 1")),
                op::option("min_p", &SampleOptions::min_p,
                           op::takes(op::kFloat32,
                                     "%: the least weight that stays, of the largest, 0 to 1")),
                op::free_number(
                    "seed", &SampleOptions::seed,
                    op::takes(
                        op::kIndexTypes,
                        "%: the key; with one for each row a request draws the same in any row")),
                op::free_number("offset", &SampleOptions::offset,
                                op::takes(op::kIndexTypes,
                                          "%: another one draws anew, so count tokens by it"))},
    .out_doc = "int64, shape of logits without the last axis",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs, complete>(kName, kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::sample

void sample(const TensorView& out, const TensorView& logits, const SampleOptions& options) {
  op::run(kernel::sample::kDefinition, out, {logits}, options);
}

Tensor sample(const TensorView& logits, const SampleOptions& options) {
  return std::move(op::allocate(kernel::sample::kDefinition, {logits}, options)[0]);
}

op::OperatorList ops::sample() { return op::registered(kernel::sample::kDefinition); }

}  // namespace tensorcraft
