// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/paged_attention/paged_attention.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/paged_attention/maps.hpp"
#include "tensorcraft/ops/paged_attention/plan.h"
#include "tensorcraft/ops/paged_attention/problem.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tensorcraft {
namespace kernel::paged_attention {
namespace {

using Options = PagedAttentionOptions;
constexpr std::string_view kName = "paged_attention";
constexpr int64_t kMaxSize = int64_t(1) << 30;  // kernels count in 32 bits
constexpr ConfigField kFields[] = {
    {"threads"},        {"head_dim"}, {"value_dim"}, {"has_softcap"}, {"stages"},  {"row_tiles"},
    {"has_key_scales"}, {"padded"},   {"has_tree"},  {"block_m"},     {"block_n"}, {"takes_turns"},
    {"out_tile"},       {"scaled"},   {"packed"},    {"box_rows"},    {"parts"}};
constexpr ConfigField kCombineFields[] = {{"threads"}, {"row_warps"}};
constexpr ConfigField kFoldFields[] = {{"threads"}, {"queries"}, {"values"}, {"long_part"}};

op::RungCall<Params, Given> rung_call(const Problem& q) {
  return {q.params,
          {.element_bytes = int(dtype_bytes(q.dtype)),
           .code_bytes = int(dtype_bytes(q.code)),
           .is_latent = q.is_latent},
          {q.dtype, q.code}};
}

const jit::Rung& kCombine =
    op::make_rung(kName, "combine", "combine.cuh", kCombineFields, "CombineConfig");

const jit::Rung& kFold = op::make_rung(kName, "fold", "fold.cuh", kFoldFields, "FoldConfig");

// Parts lie in a workspace, from which a second step makes the result.
op::Step second_step(op::Plan& plan, const jit::Rung& rung, const Problem& q, const auto& start,
                     const KeyParts& parts) {
  plan.workspace_bytes = size_t(parts.bytes());
  op::Step step = op::make_step(rung, std::span(&q.dtype, 1), start);
  step.workspace_at = offsetof(Params, parts);
  return step;
}

void complete(op::Plan& plan, std::string_view rung, const Problem& q, const DeviceInfo& device) {
  const Params& p = q.params;
  if (rung == "persistent" || rung == "split_wgmma" || rung == "latent") {
    const Config config = add_page_maps(plan, q, device);
    if (config.parts == attention_tiles::kWritten)
      plan.add(second_step(plan, kFold, q, fold_start(p, config), parts_of_fold(p, config)), p);
  } else if (rung == "split_kv" && parts_of(p) > 1) {  // a single part is the result
    plan.first().workspace_at = offsetof(Params, parts);
    plan.add(second_step(plan, kCombine, q, combine_start(p), key_parts(p)));
  }
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, heads of requests over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

// The sizes of a call.
struct Sizes {
  int64_t batch, queries, tokens;  // queries: 0 if the batch is ragged
  int64_t heads, head_dim, v_dim;
  int64_t blocks, block_size, heads_k, table_size;
};

void check_rank(const TensorView& q, const Options& o) {
  const bool fits = q.rank() == 3 || (q.rank() == 4 && !o.cu_seqlens_q);
  if (!fits)
    fail(ErrorKind::value, kName, ": q: expected (",
         o.cu_seqlens_q ? "tokens, heads, head_dim) with cu_seqlens_q"
                        : "batch, heads, head_dim) or (batch, queries, heads, head_dim)",
         ", got shape ", q.shape());
}

// The axes of block_size and heads_k.
struct Axes {
  int row, head;
};
Axes axes_of(CacheLayout layout) { return layout == CacheLayout::nhd ? Axes{1, 2} : Axes{2, 1}; }

void check_scale(std::string_view name, const std::optional<TensorView>& scale,
                 const TensorView& cache, CacheLayout layout) {
  if (!scale) {
    if (cache.dtype() == DType::int8)
      fail(ErrorKind::value, kName, ": ", name,
           ": int8 codes are multiplied by it; give a number, or one for each head, or one for "
           "each key and head");
    return;
  }
  const Dims each(std::span<const int64_t>(cache.shape()).first(3));
  const Dims heads{each[axes_of(layout).head]};
  op::check_dtype(kName, name, *scale, {DType::float32});
  const bool is_number = scale->size() == 1 && scale->rank() <= 1;
  if (!is_number && scale->shape() != heads && scale->shape() != each)
    fail(ErrorKind::value, kName, ": ", name, ": expected a number, or shape ", heads,
         ", one for each head, or ", each, ", that of the cache without head_dim, got ",
         scale->shape());
}

void check_caches(const TensorView& q, const TensorView& k_cache, const Options& o) {
  op::check_dtype(kName, "k_cache", k_cache,
                  {q.dtype(), DType::float8_e4m3fn, DType::float8_e5m2, DType::int8});
  SymbolicSize head_dim("head_dim");
  head_dim.set_value(q.shape(q.rank() - 1));
  TensorMatcher({kAnySize, kAnySize, kAnySize, head_dim})
      .with_any_strides()
      .verify(k_cache, kName, "k_cache");
  check_scale("k_scale", o.k_scale, k_cache, o.layout);
  if (!o.v_cache) {
    if (o.v_scale)
      fail(ErrorKind::value, kName,
           ": v_scale is for v_cache, which is not given; values are "
           "keys and have k_scale");
    if (o.v_dim < 1 || o.v_dim > head_dim.unwrap())
      fail(ErrorKind::value, kName, ": v_dim must be 1 to head_dim, ", head_dim.unwrap(),
           ", if there is no v_cache: values are the first v_dim elements of keys; got ", o.v_dim);
    return;
  }
  Dims shape = k_cache.shape();
  if (o.v_cache->rank() == 4) shape[3] = o.v_cache->shape(3);
  op::check_like(kName, "v_cache", *o.v_cache, k_cache.dtype(), shape);
  check_scale("v_scale", o.v_scale, *o.v_cache, o.layout);
}

Sizes sizes_of(const TensorView& q, const TensorView& k_cache, const Options& o) {
  const Axes axes = axes_of(o.layout);
  const bool ragged = o.cu_seqlens_q.has_value(), one = q.rank() == 3;
  Sizes s{.batch = ragged ? o.lengths->shape(0) : q.shape(0),
          .queries = ragged ? 0
                     : one  ? 1
                            : q.shape(1),
          .tokens = one ? q.shape(0) : q.shape(0) * q.shape(1),
          .heads = q.shape(q.rank() - 2),
          .head_dim = q.shape(q.rank() - 1),
          .v_dim = o.v_cache ? o.v_cache->shape(3) : o.v_dim,
          .blocks = k_cache.shape(0),
          .block_size = k_cache.shape(axes.row),
          .heads_k = k_cache.shape(axes.head),
          .table_size = o.block_tables->shape(1)};
  if (s.head_dim < 1 || s.head_dim > kMaxHeadDim || s.v_dim < 1 || s.v_dim > kMaxValueDim)
    fail(ErrorKind::unsupported, kName, ": the head_dim of q must be 1 to ", kMaxHeadDim,
         " and that of values 1 to ", kMaxValueDim, ", got ", s.head_dim, " and ", s.v_dim);
  if (s.heads != 0 && (s.heads_k == 0 || s.heads % s.heads_k != 0))
    fail(ErrorKind::value, kName, ": the heads of q must be a multiple of those of k_cache, got ",
         s.heads, " and ", s.heads_k);
  for (const int64_t n : {s.batch, s.queries, s.heads, s.block_size, s.table_size})
    if (n > kMaxSize || s.block_size * s.table_size > kMaxSize)
      fail(ErrorKind::unsupported, kName, ": sizes above 2^30 are not supported, got batch ",
           s.batch, ", queries ", s.queries, ", heads ", s.heads, ", block_size ", s.block_size,
           " and tables of ", s.table_size, " blocks");
  return s;
}

// The arrays of requests: tables, lengths and where ragged queries begin.
void check_requests(const TensorView& q, const Options& o) {
  if (!o.block_tables || !o.lengths)
    fail(ErrorKind::value, kName,
         ": give block_tables and lengths: which blocks a request has, and "
         "how many keys are in use");
  op::check_dtype(kName, "lengths", *o.lengths, {DType::int32, DType::int64});
  op::check_dtype(kName, "block_tables", *o.block_tables, {DType::int32, DType::int64});
  SymbolicSize batch("batch"), max_blocks("max_blocks");
  if (!o.cu_seqlens_q) batch.set_value(q.shape(0));
  TensorMatcher({batch}).with_any_strides().verify(*o.lengths, kName, "lengths");
  TensorMatcher({batch, max_blocks})
      .with_any_strides()
      .verify(*o.block_tables, kName, "block_tables");
  if (!o.cu_seqlens_q) return;
  op::check_dtype(kName, "cu_seqlens_q", *o.cu_seqlens_q, {DType::int32, DType::int64});
  op::check_like(kName, "cu_seqlens_q", *o.cu_seqlens_q, o.cu_seqlens_q->dtype(),
                 {batch.unwrap() + 1});
}

// bool [batch, queries, queries], or a bit a key: int32 [tokens, words].
void check_mask(const Sizes& s, const Options& o) {
  if (!o.mask) return;
  const TensorView& mask = *o.mask;
  op::check_dtype(kName, "mask", mask, {DType::bool_, DType::int32});
  if (mask.dtype() == DType::bool_) {
    if (o.cu_seqlens_q)
      fail(ErrorKind::value, kName,
           ": mask: with cu_seqlens_q give packed bits, int32 (tokens, words), as requests have "
           "different numbers of queries; got bool of shape ",
           mask.shape());
    TensorMatcher({s.batch, s.queries, s.queries}).with_any_strides().verify(mask, kName, "mask");
    return;
  }
  TensorMatcher({s.tokens, kAnySize}).with_any_strides().verify(mask, kName, "mask");
  const int64_t words = mask.shape(1), needed = std::max<int64_t>(1, (s.queries + 31) / 32);
  if (words < needed || words > kMaxSize / 32)
    fail(ErrorKind::value, kName, ": mask: a bit for each query of a request needs ", needed,
         " words of 32 bits a token, and there may be 2^25, got shape ", mask.shape());
}

Sizes check_inputs(std::span<const TensorView> in, const Options& o) {
  const TensorView &q = in[0], &k_cache = in[1];
  op::check_dtype(kName, "q", q, {DType::float32, DType::float16, DType::bfloat16});
  check_rank(q, o);
  check_requests(q, o);
  check_caches(q, k_cache, o);
  op::check_scores(kName, o.scale, o.softcap, o.window);
  const Sizes s = sizes_of(q, k_cache, o);
  if (o.sinks) TensorMatcher({s.heads}).with_dtype(DType::float32).verify(*o.sinks, kName, "sinks");
  if (const auto& each = o.causal.tensor)
    TensorMatcher({s.batch}).with_dtype(DType::bool_).verify(*each, kName, "causal");
  check_mask(s, o);
  return s;
}

Dims out_shape(const TensorView& q, const Sizes& s) {
  Dims shape = q.shape();
  shape[q.rank() - 1] = s.v_dim;
  return shape;
}
Dims lse_shape(const TensorView& q) {
  return Dims(std::span<const int64_t>(q.shape()).first(size_t(q.rank() - 1)));
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& o) {
  const Sizes s = check_inputs(in, o);
  std::vector<op::OutputSpec> specs{{"out", in[0].dtype(), out_shape(in[0], s)}};
  if (o.return_lse) specs.push_back({"lse", DType::float32, lse_shape(in[0])});
  return specs;
}

Strides strides_of(const TensorView& t, bool ragged) {
  const int d = t.rank() - 1;
  return {.batch = ragged ? 0 : t.stride(0),
          .row = ragged   ? t.stride(0)
                 : d == 3 ? t.stride(1)
                          : 0,
          .head = t.stride(d - 1),
          .step = t.stride(d)};
}

TreeMask tree_of(const Sizes& s, const std::optional<TensorView>& mask, bool ragged) {
  if (!mask) return {};
  if (mask->dtype() == DType::bool_)
    return {mask->data(), mask->stride(0), mask->stride(1), mask->stride(2), 0};
  const int64_t row = mask->stride(0);
  return {mask->data(), ragged ? 0 : s.queries * row, row, mask->stride(1),
          int32_t(mask->shape(1))};
}

Cache cache_of(const TensorView& t, const std::optional<TensorView>& scale, Axes axes) {
  Cache c{.data = t.data(),
          .scale = data_of<const float>(scale),
          .block = t.stride(0),
          .row = t.stride(axes.row),
          .head = t.stride(axes.head),
          .step = t.stride(3)};
  if (scale && scale->rank() == 3) {
    c.scale_block = scale->stride(0);
    c.scale_row = scale->stride(axes.row);
    c.scale_head = scale->stride(axes.head);
  } else if (scale && scale->size() > 1) {
    c.scale_head = scale->stride(0);
  }
  return c;
}

Problem check(const op::Call<Options>& call) {
  const Options& o = call.options;
  const TensorView &q = call.in(0), &k_cache = call.in(1), &out = call.out();
  const Sizes s = check_inputs(call.inputs, o);
  op::check_like(kName, "out", out, q.dtype(), out_shape(q, s));
  if (o.lse) {
    op::check_like(kName, "lse", *o.lse, DType::float32, lse_shape(q));
    if (!o.lse->is_contiguous())
      fail(ErrorKind::value, kName, ": lse must be contiguous, got strides ", o.lse->strides());
  }
  const Axes axes = axes_of(o.layout);
  const bool ragged = o.cu_seqlens_q.has_value();
  const bool causal = o.causal.value && !o.causal.tensor;
  const auto is_wide = [](const std::optional<TensorView>& t) {
    return int32_t(t && t->dtype() == DType::int64);
  };
  const Cache k = cache_of(k_cache, o.k_scale, axes);
  return {{.q = q.data(),
           .out = out.writable_data(),
           .lse = data_of<float>(o.lse),
           .sinks = data_of<const float>(o.sinks),
           .tables = o.block_tables->data(),
           .lengths = o.lengths->data(),
           .starts = ragged ? o.cu_seqlens_q->data() : nullptr,
           .causal_each = data_of<const uint8_t>(o.causal.tensor),
           .tree = tree_of(s, o.mask, ragged),
           .q_strides = strides_of(q, ragged),
           .out_strides = strides_of(out, ragged),
           .k = k,
           .v = o.v_cache ? cache_of(*o.v_cache, o.v_scale, axes) : k,
           .table_row = o.block_tables->stride(0),
           .table_step = o.block_tables->stride(1),
           .lengths_step = o.lengths->stride(0),
           .starts_step = ragged ? o.cu_seqlens_q->stride(0) : 0,
           .tokens = s.tokens,
           .blocks = s.blocks,
           .batch = int32_t(s.batch),
           .queries = int32_t(s.queries),
           .heads = int32_t(s.heads),
           .group = int32_t(s.heads ? s.heads / s.heads_k : 1),
           .head_dim = int32_t(s.head_dim),
           .v_dim = int32_t(s.v_dim),
           .block_size = int32_t(s.block_size),
           .table_size = int32_t(s.table_size),
           .wide_tables = is_wide(o.block_tables),
           .wide_lengths = is_wide(o.lengths),
           .wide_starts = is_wide(o.cu_seqlens_q),
           .window = o.window ? window_of((*o.window)[0], (*o.window)[1], causal)
                              : window_of(-1, -1, causal),
           .scale = o.scale.value_or(1.0f / std::sqrt(float(s.head_dim))),
           .softcap = o.softcap.value_or(0.0f)},
          q.dtype(),
          k_cache.dtype(),
          !o.v_cache};
}

// Lengths live on the device: the cost counts every key that a table has room for.
op::Cost cost(const Problem& q) {
  const Params& p = q.params;
  const double keys = double(p.batch) * p.table_size * p.block_size;
  const double key_heads = double(p.heads) / p.group, rows = double(p.tokens) * p.heads;
  const int values = q.is_latent ? 0 : p.v_dim;
  const double per_request = p.batch ? double(p.tokens) / p.batch : 0;
  return {.bytes = keys * key_heads * (p.head_dim + values) * double(dtype_bytes(q.code)) +
                   rows * (p.head_dim + p.v_dim) * double(dtype_bytes(q.dtype)) +
                   (p.lse ? 4 * rows : 0),
          .flops = 2 * keys * per_request * p.heads * (p.head_dim + p.v_dim)};
}

std::string sizes(const Problem& q) {
  const Params& p = q.params;
  return join("batch ", p.batch, p.starts ? ", tokens " : ", queries ",
              p.starts ? p.tokens : p.queries, ", heads ", p.heads, ", heads_k ", p.heads / p.group,
              ", head_dim ", p.head_dim, ", v_dim ", p.v_dim, ", block_size ", p.block_size,
              ", keys of a request at most ", int64_t(p.block_size) * p.table_size);
}

constexpr DType kCacheTypes[] = {DType::float32,       DType::float16,     DType::bfloat16,
                                 DType::float8_e4m3fn, DType::float8_e5m2, DType::int8};

const op::Definition<Problem, Options> kDefinition{
    .name = kName,
    .group = "attention",
    .summary = "Attention of the newest tokens to keys and values in pages.",
    .details =
        "Key j of request b is row j % block_size of block block_tables[b, j // block_size]. "
        "Caches are (blocks, block_size, heads_k, head_dim), or with layout=\"hnd\" (blocks, "
        "heads_k, block_size, head_dim), of the dtype of q, or codes that are multiplied by their "
        "scale: float8_e4m3fn, float8_e5m2 or int8. The queries of a request are its newest "
        "tokens: query i stands at key i + lengths[b] - queries, and sees none after it unless "
        "causal=False, or causal[b] is. mask hides some of a request's newest keys, as many as it "
        "has queries: those whose draft tokens are no ancestors in a tree; all earlier keys are "
        "seen. "
        "window=(left, right) hides keys more than left before or right after it, so w keys are "
        "(w - 1, 0). softcap comes after scale. A sink is one logit a head, in the denominator "
        "alone. heads is a multiple of heads_k. head_dim is at most 576, that of values 512. Any "
        "strides. Without v_cache, latent attention: values are the first v_dim elements of keys. "
        "With cu_seqlens_q q is (tokens, heads, head_dim), and request b has tokens "
        "cu_seqlens_q[b] to cu_seqlens_q[b + 1]; tokens of none give 0. A query that "
        "sees no key gives 0 and an lse of -inf, or the sink. What lies behind lengths or in pages "
        "that no query sees has no effect, NaN included, and entries of the table behind the keys "
        "in use may hold anything. A block that a query sees and that the cache lacks is an "
        "IndexError on the CPU; a GPU does not read it. A length that a row of block_tables has no "
        "room for is a ValueError on cpu and simt; a GPU takes it as that room. The bits of a "
        "request do not depend on what else is in the batch. A graph may be replayed with other "
        "contents of all arrays, lengths, block_tables and cu_seqlens_q included: grids depend on "
        "shapes alone.",
    .inputs = {{"q", "(batch, heads, head_dim), (batch, queries, heads, head_dim), or ragged"},
               {"k_cache", op::takes(kCacheTypes, "keys in pages: %")}},
    .options =
        {op::positional(op::option("v_cache", &Options::v_cache,
                                   "values in pages, dtype and shape of k_cache but for "
                                   "head_dim; None: latent attention")),
         op::positional(
             op::option("block_tables", &Options::block_tables,
                        op::takes(op::kIndexTypes,
                                  "% (batch, max_blocks): the blocks of each request, needed"))),
         op::positional(op::option(
             "lengths", &Options::lengths,
             op::takes(op::kIndexTypes, "% (batch,): keys in use, needed; negative counts as 0"))),
         op::option("scale", &Options::scale, "of q k^T; None: 1 / sqrt(head_dim)"),
         op::option("causal", &Options::causal,
                    "hide the keys after each query; bool (batch,): of which requests"),
         op::option("window", &Options::window,
                    "(left, right): keys before and after a query's own that it sees; -1: "
                    "all"),
         op::option("mask", &Options::mask,
                    "bool (batch, queries, queries): the newest keys that each query sees, besides "
                    "what causal and window hide; or a bit a key, int32 (tokens, words), bit j % "
                    "32 of word j // 32, the form for cu_seqlens_q"),
         op::option("softcap", &Options::softcap, "scores become softcap * tanh(score / softcap)"),
         op::option("sinks", &Options::sinks,
                    op::takes(op::kFloat32, "% (heads,): a logit of no value")),
         op::option(
             "cu_seqlens_q", &Options::cu_seqlens_q,
             op::takes(op::kIndexTypes, "% (batch + 1,): where the tokens of each request begin")),
         op::option(
             "k_scale", &Options::k_scale,
             op::takes(op::kFloat32,
                       "%: a number, or (heads_k,), or one for each key and head, shape of k_cache "
                       "without head_dim")),
         op::option("v_scale", &Options::v_scale, op::takes(op::kFloat32, "%: the same of values")),
         op::option("layout", &Options::layout, "order of the dimensions of the caches"),
         op::option("v_dim", &Options::v_dim, "elements of a value, without v_cache"),
         op::option("return_lse", &Options::return_lse,
                    "return (out, lse) with the logarithm of each row's sum")},
    .out_doc = "shape of q but for head_dim, dtype of q",
    .extra_outputs = {{{"lse",
                        "log(sum(exp(s))) with the sink, natural, float32, shape of q "
                        "without head_dim",
                        "return_lse"},
                       &Options::lse}},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .infer = infer,
    .check = check,
    .cost = cost,
    .sizes = sizes,
    .ladder = op::make_ladder<rung_call, kRungs, complete>(kName, kFields),
    .host = kHost};

Options with(const Options& options, const std::optional<TensorView>& v_cache,
             const TensorView& block_tables, const TensorView& lengths) {
  Options o = options;
  o.v_cache = v_cache;
  o.block_tables = block_tables;
  o.lengths = lengths;
  return o;
}

}  // namespace
}  // namespace kernel::paged_attention

void paged_attention(const TensorView& out, const TensorView& q, const TensorView& k_cache,
                     const std::optional<TensorView>& v_cache, const TensorView& block_tables,
                     const TensorView& lengths, const PagedAttentionOptions& options) {
  op::run(kernel::paged_attention::kDefinition, out, {q, k_cache},
          kernel::paged_attention::with(options, v_cache, block_tables, lengths));
}

PagedAttentionResult paged_attention(const TensorView& q, const TensorView& k_cache,
                                     const std::optional<TensorView>& v_cache,
                                     const TensorView& block_tables, const TensorView& lengths,
                                     const PagedAttentionOptions& options) {
  auto tensors =
      op::allocate(kernel::paged_attention::kDefinition, {q, k_cache},
                   kernel::paged_attention::with(options, v_cache, block_tables, lengths));
  PagedAttentionResult result{std::move(tensors[0]), {}};
  if (tensors.size() > 1) result.lse = std::move(tensors[1]);
  return result;
}

op::OperatorList ops::paged_attention() {
  return op::registered(kernel::paged_attention::kDefinition);
}

}  // namespace tensorcraft
