// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/paged_attention/paged_attention.hpp"

#include "tensorcraft/device/latent_row.h"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/paged_attention/arguments.hpp"
#include "tensorcraft/ops/paged_attention/maps.hpp"
#include "tensorcraft/ops/paged_attention/plan.h"
#include "tensorcraft/ops/paged_attention/problem.hpp"

#include <cstddef>

namespace tensorcraft {
namespace kernel::paged_attention {
namespace {

constexpr ConfigField kFields[] = {
    {"threads"},        {"head_dim"}, {"value_dim"}, {"has_softcap"}, {"stages"},   {"row_tiles"},
    {"has_key_scales"}, {"padded"},   {"has_tree"},  {"has_pe"},      {"block_m"},  {"block_n"},
    {"takes_turns"},    {"out_tile"}, {"scaled"},    {"packed"},      {"box_rows"}, {"parts"}};
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
  if (rung == "persistent" || rung == "split_wgmma" || rung == "latent_wgmma") {
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

// Lengths live on the device: the cost counts every key that a table has room for.
op::Cost cost(const Problem& q) {
  const Params& p = q.params;
  const double keys = double(p.batch) * p.table_size * p.block_size;
  const double key_heads = double(p.heads) / p.group, rows = double(p.tokens) * p.heads;
  const int values = q.is_latent ? 0 : p.v_dim;
  const double per_request = p.batch ? double(p.tokens) / p.batch : 0;
  const int elements = p.has_rows ? LatentRow::kBytes : p.head_dim + values;
  return {.bytes = keys * key_heads * elements * double(dtype_bytes(q.code)) +
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
                                 DType::float8_e4m3fn, DType::float8_e5m2, DType::int8,
                                 DType::uint8};

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
        "Its cache may be of uint8, (blocks, block_size, 656), rows as append_kv writes them: an "
        "element is its code times its scale, so a scale of 0 makes 128 elements 0, an infinite "
        "one "
        "makes them infinite, or NaN if the code is 0, and one that is NaN makes them NaN; scores "
        "and "
        "results that such a key is seen by follow from that, others do not. q_pe and k_pe are "
        "what "
        "queries and keys have in arrays of their own behind q and k_cache, each without the other "
        "if "
        "it likes; head_dim is then the sum. "
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
         op::option("q_pe", &Options::q_pe,
                    "the elements of queries behind those of q, shape of q but for head_dim"),
         op::option("k_pe", &Options::k_pe,
                    "the elements of keys behind those of k_cache, its dtype and shape but for "
                    "head_dim"),
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
