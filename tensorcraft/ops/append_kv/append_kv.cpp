// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/append_kv/append_kv.hpp"

#include "tensorcraft/op/checks/angles.hpp"
#include "tensorcraft/op/launch/copy_step.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/op/launch/shared_address.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/append_kv/arguments.hpp"
#include "tensorcraft/ops/append_kv/plan.h"
#include "tensorcraft/ops/append_kv/problem.hpp"

namespace tensorcraft {
namespace kernel::append_kv {
namespace {

constexpr ConfigField kFields[] = {{"threads"}, {"lanes"},      {"heads"},
                                   {"rotates"}, {"normalizes"}, {"nested"}};
const jit::Rung& kCopy = op::make_rung(kName, "copy", "copy.cuh", op::kThreads, "CopyConfig");

Cache cache_of(const TensorView& t, const std::optional<TensorView>& scale) {
  return {.data = op::shared_address(t),
          .scale = data_of<const float>(scale),
          .scale_head = scale && scale->rank() > 0 ? scale->strides().back() : 0,
          .block = t.stride(0),
          .row = t.stride(1),
          .head = t.stride(2),
          .step = t.stride(3)};
}

Heads heads_of(const TensorView& t) {
  const int d = t.rank() - 1;
  return {.in = t.data(),
          .head = t.stride(d - 1),
          .step = t.stride(d),
          .count = int32_t(t.shape(d - 1)),
          .dim = int32_t(t.shape(d))};
}

RowMap tokens_map(const std::optional<TensorView>& t) {
  if (!t || t->size() == 0) return {};
  return op::element_map(t->select(t->rank() - 1, 0).select(t->rank() - 2, 0));
}

// Maps the scales of each token and head; one number, or one for each head, has no rows.
RowMap scales_map(const std::optional<TensorView>& scale) {
  if (!scale || scale->rank() <= 1 || scale->size() == 0) return {};
  return op::element_map(scale->select(scale->rank() - 1, 0));
}

DType parameters_dtype(const Problem& q) {
  for (const auto* t : {&q.cos, &q.q_weight, &q.k_weight})
    if (*t) return (*t)->dtype();
  return q.k.dtype();
}

void set_rotation(Params& p, const Problem& q) {
  if (!q.cos) return;
  p.positions = q.positions->data();
  p.wide_positions = q.positions->dtype() == DType::int64;
  op::set_angles(p, *q.cos, *q.sin);
  p.half = int32_t(q.half());
}

op::RungCall<CallParams, Given> rung_call(const Problem& q) {
  Params p{.k_cache = cache_of(q.k_cache_out, q.k_scale),
           .k = heads_of(q.k),
           .slots = q.slots.data(),
           .tokens = q.slots.size(),
           .places = q.places(),
           .block_size = int32_t(q.k_cache.shape(1)),
           .rotates_end = !q.v,
           .wide_slots = q.slots.dtype() == DType::int64,
           .eps = q.eps};
  if (q.v) {
    p.v_cache = cache_of(*q.v_cache_out, q.v_scale);
    p.v = heads_of(*q.v);
  }
  if (q.k_pe) p.k_pe = heads_of(*q.k_pe);
  if (q.q) {
    const int d = q.q->rank() - 1;
    p.q = heads_of(*q.q);
    p.q_out = q.q_out->writable_data();
    p.q_out_head = q.q_out->stride(d - 1);
    p.q_out_step = q.q_out->stride(d);
  }
  set_rotation(p, q);
  if (q.q_weight) p.q_weight = q.q_weight->data();
  if (q.k_weight) p.k_weight = q.k_weight->data();
  const DType parameters = parameters_dtype(q), code = q.k_cache.dtype();
  const CallParams with = with_maps(p, tokens_map(q.q), tokens_map(q.q_out), tokens_map(q.k),
                                    tokens_map(q.k_pe), tokens_map(q.v), op::element_map(q.slots),
                                    q.positions ? op::element_map(*q.positions) : RowMap{},
                                    scales_map(q.k_scale), scales_map(q.v_scale));
  return {with,
          {.element_bytes = int(dtype_bytes(q.k.dtype())),
           .code_bytes = int(dtype_bytes(code)),
           .parameter_bytes = int(dtype_bytes(parameters)),
           .rotates = q.cos.has_value(),
           .normalizes = q.q_weight || q.k_weight,
           .normalizes_q = q.q_weight.has_value(),
           .has_rows = code == DType::uint8},
          {q.k.dtype(), code, parameters}};
}

// A cache that is not written in place is copied first.
void complete(op::Plan& plan, std::string_view, const Problem& q, const DeviceInfo&) {
  if (q.v) op::add_copy(plan, kCopy, *q.v_cache_out, *q.v_cache);
  op::add_copy(plan, kCopy, q.k_cache_out, q.k_cache);
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, tokens over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

// Only the rows of the tokens move in the caches, unless these are copied.
op::Cost cost(const Problem& q) {
  const int64_t rows = q.slots.size() * q.k_cache.shape(2), values = q.v ? q.v->size() : 0;
  const double read = double(rows * q.row_dim() + values),
               written = double(rows * q.k_cache.shape(3) + values);
  op::Cost c{.bytes = read * double(dtype_bytes(q.k.dtype())) +
                      written * double(dtype_bytes(q.k_cache.dtype())) + double(q.slots.nbytes()),
             .flops = read};
  if (q.k_cache_out.data() != q.k_cache.data()) c.bytes += 2 * double(q.k_cache.nbytes());
  if (q.v && q.v_cache_out->data() != q.v_cache->data()) c.bytes += 2 * double(q.v_cache->nbytes());
  if (q.q) {
    c.bytes += 2 * double(q.q->nbytes());
    c.flops += 3 * double(q.q->size());
  }
  if (q.cos) c.bytes += 2 * double(q.slots.size() * q.half()) * double(dtype_bytes(q.cos->dtype()));
  return c;
}

std::string sizes(const Problem& q) {
  return join("tokens ", q.slots.size(), ", heads ", q.q ? q.q->shape(q.q->rank() - 2) : 0,
              ", heads_k ", q.k_cache.shape(2), ", head_dim ", q.row_dim(), ", blocks ",
              q.k_cache.shape(0), ", block_size ", q.k_cache.shape(1));
}

const op::Definition<Problem, Options> kDefinition{
    .name = kName,
    .group = "attention",
    .summary = "Writes keys and values of tokens into a paged cache, in place.",
    .details =
        "Token t goes to row slots[t] % block_size of block slots[t] // block_size; a negative "
        "slot skips it. k_cache and v_cache are written in place and returned; out=(array, array) "
        "leaves them as they are and writes copies with the tokens. Caches are (blocks, "
        "block_size, "
        "heads_k, head_dim), or with layout=\"hnd\" (blocks, heads_k, block_size, head_dim), of "
        "the dtype of k, or codes, k / k_scale rounded to nearest even and saturated: "
        "float8_e4m3fn, float8_e5m2 or int8. k is float32, float16 or bfloat16; head_dim of v may "
        "differ. Any strides, but weights are contiguous. Without v_cache and v k_cache is a "
        "latent "
        "cache, in whose rows what rotates lies last; k_pe brings it in an array of its own, then "
        "a "
        "row is k and behind it k_pe. Such a cache may be of uint8, (blocks, block_size, 656): "
        "rows "
        "of 512 codes of float8_e4m3fn, 4 float32 scales of 128 codes each, and 64 bfloat16 values "
        "that rotate. A scale is the largest magnitude of its 128 values / 448, or 1 if that is 0; "
        "all 128 read as NaN if there is a NaN or an infinity among them. "
        "Before that k, and q if it is given, are normalised by head, x / sqrt(mean(x^2) + eps) * "
        "weight, if there is a weight, and rotated as rope does with style=\"half\" if there are "
        "cos, sin and positions: the first 2 * cos.shape[1] elements of a head, or without v the "
        "last "
        "ones, of q too. All in float32, "
        "rounded once. cos, sin and weights have one dtype, that of k or float32. q is prepared "
        "for skipped tokens too. Two tokens of one slot are the caller's error. A slot behind the "
        "cache or a position behind cos is an IndexError on the CPU, before anything is written; "
        "a GPU leaves out what such a slot would write, and makes a token with such a position "
        "NaN. A graph may be replayed with other contents of all arrays, slots and positions "
        "included; it freezes shapes, eps and which options are given.",
    .inputs = {op::written("k_cache", "keys, or latent rows, in pages"),
               op::optional_written("v_cache", "values in pages; None, as v: a latent cache"),
               {"k", "(..., heads_k, head_dim): keys of tokens, or latent rows"},
               op::optional_input("v", "values, shape of k but for head_dim"),
               {"slots", op::takes(op::kIndexTypes, "% (...): where each token goes")}},
    .options =
        {op::option(
             "k_scale", &Options::k_scale,
             op::takes(op::kFloat32,
                       "%: a number, or (heads_k,), or one for each token and head, shape of k "
                       "without head_dim; keys are divided by it, and codes that are integers "
                       "need it")),
         op::option("v_scale", &Options::v_scale, op::takes(op::kFloat32, "%: the same of values")),
         op::option("k_pe", &Options::k_pe,
                    "(..., heads_k, rope_dim): without v, what a row has behind k"),
         op::option("q", &Options::q,
                    "(..., heads, head_dim), that of a row: prepared as k is; returns q_out"),
         op::option("cos", &Options::cos, "(max_seq, rotated / 2), as rope_cache gives it"),
         op::option("sin", &Options::sin, "shape and dtype of cos"),
         op::option("positions", &Options::positions,
                    op::takes(op::kIndexTypes, "%, shape of slots: the row of cos of each token")),
         op::option("q_weight", &Options::q_weight, "(head_dim,): normalises heads of q"),
         op::option("k_weight", &Options::k_weight,
                    "(head_dim,): normalises heads of k, but not k_pe"),
         op::option("eps", &Options::eps, "added to the mean square"),
         op::option("layout", &Options::layout, "order of the dimensions of the caches")},
    .out_name = "k_cache_out",
    .out_doc = "k_cache with the tokens: itself, unless out gives memory",
    .extra_outputs = {{{"v_cache_out", "v_cache with the tokens, likewise", "v_cache"},
                       &Options::v_cache_out},
                      {{"q_out", "q prepared, its shape and dtype", "q"}, &Options::q_out}},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn,
               DType::float8_e5m2, DType::int8, DType::uint8},
    .in_place = true,
    .infer = infer,
    .check = check,
    .cost = cost,
    .sizes = sizes,
    .ladder = op::make_ladder<rung_call, kRungs, complete>(kName, kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::append_kv

void append_kv(const TensorView& k_cache_out, const TensorView& k_cache,
               const std::optional<TensorView>& v_cache, const TensorView& k,
               const std::optional<TensorView>& v, const TensorView& slots,
               const AppendKvOptions& options) {
  AppendKvOptions o = options;
  if (!o.v_cache_out) o.v_cache_out = v_cache;
  if (o.q && !o.q_out) o.q_out = o.q;
  const TensorView absent = op::absent_input(k_cache.device());
  op::run(kernel::append_kv::kDefinition, k_cache_out,
          {k_cache, v_cache.value_or(absent), k, v.value_or(absent), slots}, o);
}

void append_kv(const TensorView& k_cache, const std::optional<TensorView>& v_cache,
               const TensorView& k, const std::optional<TensorView>& v, const TensorView& slots,
               const AppendKvOptions& options) {
  append_kv(k_cache, k_cache, v_cache, k, v, slots, options);
}

op::OperatorList ops::append_kv() { return op::registered(kernel::append_kv::kDefinition); }

}  // namespace tensorcraft
