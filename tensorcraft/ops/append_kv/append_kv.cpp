// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/append_kv/append_kv.hpp"

#include "tensorcraft/op/checks/angles.hpp"
#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/launch/copy_step.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/op/launch/shared_address.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/append_kv/plan.h"
#include "tensorcraft/ops/append_kv/problem.hpp"

#include <cmath>

namespace tensorcraft {
namespace kernel::append_kv {
namespace {

using Options = AppendKvOptions;
constexpr std::string_view kName = "append_kv";
constexpr int64_t kMaxSize = int64_t(1) << 30;  // kernels count heads and rows in 32 bits
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
           .v_cache = cache_of(q.v_cache_out, q.v_scale),
           .k = heads_of(q.k),
           .v = heads_of(q.v),
           .slots = q.slots.data(),
           .tokens = q.slots.size(),
           .places = q.places(),
           .block_size = int32_t(q.k_cache.shape(1)),
           .wide_slots = q.slots.dtype() == DType::int64,
           .eps = q.eps};
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
  const CallParams with =
      with_maps(p, tokens_map(q.q), tokens_map(q.q_out), tokens_map(q.k), tokens_map(q.v),
                op::element_map(q.slots), q.positions ? op::element_map(*q.positions) : RowMap{},
                scales_map(q.k_scale), scales_map(q.v_scale));
  return {with,
          {.element_bytes = int(dtype_bytes(q.k.dtype())),
           .code_bytes = int(dtype_bytes(code)),
           .parameter_bytes = int(dtype_bytes(parameters)),
           .rotates = q.cos.has_value(),
           .normalizes = q.q_weight || q.k_weight},
          {q.k.dtype(), code, parameters}};
}

// A cache that is not written in place is copied first.
void complete(op::Plan& plan, std::string_view, const Problem& q, const DeviceInfo&) {
  op::add_copy(plan, kCopy, q.v_cache_out, q.v_cache);
  op::add_copy(plan, kCopy, q.k_cache_out, q.k_cache);
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, tokens over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

// A cache as [blocks, block_size, heads_k, head_dim].
TensorView by_rows(const TensorView& cache, CacheLayout layout) {
  return layout == CacheLayout::nhd ? cache : cache.transpose(1, 2);
}

bool is_number(const TensorView& scale) { return scale.size() == 1 && scale.rank() <= 1; }

void check_cache(std::string_view name, const TensorView& cache, const TensorView& tokens,
                 const std::optional<TensorView>& scale) {
  const DType dtype = tokens.dtype();
  op::check_dtype(kName, name, cache,
                  {dtype, DType::float8_e4m3fn, DType::float8_e5m2, DType::int8});
  if (scale) {
    const std::string_view name_of_it = name == "k_cache" ? "k_scale" : "v_scale";
    const Dims each(std::span<const int64_t>(tokens.shape()).first(size_t(tokens.rank() - 1)));
    const Dims heads{each.back()};
    op::check_dtype(kName, name_of_it, *scale, {DType::float32});
    if (!is_number(*scale) && scale->shape() != heads && scale->shape() != each)
      fail(ErrorKind::value, kName, ": ", name_of_it, ": expected a number, or shape ", heads,
           ", one for each head, or ", each, ", that of ", name[0], " without head_dim, got ",
           scale->shape());
  }
  if (cache.dtype() == DType::int8 && !scale)
    fail(ErrorKind::value, kName, ": ", name, ": int8 codes need ", name[0],
         "_scale, by which they are multiplied; give a number, or one for each head, or one for "
         "each token and head");
}

// The shapes of caches, k and v; both caches have the same blocks.
void check_shapes(std::span<const TensorView> in, const Options& o) {
  const TensorView &k_cache = in[0], &v_cache = in[1], &k = in[2], &v = in[3], &slots = in[4];
  op::check_dtype(kName, "k", k, {DType::float32, DType::float16, DType::bfloat16});
  if (k.rank() < 2)
    fail(ErrorKind::value, kName, ": k: expected (..., heads_k, head_dim), got shape ", k.shape());
  op::check_dtype(kName, "slots", slots, {DType::int32, DType::int64});
  const Dims tokens(std::span<const int64_t>(k.shape()).first(size_t(k.rank() - 2)));
  op::check_like(kName, "slots", slots, slots.dtype(), tokens);
  Dims of_v = k.shape();
  if (v.rank() == k.rank()) of_v[k.rank() - 1] = v.shape(k.rank() - 1);
  op::check_like(kName, "v", v, k.dtype(), of_v);

  const bool nhd = o.layout == CacheLayout::nhd;
  SymbolicSize blocks("blocks"), block_size("block_size"), heads_k("heads_k");
  heads_k.set_value(k.shape(k.rank() - 2));
  const auto match = [&](const TensorView& cache, std::string_view name, int64_t dim) {
    SymbolicSize head_dim("head_dim");
    head_dim.set_value(dim);
    TensorMatcher({blocks, nhd ? block_size : heads_k, nhd ? heads_k : block_size, head_dim})
        .with_any_strides()
        .verify(cache, kName, name);
  };
  match(k_cache, "k_cache", k.shape(k.rank() - 1));
  match(v_cache, "v_cache", v.shape(v.rank() - 1));
  op::check_dtype(kName, "v_cache", v_cache, {k_cache.dtype()});
  check_cache("k_cache", k_cache, k, o.k_scale);
  check_cache("v_cache", v_cache, v, o.v_scale);
  for (const int64_t n :
       {block_size.unwrap(), heads_k.unwrap(), k.shape(k.rank() - 1), v.shape(v.rank() - 1)})
    if (n > kMaxSize)
      fail(ErrorKind::unsupported, kName, ": sizes above 2^30 are not supported, got ", n);
  if (slots.size() > 0 && k_cache.size() == 0)
    fail(ErrorKind::value, kName, ": k_cache: shape ", k_cache.shape(), " has no place for ",
         slots.size(), " tokens");
}

void check_q(const TensorView& k, const Options& o) {
  if (!o.q) {
    if (o.q_weight)
      fail(ErrorKind::value, kName,
           ": q_weight is for q, which is not given; give q or leave "
           "q_weight out");
    return;
  }
  Dims shape = k.shape();
  if (o.q->rank() == k.rank()) shape[k.rank() - 2] = o.q->shape(k.rank() - 2);
  op::check_like(kName, "q", *o.q, k.dtype(), shape);
  if (!o.cos && !o.q_weight)
    fail(ErrorKind::value, kName,
         ": q is given, but neither cos, sin and positions nor q_weight, so nothing would change "
         "it; leave q out");
}

void check_parameters(const TensorView& k, const Options& o) {
  const int64_t dim = k.shape(k.rank() - 1);
  const bool rotates = o.cos || o.sin || o.positions;
  if (rotates && !(o.cos && o.sin && o.positions))
    fail(ErrorKind::value, kName, ": give cos, sin and positions, or none of them; got ",
         o.cos ? "cos " : "", o.sin ? "sin " : "", o.positions ? "positions" : "");
  if (!(o.eps >= 0)) fail(ErrorKind::value, kName, ": eps must be at least 0, got ", o.eps);
  SymbolicDType dtype({k.dtype()});
  if (k.dtype() != DType::float32) dtype.set_options({k.dtype(), DType::float32});
  if (rotates) {
    SymbolicSize max_seq("max_seq"), half("rotated/2");
    TensorMatcher({max_seq, half})
        .with_any_strides()
        .with_dtype(dtype)
        .verify(*o.cos, kName, "cos");
    op::check_like(kName, "sin", *o.sin, o.cos->dtype(), o.cos->shape());
    if (2 * half.unwrap() > dim)
      fail(ErrorKind::value, kName, ": cos: its rows turn ", half.unwrap(),
           " pairs, and a head has ", dim, " elements; give at most ", dim / 2, " columns");
    op::check_dtype(kName, "positions", *o.positions, {DType::int32, DType::int64});
    const Dims tokens(std::span<const int64_t>(k.shape()).first(size_t(k.rank() - 2)));
    op::check_like(kName, "positions", *o.positions, o.positions->dtype(), tokens);
  }
  SymbolicSize head_dim("head_dim");
  head_dim.set_value(dim);
  for (const auto& [name, weight] :
       {std::pair("q_weight", &o.q_weight), std::pair("k_weight", &o.k_weight)})
    if (*weight) TensorMatcher({head_dim}).with_dtype(dtype).verify(**weight, kName, name);
}

void check_inputs(std::span<const TensorView> in, const Options& o) {
  check_shapes(in, o);
  check_q(in[2], o);
  check_parameters(in[2], o);
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& o) {
  check_inputs(in, o);
  std::vector<op::OutputSpec> specs{{"k_cache_out", in[0].dtype(), in[0].shape(), 0},
                                    {"v_cache_out", in[1].dtype(), in[1].shape(), 1}};
  if (o.q) specs.push_back({"q_out", o.q->dtype(), o.q->shape()});
  return specs;
}

// Tokens are written in any order, so what is written may only be what it is a new form of.
void check_written(const op::Call<Options>& call) {
  const Options& o = call.options;
  const auto all = {std::pair(std::string_view("k_cache_out"), std::pair(&call.out(), 0)),
                    std::pair(std::string_view("v_cache_out"), std::pair(&*o.v_cache_out, 1))};
  for (const auto& [name, out] : all)
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (int(i) != out.second) {
        constexpr std::string_view kNames[] = {"k_cache", "v_cache", "k", "v", "slots"};
        op::check_apart(kName, name, *out.first, kNames[i], call.inputs[i]);
      }
  if (!o.q_out) return;
  for (const auto& [name, t] : {std::pair("k", &call.inputs[2]), std::pair("v", &call.inputs[3]),
                                std::pair("slots", &call.inputs[4])})
    op::check_apart(kName, "q_out", *o.q_out, name, *t);
}

Problem check(const op::Call<Options>& call) {
  Options o = call.options;
  check_inputs(call.inputs, o);
  const TensorView &k_cache = call.in(0), &v_cache = call.in(1);
  for (std::optional<TensorView>* scale : {&o.k_scale, &o.v_scale})
    if (*scale && is_number(**scale)) *scale = (*scale)->at((*scale)->data(), {}, {});
  if (!o.v_cache_out) o.v_cache_out = v_cache;
  if (o.q && !o.q_out) o.q_out = o.q;
  op::check_like(kName, "k_cache_out", call.out(), k_cache.dtype(), k_cache.shape());
  op::check_like(kName, "v_cache_out", *o.v_cache_out, v_cache.dtype(), v_cache.shape());
  if (o.q_out && !o.q) fail(ErrorKind::value, kName, ": q_out is q prepared; give both");
  if (o.q) op::check_like(kName, "q_out", *o.q_out, o.q->dtype(), o.q->shape());
  check_written({call.outputs, call.inputs, o});
  return {by_rows(call.out(), o.layout),
          by_rows(*o.v_cache_out, o.layout),
          by_rows(k_cache, o.layout),
          by_rows(v_cache, o.layout),
          call.in(2),
          call.in(3),
          call.in(4),
          o.k_scale,
          o.v_scale,
          o.q,
          o.q_out,
          o.cos,
          o.sin,
          o.positions,
          o.q_weight,
          o.k_weight,
          o.eps};
}

// Only the rows of the tokens move in the caches, unless these are copied.
op::Cost cost(const Problem& q) {
  const double tokens = double(q.k.size() + q.v.size());
  op::Cost c{.bytes = tokens * double(dtype_bytes(q.k.dtype()) + dtype_bytes(q.k_cache.dtype())) +
                      double(q.slots.nbytes()),
             .flops = tokens};
  if (q.k_cache_out.data() != q.k_cache.data()) c.bytes += 2 * double(q.k_cache.nbytes());
  if (q.v_cache_out.data() != q.v_cache.data()) c.bytes += 2 * double(q.v_cache.nbytes());
  if (q.q) {
    c.bytes += 2 * double(q.q->nbytes());
    c.flops += 3 * double(q.q->size());
  }
  if (q.cos) c.bytes += 2 * double(q.slots.size() * q.half()) * double(dtype_bytes(q.cos->dtype()));
  return c;
}

std::string sizes(const Problem& q) {
  return join("tokens ", q.slots.size(), ", heads ", q.q ? q.q->shape(q.q->rank() - 2) : 0,
              ", heads_k ", q.k_cache.shape(2), ", head_dim ", q.k_cache.shape(3), ", blocks ",
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
        "differ. Any strides, but weights are contiguous. "
        "Before that k, and q if it is given, are normalised by head, x / sqrt(mean(x^2) + eps) * "
        "weight, if there is a weight, and rotated as rope does with style=\"half\" if there are "
        "cos, sin and positions: the first 2 * cos.shape[1] elements of a head. All in float32, "
        "rounded once. cos, sin and weights have one dtype, that of k or float32. q is prepared "
        "for skipped tokens too. Two tokens of one slot are the caller's error. A slot behind the "
        "cache or a position behind cos is an IndexError on the CPU, before anything is written; "
        "a GPU leaves out what such a slot would write, and makes a token with such a position "
        "NaN. A graph may be replayed with other contents of all arrays, slots and positions "
        "included; it freezes shapes, eps and which options are given.",
    .inputs = {op::written("k_cache", "keys in pages"),
               op::written("v_cache", "values in pages"),
               {"k", "(..., heads_k, head_dim): keys of tokens"},
               {"v", "values, shape of k but for head_dim"},
               {"slots", op::takes(op::kIndexTypes, "% (...): where each token goes")}},
    .options =
        {op::option(
             "k_scale", &Options::k_scale,
             op::takes(op::kFloat32,
                       "%: a number, or (heads_k,), or one for each token and head, shape of k "
                       "without head_dim; keys are divided by it, and codes that are integers "
                       "need it")),
         op::option("v_scale", &Options::v_scale, op::takes(op::kFloat32, "%: the same of values")),
         op::option("q", &Options::q, "(..., heads, head_dim): prepared as k is; returns q_out"),
         op::option("cos", &Options::cos, "(max_seq, rotated / 2), as rope_cache gives it"),
         op::option("sin", &Options::sin, "shape and dtype of cos"),
         op::option("positions", &Options::positions,
                    op::takes(op::kIndexTypes, "%, shape of slots: the row of cos of each token")),
         op::option("q_weight", &Options::q_weight, "(head_dim,): normalises heads of q"),
         op::option("k_weight", &Options::k_weight, "(head_dim,): normalises heads of k"),
         op::option("eps", &Options::eps, "added to the mean square"),
         op::option("layout", &Options::layout, "order of the dimensions of the caches")},
    .out_name = "k_cache_out",
    .out_doc = "k_cache with the tokens: itself, unless out gives memory",
    .extra_outputs = {{{"v_cache_out", "v_cache with the tokens, likewise"}, &Options::v_cache_out},
                      {{"q_out", "q prepared, its shape and dtype", "q"}, &Options::q_out}},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn,
               DType::float8_e5m2, DType::int8},
    .in_place = true,
    .infer = infer,
    .check = check,
    .cost = cost,
    .sizes = sizes,
    .ladder = op::make_ladder<rung_call, kRungs, complete>(kName, kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::append_kv

void append_kv(const TensorView& k_cache_out, const TensorView& k_cache, const TensorView& v_cache,
               const TensorView& k, const TensorView& v, const TensorView& slots,
               const AppendKvOptions& options) {
  AppendKvOptions o = options;
  if (!o.v_cache_out) o.v_cache_out = v_cache;
  if (o.q && !o.q_out) o.q_out = o.q;
  op::run(kernel::append_kv::kDefinition, k_cache_out, {k_cache, v_cache, k, v, slots}, o);
}

void append_kv(const TensorView& k_cache, const TensorView& v_cache, const TensorView& k,
               const TensorView& v, const TensorView& slots, const AppendKvOptions& options) {
  append_kv(k_cache, k_cache, v_cache, k, v, slots, options);
}

op::OperatorList ops::append_kv() { return op::registered(kernel::append_kv::kDefinition); }

}  // namespace tensorcraft
