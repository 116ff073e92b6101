// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/attention/attention.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/output_type.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/attention/maps.hpp"
#include "tensorcraft/ops/attention/plan.h"
#include "tensorcraft/ops/attention/problem.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tensorcraft {

template <>
struct op::EnumNames<AttentionLayout> {
  static constexpr std::array<std::string_view, 2> names = {"bhsd", "bshd"};
};

namespace kernel::attention {
namespace {

using Options = AttentionOptions;
constexpr std::string_view kName = "attention";
constexpr int64_t kMaxSize = int64_t(1) << 30;  // kernels count in 32 bits

constexpr ConfigField kFields[] = {{"head_dim"},    {"block_m"},   {"block_n"},  {"threads"},
                                   {"options"},     {"value_dim"}, {"stages"},   {"consumers"},
                                   {"takes_turns"}, {"out_tile"},  {"out"},      {"scaled"},
                                   {"packed"},      {"padded"},    {"has_tree"}, {"parts"}};

op::RungCall<Params, Given> rung_call(const Problem& q) {
  return {
      q.params,
      {.element_bytes = int(dtype_bytes(q.dtype)), .out = op::output_type(q.out_dtype, q.dtype)},
      {q.dtype}};
}

constexpr ConfigField kCombineFields[] = {{"threads"}, {"row_warps"}};
const jit::Rung& kCombine =
    op::make_rung(kName, "combine", "combine.cuh", kCombineFields, "CombineConfig");

// The parts of split_kv lie in a workspace, from which a second step makes the result; a single
// part is the result.
void add_combine(op::Plan& plan, const Problem& q) {
  const Params& p = plan.params_as<Params>(plan.main());
  if (p.num_parts == 1) return;
  plan.first().workspace_at = offsetof(Params, parts);
  plan.workspace_bytes = size_t(key_parts(p).bytes());
  op::Step combine = op::make_step(kCombine, std::span(&q.dtype, 1), combine_start(p));
  combine.workspace_at = offsetof(Params, parts);
  plan.add(combine);
}

constexpr ConfigField kTransposeFields[] = {{"head_dim"}, {"block_n"}, {"threads"}};
const jit::Rung& kTranspose = op::make_rung(kName, "transpose_values", "transpose_values.cuh",
                                            kTransposeFields, "TransposeConfig");

// Values of float8 are transposed into a workspace by a first step.
void add_transposed_values(op::Plan& plan, const Problem& q) {
  const auto start = transpose_start(q.params);
  op::Step& step =
      plan.add_preparation(op::make_step(kTranspose, std::span(&q.dtype, 1), start), q.params);
  step.workspace_at = plan.main().workspace_at = offsetof(Params, v_tiles);
  plan.workspace_bytes = size_t(start.blocks) * value_tile_bytes(start.config.head_dim);
}

void complete(op::Plan& plan, std::string_view rung, const Problem& q, const DeviceInfo& device) {
  if (rung == "split_kv") return add_combine(plan, q);
  const bool is_on_wgmma = add_maps(plan, rung == "persistent", q, device);
  if (is_on_wgmma && q.dtype == DType::float8_e4m3fn && q.params.seq_k > 0)
    add_transposed_values(plan, q);
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu",
     .idea = "float, blocked online softmax between two matrix products, all cores",
     .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

bool is_ragged(const Options& o) { return o.cu_seqlens_q || o.cu_seqlens_k; }

// The dimensions of batch, heads and sequence; a ragged batch has none of its own.
struct Axes {
  int batch, head, row;
};
Axes axes_of(const Options& o) {
  if (is_ragged(o)) return {-1, 1, 0};
  return o.layout == AttentionLayout::bhsd ? Axes{0, 1, 2} : Axes{0, 2, 1};
}

void check_rank(const TensorView& q, const Options& o) {
  if (q.rank() == (is_ragged(o) ? 3 : 4)) return;
  if (is_ragged(o))
    fail(ErrorKind::value, kName,
         ": q: expected 3 dimensions (tokens, heads, head_dim) with cu_seqlens_q, got shape ",
         q.shape());
  fail(ErrorKind::value, kName, ": q: expected 4 dimensions (batch, ",
       o.layout == AttentionLayout::bhsd ? "heads, seq" : "seq, heads", ", head_dim), got shape ",
       q.shape());
}

Dims lse_shape(const TensorView& q, const Options& o) {
  const Axes axes = axes_of(o);
  if (axes.batch < 0) return {q.shape(axes.head), q.shape(axes.row)};
  return {q.shape(axes.batch), q.shape(axes.head), q.shape(axes.row)};
}

// The dtypes of results: that of q, and of float8 those that hold what it stands for.
std::span<const DType> result_dtypes(const TensorView& q) {
  static constexpr DType kOfFloat8[] = {DType::bfloat16, DType::float16, DType::float32};
  if (q.dtype() == DType::float8_e4m3fn) return kOfFloat8;
  static constexpr DType kOwn[] = {DType::float32, DType::float16, DType::bfloat16};
  const auto own = std::ranges::find(kOwn, q.dtype());
  return own == std::end(kOwn) ? kOwn : std::span(own, 1);
}
DType result_dtype(const TensorView& q, const Options& o) {
  const auto all = result_dtypes(q);
  const DType dtype = o.out_dtype.value_or(all[0]);
  if (std::ranges::find(all, dtype) != all.end()) return dtype;
  if (all.size() == 1)
    fail(ErrorKind::type, kName, ": out_dtype must be ", q.dtype(), ", the dtype of q, got ", dtype,
         "; of float8_e4m3fn it may be another");
  fail(ErrorKind::type, kName, ": out_dtype must be bfloat16, float16 or float32 for q of ",
       q.dtype(), ", got ", dtype);
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& o) {
  check_rank(in[0], o);
  Dims shape = in[0].shape();
  if (in[2].rank() > 0) shape[shape.rank() - 1] = in[2].shape(in[2].rank() - 1);
  std::vector<op::OutputSpec> specs{{"out", result_dtype(in[0], o), shape}};
  if (o.return_lse) specs.push_back({"lse", DType::float32, lse_shape(in[0], o)});
  return specs;
}

// The strides of a tensor; 0 along a dimension of one element, whatever its stride was.
Strides strides_of(const TensorView& t, Axes axes) {
  const auto stride = [&](int i) { return i >= 0 && t.shape(i) > 1 ? t.stride(i) : 0; };
  return {.batch = stride(axes.batch), .head = stride(axes.head), .row = stride(axes.row)};
}

// The number of requests, by the tensors that have one entry for each.
void check_requests(const Options& o, SymbolicSize& batch) {
  if (is_ragged(o)) {
    if (!o.cu_seqlens_q || !o.cu_seqlens_k)
      fail(ErrorKind::value, kName,
           ": give cu_seqlens_q and cu_seqlens_k, or neither: where the tokens of each request "
           "begin in q, and in k and v");
    SymbolicSize ends("batch + 1");
    const auto match = [&](const TensorView& t, std::string_view name) {
      TensorMatcher({ends}).with_dtype({DType::int32, DType::int64}).verify(t, kName, name);
    };
    match(*o.cu_seqlens_q, "cu_seqlens_q");
    match(*o.cu_seqlens_k, "cu_seqlens_k");
    if (ends.unwrap() == 0)
      fail(ErrorKind::value, kName,
           ": cu_seqlens_q: expected batch + 1 numbers, 0 and the end of each request, got none");
    batch.set_value(ends.unwrap() - 1);
  }
  if (const auto& lengths = o.key_lengths)
    TensorMatcher({batch})
        .with_dtype({DType::int32, DType::int64})
        .verify(*lengths, kName, "key_lengths");
  if (const auto& each = o.causal.tensor)
    TensorMatcher({batch}).with_dtype(DType::bool_).verify(*each, kName, "causal");
}

void check_scale(std::string_view name, const std::optional<TensorView>& scale,
                 const TensorView& codes, SymbolicSize& heads) {
  if (!scale) return;
  if (codes.dtype() != DType::float8_e4m3fn)
    fail(ErrorKind::type, kName, ": ", name, " needs inputs of float8_e4m3fn, got ", codes.dtype(),
         "; leave it out, or multiply `scale` by it");
  op::check_dtype(kName, name, *scale, {DType::float32});
  if (scale->size() == 1 && scale->rank() < 2) return;
  if (scale->rank() != 1)
    fail(ErrorKind::value, kName, ": ", name, ": expected one number or one a head, (",
         heads.unwrap(), ",), got shape ", scale->shape());
  TensorMatcher({heads}).with_dtype(DType::float32).verify(*scale, kName, name);
}

void check_tensors(const op::Call<Options>& call) {
  const Options& o = call.options;
  const bool ragged = is_ragged(o), bhsd = o.layout == AttentionLayout::bhsd;
  SymbolicSize batch("batch"), heads("heads"), heads_k("heads_k"), head_dim("head_dim"),
      v_dim("head_dim of v");
  SymbolicSize seq_q(ragged ? "tokens of q" : "seq_q"), seq_k(ragged ? "tokens of k" : "seq_k");
  SymbolicDType dtype({DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn});
  const auto match = [&](const TensorView& t, std::string_view name, SymbolicSize& h,
                         SymbolicSize& s, SymbolicSize& d, SymbolicDType& dtype) {
    if (ragged)
      TensorMatcher({s, h, d})
          .with_strides({kAnySize, kAnySize, 1})
          .with_dtype(dtype)
          .verify(t, kName, name);
    else
      TensorMatcher({batch, bhsd ? h : s, bhsd ? s : h, d})
          .with_strides({kAnySize, kAnySize, kAnySize, 1})
          .with_dtype(dtype)
          .verify(t, kName, name);
  };
  match(call.in(0), "q", heads, seq_q, head_dim, dtype);
  match(call.in(1), "k", heads_k, seq_k, head_dim, dtype);
  match(call.in(2), "v", heads_k, seq_k, v_dim, dtype);
  SymbolicDType result;
  if (o.out_dtype)
    result.set_options({result_dtype(call.in(0), o)});
  else
    result.set_options(result_dtypes(call.in(0)));
  match(call.out(), "out", heads, seq_q, v_dim, result);
  check_requests(o, batch);
  check_scale("q_scale", o.q_scale, call.in(0), heads);
  check_scale("k_scale", o.k_scale, call.in(1), heads_k);
  check_scale("v_scale", o.v_scale, call.in(2), heads_k);
  if (o.sinks) TensorMatcher({heads}).with_dtype(DType::float32).verify(*o.sinks, kName, "sinks");
  if (o.lse && ragged)
    TensorMatcher({heads, seq_q}).with_dtype(DType::float32).verify(*o.lse, kName, "lse");
  else if (o.lse)
    TensorMatcher({batch, heads, seq_q}).with_dtype(DType::float32).verify(*o.lse, kName, "lse");
}

void check_sizes(const TensorView& q, const TensorView& k, const TensorView& v, Axes axes) {
  const int64_t heads = q.shape(axes.head), heads_k = k.shape(axes.head);
  for (const int64_t d : {q.shape(q.rank() - 1), v.shape(v.rank() - 1)})
    if (d < 1 || d > kMaxHeadDim)
      fail(ErrorKind::unsupported, kName, ": head_dim must be 1 to ", kMaxHeadDim, ", got ", d);
  if (heads != 0 && (heads_k == 0 || heads % heads_k != 0))
    fail(ErrorKind::value, kName, ": the heads of q must be a multiple of the heads of k, got ",
         heads, " and ", heads_k);
  const int64_t batch = axes.batch < 0 ? 1 : q.shape(axes.batch);
  for (const int64_t n : {batch, heads, q.shape(axes.row), k.shape(axes.row)})
    if (n > kMaxSize)
      fail(ErrorKind::unsupported, kName, ": sizes above 2^30 are not supported, got ", n);
}

// A mask as scores [batch, heads, seq_q, seq_k] read it.
Mask mask_of(const Options& o, const Params& p, DType dtype) {
  if (!o.mask) return {};
  const TensorView& m = *o.mask;
  if (is_ragged(o))
    fail(ErrorKind::value, kName,
         ": mask is for batches without cu_seqlens_q; causal, window and key_lengths serve both");
  // A mask of codes would be as coarse as they are.
  op::check_dtype(
      kName, "mask", m,
      {DType::bool_, DType::float32, dtype == DType::float8_e4m3fn ? DType::float32 : dtype});
  const Dims scores{p.batch, p.heads, p.seq_q, p.seq_k};
  const int missing = 4 - m.rank();
  int64_t strides[4] = {};
  bool fits = missing >= 0;
  for (int i = 0; fits && i < m.rank(); ++i) {
    fits = m.shape(i) == 1 || m.shape(i) == scores[missing + i];
    strides[missing + i] = m.shape(i) == 1 ? 0 : m.stride(i);
  }
  if (!fits)
    fail(ErrorKind::value, kName, ": mask: expected a shape that broadcasts to ", scores,
         ", (batch, heads, seq_q, seq_k), got ", m.shape());
  const MaskType type = m.dtype() == DType::bool_     ? MaskType::bools
                        : m.dtype() == DType::float32 ? MaskType::float32s
                                                      : MaskType::of_q;
  return {m.data(), strides[0], strides[1], strides[2], strides[3], type};
}

Problem check(const op::Call<Options>& call) {
  const Options& o = call.options;
  const TensorView &q = call.in(0), &k = call.in(1), &v = call.in(2), &out = call.out();
  check_rank(q, o);
  check_tensors(call);
  const Axes axes = axes_of(o);
  check_sizes(q, k, v, axes);
  op::check_scores(kName, o.scale, o.softcap, o.window);
  const bool ragged = is_ragged(o), causal = o.causal.value && !o.causal.tensor;
  const auto code_scale = [&](const std::optional<TensorView>& t) {
    return CodeScale{data_of<const float>(t), int32_t(t && t->size() > 1)};
  };
  const auto is_wide = [](const std::optional<TensorView>& t) {
    return int32_t(t && t->dtype() == DType::int64);
  };
  const int64_t heads = q.shape(axes.head), head_dim = q.shape(q.rank() - 1);
  const int64_t batch = ragged ? 1 : q.shape(axes.batch);
  Params p{.q = q.data(),
           .k = k.data(),
           .v = v.data(),
           .out = out.writable_data(),
           .lse = data_of<float>(o.lse),
           .key_lengths = data_of(o.key_lengths),
           .q_starts = data_of(o.cu_seqlens_q),
           .k_starts = data_of(o.cu_seqlens_k),
           .causal_each = data_of<const uint8_t>(o.causal.tensor),
           .sinks = data_of<const float>(o.sinks),
           .q_scale = code_scale(o.q_scale),
           .k_scale = code_scale(o.k_scale),
           .v_scale = code_scale(o.v_scale),
           .q_strides = strides_of(q, axes),
           .k_strides = strides_of(k, axes),
           .v_strides = strides_of(v, axes),
           .out_strides = strides_of(out, axes),
           .batch = int32_t(batch),
           .heads = int32_t(heads),
           .group = int32_t(heads ? heads / k.shape(axes.head) : 1),
           .seq_q = int32_t(q.shape(axes.row)),
           .seq_k = int32_t(k.shape(axes.row)),
           .head_dim = int32_t(head_dim),
           .v_dim = int32_t(v.shape(v.rank() - 1)),
           .requests = int32_t(ragged ? o.cu_seqlens_q->shape(0) - 1 : batch),
           .wide_lengths = is_wide(o.key_lengths),
           .wide_q_starts = is_wide(o.cu_seqlens_q),
           .wide_k_starts = is_wide(o.cu_seqlens_k),
           .window = o.window ? window_of((*o.window)[0], (*o.window)[1], causal)
                              : window_of(-1, -1, causal),
           .scale = o.scale.value_or(1.0f / std::sqrt(float(head_dim))),
           .softcap = o.softcap.value_or(0.0f)};
  p.mask = mask_of(o, p, q.dtype());
  return {p, q.dtype(), out.dtype()};
}

// Lengths live on the device: the cost counts every key of a batch, and of a ragged one as many as
// requests of equal lengths have. A window counts as its width.
op::Cost cost(const Problem& q) {
  const Params& p = q.params;
  const double requests = std::max(p.requests, 1), share = p.q_starts ? requests : 1;
  const double sq = p.seq_q / share, sk = p.seq_k / share;
  const double heads = double(p.requests) * p.heads;
  double pairs = sq * sk;
  if (p.window.right == 0) pairs = sk >= sq ? sq * sk - sq * (sq - 1) / 2 : sk * (sk + 1) / 2;
  pairs = std::min(pairs, sq * (double(p.window.left) + p.window.right + 1));
  const double dims = double(p.head_dim) + p.v_dim;
  const double in = heads * sq * p.head_dim + heads / p.group * sk * dims;
  return {.bytes = in * double(dtype_bytes(q.dtype)) +
                   heads * sq * p.v_dim * double(dtype_bytes(q.out_dtype)) +
                   (p.lse ? 4 * heads * sq : 0),
          .flops = 2 * heads * pairs * dims};
}

std::string sizes(const Problem& q) {
  const Params& p = q.params;
  const bool ragged = p.q_starts != nullptr;
  std::string text =
      join(ragged ? "requests " : "batch ", p.requests, ", heads ", p.heads,
           ragged ? ", tokens " : ", seq_q ", p.seq_q, ", heads_k ", p.heads / p.group,
           ragged ? ", tokens of k " : ", seq_k ", p.seq_k, ", head_dim ", p.head_dim);
  if (p.v_dim != p.head_dim) text += join(", head_dim of v ", p.v_dim);
  return text;
}

const op::Definition<Problem, Options> kDefinition{
    .name = kName,
    .group = "attention",
    .summary = "Scaled dot-product attention: softmax(scale q k^T) v.",
    .details =
        "q is (batch, heads, seq_q, head_dim), k and v are (batch, heads_k, seq_k, head_dim), or "
        "with layout=\"bshd\" (batch, seq, heads, head_dim); float32, float16, bfloat16 or "
        "float8_e4m3fn; any strides, but head_dim's is 1. heads is a multiple of heads_k: query "
        "head h reads head "
        "h // (heads // heads_k). head_dim is 1 to 512, that of v may be another. Scores, softmax "
        "and sums are float32. "
        "The queries are the newest tokens: query i stands at key i + keys - seq_q, where keys is "
        "seq_k, or key_lengths[b] if given, as of a cache in a longer buffer. causal hides the "
        "keys after it; window=(left, right) hides keys more than left before or right after it, "
        "so w keys are (w - 1, 0). softcap comes after scale, and an additive mask after softcap. "
        "A sink is one logit a head, in the denominator alone. "
        "q, k and v of float8_e4m3fn are multiplied by q_scale, k_scale and v_scale, which are "
        "positive. There kernels on sm_90a with a head_dim of at most 256 also round the weights "
        "of "
        "the softmax to float8, relative to the largest of a row; they take no softcap, mask or "
        "cu_seqlens, with which `naive` serves, exact and slow. "
        "With cu_seqlens_q and cu_seqlens_k the tensors are (tokens, heads, head_dim), layout "
        "does not count, and request b has tokens cu_seqlens_q[b] to cu_seqlens_q[b + 1] of q, and "
        "likewise of k and v; tokens of none give 0. A query that sees no key gives 0 and an lse "
        "of -inf, or the sink. Any q k^T that float32 holds will do, a larger one makes its row "
        "NaN. What lies after key_lengths has no effect, NaN included; a NaN in v may also reach "
        "queries from which causal, a window or a mask hides it. cu_seqlens that decrease or leave "
        "the tensors are an IndexError on the CPU; a GPU reads and writes only tensors. A graph "
        "may be replayed with other contents of all arrays: grids depend on shapes alone. rope "
        "takes (batch, seq, heads, head_dim), which is layout=\"bshd\" here and not the "
        "default.",
    .aliases = {"flash_attention"},
    .inputs = {{"q", "queries"}, {"k", "keys"}, {"v", "values, shape of k but for head_dim"}},
    .options =
        {op::positional(op::option("scale", &Options::scale, "of q k^T; None: 1 / sqrt(head_dim)")),
         op::option("causal", &Options::causal,
                    op::takes(op::kBool,
                              "hide the keys after each query, or % (batch,): of which requests")),
         op::option("key_lengths", &Options::key_lengths,
                    op::takes(op::kIndexTypes,
                              "% (batch,): how many keys are in use, the first ones; negative "
                              "counts as 0, more than there are as all")),
         op::option("window", &Options::window,
                    "(left, right): keys before and after a query's own that it sees; -1: "
                    "all"),
         op::option("softcap", &Options::softcap, "scores become softcap * tanh(score / softcap)"),
         op::option("sinks", &Options::sinks,
                    op::takes(op::kFloat32, "% (heads,): a logit of no value")),
         op::option("mask", &Options::mask,
                    op::takes(op::kMaskTypes,
                              "broadcast to (batch, heads, seq_q, seq_k); bool: True where a key "
                              "is seen; float32 or the dtype of q: is added to scores")),
         op::option(
             "cu_seqlens_q", &Options::cu_seqlens_q,
             op::takes(op::kIndexTypes, "% (batch + 1,): where the queries of each request begin")),
         op::option("cu_seqlens_k", &Options::cu_seqlens_k,
                    op::takes(op::kIndexTypes, "% (batch + 1,): the same of keys and values")),
         op::option("q_scale", &Options::q_scale,
                    op::takes(op::kFloat32, "of float8: %, one number or (heads,); None: 1")),
         op::option("k_scale", &Options::k_scale,
                    op::takes(op::kFloat32, "of float8: %, one number or (heads_k,); None: 1")),
         op::option("v_scale", &Options::v_scale,
                    op::takes(op::kFloat32, "of float8: %, one number or (heads_k,); None: 1")),
         op::option("out_dtype", &Options::out_dtype,
                    "of float8: bfloat16, which None is, float16 or float32"),
         op::option("layout", &Options::layout, "order of the dimensions"),
         op::option("return_lse", &Options::return_lse,
                    "return (out, lse) with the logarithm of each row's sum")},
    .out_doc = "shape of q but for head_dim, dtype of q or out_dtype",
    .extra_outputs = {{{"lse",
                        "log(sum(exp(s))) with the sink, natural, float32 (batch, heads, seq_q), "
                        "or (heads, tokens)",
                        "return_lse"},
                       &Options::lse}},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn},
    .infer = infer,
    .check = check,
    .cost = cost,
    .sizes = sizes,
    .ladder = op::make_ladder<rung_call, kRungs, complete>(kName, kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::attention

void attention(const TensorView& out, const TensorView& q, const TensorView& k, const TensorView& v,
               const AttentionOptions& options) {
  op::run(kernel::attention::kDefinition, out, {q, k, v}, options);
}

AttentionResult attention(const TensorView& q, const TensorView& k, const TensorView& v,
                          const AttentionOptions& options) {
  auto tensors = op::allocate(kernel::attention::kDefinition, {q, k, v}, options);
  AttentionResult result{std::move(tensors[0]), {}};
  if (tensors.size() > 1) result.lse = std::move(tensors[1]);
  return result;
}

op::OperatorList ops::attention() { return op::registered(kernel::attention::kDefinition); }

}  // namespace tensorcraft
