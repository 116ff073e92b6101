// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/moe_router/moe_router.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/moe_router/plan.h"
#include "tensorcraft/ops/moe_router/problem.hpp"

#include <cmath>

namespace tensorcraft {

template <>
struct op::EnumNames<MoeScoring> {
  static constexpr std::array<std::string_view, 3> names = {"softmax", "sigmoid", "sqrtsoftplus"};
};

namespace kernel::moe_router {

Params params(const Problem& q) {
  Params p{.logits = q.logits.data(),
           .weights = q.weights.data_as<float>(),
           .tokens = q.tokens(),
           .logits_strides = {q.logits.stride(0), q.logits.stride(1)},
           .weights_strides = {q.weights.stride(0), q.weights.stride(1)},
           .experts = int32_t(q.experts()),
           .k = int32_t(q.k),
           .groups = int32_t(q.groups),
           .group_experts = int32_t(q.experts() / q.groups),
           .group_k = int32_t(q.group_k),
           .scoring = q.scoring,
           .renormalize = q.renormalize,
           .scale = q.scale};
  if (q.bias) {
    p.bias = q.bias->data_as<const float>();
    p.bias_stride = q.bias->stride(0);
  }
  if (q.ids) {
    p.ids = q.ids->data_as<int32_t>();
    p.ids_strides[0] = q.ids->stride(0);
    p.ids_strides[1] = q.ids->stride(1);
  }
  return p;
}

namespace {

constexpr std::string_view kName = "moe_router";
constexpr ConfigField kFields[] = {{"threads"}, {"slots"}};

op::RungCall<Params, op::NoGiven> rung_call(const Problem& q) {
  return {params(q), {}, {q.logits.dtype()}};
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, tokens over all cores, a partial sort", .run = cpu},
    {.name = "reference", .idea = "double, a stable sort of every token", .run = reference},
};

// The groups of experts, and how many a token may use.
struct Groups {
  int64_t count, usable;
};
Groups groups_of(const MoeRouterOptions& o, int64_t experts) {
  if (!o.groups) {
    if (o.group_k)
      fail(ErrorKind::value, kName, ": group_k is given without groups; give the number of groups");
    return {1, 1};
  }
  const int64_t groups = *o.groups;
  if (groups < 1 || groups > kMaxGroups || experts % groups != 0)
    fail(ErrorKind::value, kName, ": groups must be in [1, ", kMaxGroups,
         "] and divide the experts, ", experts, ", got ", groups);
  const int64_t usable = o.group_k.value_or(groups);
  if (usable < 1 || usable > groups)
    fail(ErrorKind::value, kName, ": group_k must be in [1, ", groups, "], the groups, got ",
         usable);
  return usable == groups ? Groups{1, 1} : Groups{groups, usable};
}

void check_options(const MoeRouterOptions& o, int64_t experts) {
  const Groups groups = groups_of(o, experts);
  const int64_t usable = experts / groups.count * groups.usable;
  const int64_t most = std::min(int64_t(kMaxK), usable);
  if (o.k < 1 || o.k > most)
    fail(ErrorKind::value, kName, ": k must be in [1, ", most, "], at most ", kMaxK, " and the ",
         usable, " experts that a token may have, got ", o.k);
  if (!std::isfinite(o.scale))
    fail(ErrorKind::value, kName, ": scale must be finite, got ", o.scale);
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const MoeRouterOptions& o) {
  SymbolicSize tokens("tokens"), experts("experts");
  TensorMatcher({tokens, experts})
      .with_any_strides()
      .with_dtype({DType::float32, DType::float16, DType::bfloat16})
      .verify(in[0], kName, "logits");
  if (experts.unwrap() < 1 || experts.unwrap() > kMaxExperts)
    fail(ErrorKind::value, kName, ": logits: expected 1 to ", kMaxExperts,
         " experts along the last axis, got shape ", in[0].shape());
  check_options(o, experts.unwrap());
  const Dims shape = {tokens.unwrap(), o.k};
  return {{"weights", DType::float32, shape}, {"ids", DType::int32, shape}};
}

Problem check(const op::Call<MoeRouterOptions>& call) {
  const MoeRouterOptions& o = call.options;
  const TensorView& logits = call.in();
  const Dims shape = infer(call.inputs, o)[0].shape;
  op::check_like(kName, "weights", call.out(), DType::float32, shape);
  if (o.ids) op::check_like(kName, "ids", *o.ids, DType::int32, shape);
  if (o.bias) op::check_like(kName, "bias", *o.bias, DType::float32, {logits.shape(1)});
  const Groups groups = groups_of(o, logits.shape(1));
  return {call.out(), logits,       o.bias,        o.ids,         Scoring(int(o.scoring)),
          o.k,        groups.count, groups.usable, o.renormalize, o.scale};
}

op::Cost cost(const Problem& q) {
  constexpr double kFlops = 8;  // of a score
  const size_t ids = q.ids ? q.ids->nbytes() : 0, bias = q.bias ? q.bias->nbytes() : 0;
  return {.bytes = double(q.logits.nbytes() + bias + q.weights.nbytes() + ids),
          .flops = kFlops * double(q.logits.size())};
}

using Options = MoeRouterOptions;
const op::Definition<Problem, Options> kDefinition{
    .name = kName,
    .group = "mixture of experts",
    .summary = "The k experts of each token, and their weights.",
    .details =
        "A logit becomes a score in float32: softmax over all experts, sigmoid, or sqrt(softplus). "
        "Experts are chosen by their score, or by score + bias, the largest first and of equals "
        "the lower index first; without a bias the logits are compared, which have the order of "
        "the scores and no ties by rounding. A NaN is larger than any number. With groups a token "
        "has the experts of its group_k best groups alone: a group is as good as its best expert, "
        "with a bias as the sum of its two best. The weights are the scores of the chosen, without "
        "the bias; renormalize divides them by their sum, or by 1e-20 if that is larger; then they "
        "are multiplied by scale. What else is in the batch changes no bit of a token. Routing of "
        "DeepSeek-V3 (arXiv 2412.19437, 2.1.2): sigmoid, bias, groups, renormalize and scale; of "
        "Qwen3 and Mixtral: softmax and renormalize.",
    .inputs = {{"logits",
                op::takes(op::kFloatTypes, "(tokens, experts): %, any strides, 1 to 512 experts")}},
    .options = {op::positional(op::option("k", &Options::k, "experts of a token, 1 to 16")),
                op::option("scoring", &Options::scoring, "what a logit becomes"),
                op::option(
                    "bias", &Options::bias,
                    op::takes(op::kFloat32, "%, (experts): added to scores for the choice alone")),
                op::option("groups", &Options::groups,
                           "how many groups of neighbouring experts there are, at most 32"),
                op::option("group_k", &Options::group_k,
                           "how many groups a token may use; None: all"),
                op::option("renormalize", &Options::renormalize,
                           "divides the weights of a token by their sum"),
                op::option("scale", &Options::scale, "multiplies the weights, last")},
    .out_name = "weights",
    .out_doc = "float32, (tokens, k), the best expert first",
    .extra_outputs = {{{"ids", "int32, (tokens, k), which experts"}, &Options::ids}},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs>(kName, kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::moe_router

void moe_router(const TensorView& weights, const TensorView& logits,
                const MoeRouterOptions& options) {
  op::run(kernel::moe_router::kDefinition, weights, {logits}, options);
}

MoeRouterResult moe_router(const TensorView& logits, const MoeRouterOptions& options) {
  auto tensors = op::allocate(kernel::moe_router::kDefinition, {logits}, options);
  return {std::move(tensors[0]), std::move(tensors[1])};
}

op::OperatorList ops::moe_router() { return op::registered(kernel::moe_router::kDefinition); }

}  // namespace tensorcraft
