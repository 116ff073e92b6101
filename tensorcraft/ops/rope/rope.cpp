// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/rope/rope.hpp"

#include "tensorcraft/op/checks/angles.hpp"
#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/rope/plan.h"
#include "tensorcraft/ops/rope/problem.hpp"

#include <cmath>

namespace tensorcraft {
namespace kernel::rope {
namespace {

constexpr std::string_view kName = "rope";

constexpr std::string_view kStyleNames[] = {"half", "interleaved"};
constexpr ConfigField kFields[] = {
    {"style", kStyleNames}, {"threads"}, {"lanes"}, {"heads"}, {"unroll"},
    {"has_cache"},          {"nested"}};

// The axes in front of heads and D.
TensorView tokens_of(const TensorView& t) {
  return t.select(t.rank() - 1, 0).select(t.rank() - 2, 0);
}

Heads heads_of(const std::optional<TensorView>& in, const std::optional<TensorView>& out) {
  if (!in || in->size() == 0) return {};
  const int d = in->rank() - 1;
  return {.in = in->data(),
          .out = out->writable_data(),
          .heads = in->shape(d - 1),
          .in_head = in->stride(d - 1),
          .out_head = out->stride(d - 1),
          .in_step = in->stride(d),
          .out_step = out->stride(d)};
}

RowMap tokens_map(const std::optional<TensorView>& t) {
  return t && t->size() > 0 ? op::element_map(tokens_of(*t)) : RowMap{};
}

CallParams params(const Problem& q) {
  const double log2 = log2_step(q.base, q.dim());
  CallParams p =
      with_maps(Params{.log2_step = log2,
                       .ratio = std::exp2(log2),
                       .x = heads_of(q.x, q.out),
                       .k = heads_of(q.k, q.k_out),
                       .tokens = q.tokens(),
                       .seq = q.seq(),
                       .start_pos = q.start_pos,
                       .by_seq = divider_of(q.seq()),
                       .half = int32_t(q.dim() / 2)},
                tokens_map(q.x), tokens_map(q.out), tokens_map(q.k), tokens_map(q.k_out), RowMap{});
  if (q.positions) {
    p.positions = q.positions->data();
    p.set_map(Params::kPositions, op::element_map(*q.positions));
    p.wide_positions = q.positions->dtype() == DType::int64;
  }
  if (q.cos) op::set_angles(p, *q.cos, *q.sin);
  return p;
}

int element_bytes(const Problem& q) { return int(dtype_bytes(q.x.dtype())); }

op::RungCall<CallParams, Given> rung_call(const Problem& q) {
  const DType cache = q.cos ? q.cos->dtype() : q.x.dtype();
  return {
      params(q),
      {.element_bytes = element_bytes(q), .cache_bytes = int(dtype_bytes(cache)), .style = q.style},
      {q.x.dtype(), cache}};
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, tokens over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

void check_x(const TensorView& x) {
  op::check_dtype(kName, "x", x, {DType::float32, DType::float16, DType::bfloat16});
  if (x.rank() < 3)
    fail(ErrorKind::value, kName, ": x: expected [..., tokens, heads, dim], got shape ", x.shape());
  const int64_t dim = x.shape(x.rank() - 1);
  if (dim % 2 != 0 || dim > (int64_t(1) << 30))
    fail(ErrorKind::value, kName,
         ": x: the last axis must have an even length, its elements "
         "rotate in pairs, got shape ",
         x.shape());
}

// k has tokens and dim of x, and heads of its own.
void check_k(const TensorView& x, const TensorView& k) {
  Dims shape = x.shape();
  if (k.rank() == x.rank()) shape[x.rank() - 2] = k.shape(x.rank() - 2);
  op::check_like(kName, "k", k, x.dtype(), shape);
  if (x.size() == 0 && k.size() > 0)
    fail(ErrorKind::value, kName, ": x: has no heads, but k has; give k as x");
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const RopeOptions& o) {
  check_x(in[0]);
  if (o.k) check_k(in[0], *o.k);
  std::vector<op::OutputSpec> specs{{"out", in[0].dtype(), in[0].shape()}};
  if (o.k) specs.push_back({"k_out", o.k->dtype(), o.k->shape()});
  return specs;
}

void check_cache(const TensorView& x, const RopeOptions& o) {
  if (o.cos.has_value() != o.sin.has_value())
    fail(ErrorKind::value, kName, ": give both cos and sin, or neither");
  if (!o.cos) {
    if (!(o.base > 0) || !std::isfinite(o.base))
      fail(ErrorKind::value, kName, ": base must be above 0 and finite, got ", o.base);
    return;
  }
  SymbolicDType dtype({x.dtype()});
  if (x.dtype() != DType::float32) dtype.set_options({x.dtype(), DType::float32});
  SymbolicSize max_seq("max_seq"), half("dim/2");
  half.set_value(x.shape(x.rank() - 1) / 2);
  TensorMatcher({max_seq, half}).with_any_strides().with_dtype(dtype).verify(*o.cos, kName, "cos");
  op::check_like(kName, "sin", *o.sin, o.cos->dtype(), o.cos->shape());
  const int64_t seq = x.shape(x.rank() - 3), rows = o.cos->shape(0);
  if (o.positions || seq == 0) return;
  if (seq > rows)
    fail(ErrorKind::index, kName, ": cos: expected a row for each of ", seq, " tokens, got ", rows);
  if (o.start_pos < 0 || o.start_pos > rows - seq)
    fail(ErrorKind::index, kName, ": start_pos must be in [0, ", rows - seq, "], got ", o.start_pos,
         " (", seq, " tokens, ", rows, " rows of cos)");
}

// As a position for each token.
std::optional<TensorView> check_positions(const TensorView& x, const RopeOptions& o) {
  if (!o.positions) return std::nullopt;
  if (o.start_pos != 0) fail(ErrorKind::value, kName, ": give positions or start_pos, not both");
  op::check_dtype(kName, "positions", *o.positions, {DType::int32, DType::int64});
  const Dims tokens(std::span<const int64_t>(x.shape()).first(size_t(x.rank() - 2)));
  if (o.positions->shape() != Dims{tokens.back()} && o.positions->shape() != tokens)
    fail(ErrorKind::value, kName, ": positions: expected shape ", tokens, " or [", tokens.back(),
         "], got ", o.positions->shape());
  return o.positions->broadcast_to(tokens);
}

// Tokens are rotated in any order, so an output may only be the tensor that it is the rotation of.
void check_apart(
    std::string_view name, const TensorView& out,
    std::initializer_list<std::pair<std::string_view, const std::optional<TensorView>*>> others) {
  for (const auto& [other, view] : others)
    if (*view) op::check_apart(kName, name, out, other, **view);
}

Problem check(const op::Call<RopeOptions>& call) {
  const TensorView& x = call.in();
  const RopeOptions& o = call.options;
  check_x(x);
  op::check_like(kName, "out", call.out(), x.dtype(), x.shape());
  if (o.k.has_value() != o.k_out.has_value())
    fail(ErrorKind::value, kName, ": k_out is k rotated; give both or neither");
  if (o.k) {
    check_k(x, *o.k);
    op::check_like(kName, "k_out", *o.k_out, o.k->dtype(), o.k->shape());
  }
  check_cache(x, o);
  const auto positions = check_positions(x, o);
  const std::optional<TensorView> in = x;
  check_apart("out", call.out(),
              {{"k", &o.k}, {"cos", &o.cos}, {"sin", &o.sin}, {"positions", &o.positions}});
  if (o.k_out)
    check_apart("k_out", *o.k_out,
                {{"x", &in}, {"cos", &o.cos}, {"sin", &o.sin}, {"positions", &o.positions}});
  return {call.out(), x,           o.k_out,        o.k,           o.cos, o.sin,
          positions,  o.start_pos, Style(o.style), double(o.base)};
}

op::Cost cost(const Problem& q) {
  const double bytes = double(q.out.nbytes()) + (q.k ? double(q.k->nbytes()) : 0);
  op::Cost c{.bytes = 2 * bytes, .flops = 3 * bytes / double(element_bytes(q))};
  if (q.positions) c.bytes += double(q.positions->nbytes());
  // Each token reads a row of cos and one of sin.
  if (q.cos) c.bytes += double(q.tokens() * q.dim()) * double(dtype_bytes(q.cos->dtype()));
  return c;
}

using Options = RopeOptions;
const op::Definition<Problem, Options> kDefinition{
    .name = kName,
    .group = "attention",
    .summary = "Rotary position embedding of x, and of k in the same launch.",
    .details =
        "Each pair of a head turns by position * base^(-2i/D), i the number of the pair: elements "
        "i and i + D/2 (half), or 2i and 2i + 1 (interleaved). x is [..., tokens, heads, D] with "
        "any strides, D even, float32, float16 or bfloat16; computed in float32, rounded once. "
        "Positions are start_pos, start_pos + 1, ... or as given. Angles are computed, or their "
        "cos and sin read from [max_seq, D/2]; a position outside those is an IndexError where "
        "the host can know it; on a GPU a token whose entry of positions is outside becomes NaN. "
        "out may be x and k_out may be k, also slices of one packed projection. Tokens come before "
        "heads: attention takes such a tensor with layout=\"bshd\", which is not its default.",
    .inputs = {{"x", "[..., tokens, heads, D]"}},
    .options = {op::option("k", &Options::k, "shape of x but for the heads; returns k_out too"),
                op::option("cos", &Options::cos,
                           op::takes(op::kFloat32, "[max_seq, D/2], dtype of x or %")),
                op::option("sin", &Options::sin, "as cos"),
                op::option("positions", &Options::positions,
                           op::takes(op::kIndexTypes, "%: [tokens], or one for each token of x")),
                op::option("start_pos", &Options::start_pos, "position of the first token"),
                op::option("style", &Options::style, "which elements are a pair"),
                op::option("base", &Options::base, "of the angles, without cos and sin")},
    .out_doc = "shape and dtype of x",
    .extra_outputs = {{{"k_out", "k rotated, where k is given", "k"}, &Options::k_out}},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .in_place = true,
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs>("rope", kFields),
    .host = kHost};

// rope_cache.

constexpr std::string_view kCacheName = "rope_cache";

op::RungCall<CacheParams, CacheGiven> cache_call(const CacheProblem& q) {
  return {{.positions = q.positions.data(),
           .out = q.out.writable_data(),
           .count = q.positions.size(),
           .out_half = q.out.stride(0),
           .out_row = q.out.stride(1),
           .out_step = q.out.stride(2),
           .log2_step = log2_step(q.base, 2 * q.half()),
           .position_map = op::element_map(q.positions),
           .wide_positions = q.positions.dtype() == DType::int64,
           .half = int32_t(q.half())},
          {},
          {q.out.dtype()}};
}

const op::HostVariant<CacheProblem> kCacheHost[] = {
    {.name = "cpu", .idea = "double, positions over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

std::vector<op::OutputSpec> infer_cache(std::span<const TensorView> in, const RopeCacheOptions& o) {
  op::check_dtype(kCacheName, "positions", in[0], {DType::int32, DType::int64});
  if (in[0].rank() != 1)
    fail(ErrorKind::value, kCacheName, ": positions: expected 1 dimension, got shape ",
         in[0].shape());
  if (o.dim < 2 || o.dim % 2 != 0 || o.dim > (int64_t(1) << 30))
    fail(ErrorKind::value, kCacheName, ": dim must be even and at least 2, got ", o.dim);
  if (o.dtype != DType::float32 && o.dtype != DType::float16 && o.dtype != DType::bfloat16)
    fail(ErrorKind::type, kCacheName, ": dtype must be float32, float16 or bfloat16, got ",
         o.dtype);
  return {{"out", o.dtype, {2, in[0].shape(0), o.dim / 2}}};
}

CacheProblem check_rope_cache(const op::Call<RopeCacheOptions>& call) {
  const RopeCacheOptions& o = call.options;
  const auto specs = infer_cache(call.inputs, o);
  op::check_like(kCacheName, "out", call.out(), specs[0].dtype, specs[0].shape);
  if (!(o.base > 0) || !std::isfinite(o.base))
    fail(ErrorKind::value, kCacheName, ": base must be above 0 and finite, got ", o.base);
  return {call.out(), call.in(), double(o.base)};
}

op::Cost cache_cost(const CacheProblem& q) {
  return {.bytes = double(q.out.nbytes() + q.positions.nbytes()),
          .flops = 25.0 * double(q.out.size())};
}

const op::Definition<CacheProblem, RopeCacheOptions> kCacheDefinition{
    .name = kCacheName,
    .group = "attention",
    .summary = "The cos and sin that rope takes.",
    .details =
        "out[0] and out[1] are cos and sin of position * base^(-2i/dim) for each position and each "
        "i below dim/2: cos, sin = rope_cache(positions, dim). With positions 0 to n - 1 they "
        "serve every position below n. Angles are computed in double.",
    .inputs = {{"positions", op::takes(op::kIndexTypes, "%, [n]")}},
    .options = {op::positional(op::option("dim", &RopeCacheOptions::dim, "D of the heads, even")),
                op::option("base", &RopeCacheOptions::base, "of the angles"),
                op::option("dtype", &RopeCacheOptions::dtype, "float32, float16 or bfloat16")},
    .out_doc = "[2, n, dim/2]",
    .dtypes = {DType::int32, DType::int64},
    .infer = infer_cache,
    .check = check_rope_cache,
    .cost = cache_cost,
    .ladder = op::make_ladder<cache_call, kCacheRungs>("rope", op::kThreads, "CacheConfig"),
    .host = kCacheHost};

}  // namespace
}  // namespace kernel::rope

void rope(const TensorView& out, const TensorView& x, const RopeOptions& options) {
  op::run(kernel::rope::kDefinition, out, {x}, options);
}

RopeResult rope(const TensorView& x, const RopeOptions& options) {
  auto tensors = op::allocate(kernel::rope::kDefinition, {x}, options);
  RopeResult result{std::move(tensors[0]), {}};
  if (options.k) result.k_out = std::move(tensors.back());
  return result;
}

void rope_cache(const TensorView& out, const TensorView& positions,
                const RopeCacheOptions& options) {
  op::run(kernel::rope::kCacheDefinition, out, {positions}, options);
}

Tensor rope_cache(const TensorView& positions, const RopeCacheOptions& options) {
  return std::move(op::allocate(kernel::rope::kCacheDefinition, {positions}, options)[0]);
}

op::OperatorList ops::rope() {
  return op::registered(kernel::rope::kDefinition, kernel::rope::kCacheDefinition);
}

}  // namespace tensorcraft
