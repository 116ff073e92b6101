// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/mqa_logits/mqa_logits.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/mqa_logits/maps.hpp"
#include "tensorcraft/ops/mqa_logits/plan.h"
#include "tensorcraft/ops/mqa_logits/problem.hpp"

namespace tensorcraft {
namespace kernel::mqa_logits {
namespace {

using Options = MqaLogitsOptions;
constexpr std::string_view kName = "mqa_logits";
constexpr int64_t kMaxSize = int64_t(1) << 30;  // kernels count in 32 bits
constexpr ConfigField kFields[] = {{"threads"}, {"spans"},    {"head_dim"}, {"heads"},
                                   {"queries"}, {"products"}, {"stages"},   {"filled"}};

op::RungCall<Params, Given> rung_call(const Problem& q) {
  return {q.params, {int(dtype_bytes(q.dtype))}, {q.dtype}};
}

void complete(op::Plan& plan, std::string_view rung, const Problem& q, const DeviceInfo& device) {
  if (rung == "wgmma") add_maps(plan, q.dtype, device);
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, keys of queries over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

// The sizes of a call.
struct Sizes {
  int64_t batch, queries, heads, head_dim;
  int64_t blocks, block_size, keys;
};

void check_ranks(const TensorView& q, const TensorView& k, const Options& o) {
  if (o.block_tables.has_value() != o.lengths.has_value())
    fail(ErrorKind::value, kName,
         ": give both block_tables and lengths, if keys lie in pages, or neither");
  const bool paged = o.block_tables.has_value();
  if (q.rank() != 3 && !(paged && q.rank() == 4))
    fail(ErrorKind::value, kName, ": q: expected (",
         paged ? "batch, heads, head_dim) or (batch, queries, heads, head_dim)"
               : "queries, heads, head_dim)",
         ", got shape ", q.shape());
  if (k.rank() != (paged ? 3 : 2))
    fail(ErrorKind::value, kName, ": k: expected (",
         paged ? "blocks, block_size, head_dim), as block_tables is given"
               : "keys, head_dim), as block_tables is not given",
         ", got shape ", k.shape());
}

// The shape of q without its last `drop` dimensions.
Dims leading(const TensorView& q, int drop) {
  return Dims(std::span<const int64_t>(q.shape()).first(size_t(q.rank() - drop)));
}

void check_integers(std::string_view name, const std::optional<TensorView>& t, const Dims& shape) {
  if (!t) return;
  op::check_dtype(kName, name, *t, {DType::int32, DType::int64});
  op::check_like(kName, name, *t, t->dtype(), shape);
}

void check_arrays(const TensorView& q, const TensorView& k, const TensorView& weights,
                  const Options& o) {
  op::check_dtype(kName, "q", q,
                  {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn});
  Dims keys = k.shape();
  keys[k.rank() - 1] = q.shape(q.rank() - 1);
  op::check_like(kName, "k", k, q.dtype(), keys);
  op::check_like(kName, "weights", weights, DType::float32, leading(q, 1));
  if (o.k_scale) op::check_like(kName, "k_scale", *o.k_scale, DType::float32, leading(k, 1));
  check_integers("k_start", o.k_start, leading(q, 2));
  check_integers("k_end", o.k_end, leading(q, 2));
  check_integers("lengths", o.lengths, {q.shape(0)});
  if (!o.block_tables) return;
  op::check_dtype(kName, "block_tables", *o.block_tables, {DType::int32, DType::int64});
  TensorMatcher({q.shape(0), kAnySize})
      .with_any_strides()
      .verify(*o.block_tables, kName, "block_tables");
}

Sizes sizes_of(std::span<const TensorView> in, const Options& o) {
  const TensorView &q = in[0], &k = in[1];
  check_ranks(q, k, o);
  check_arrays(q, k, in[2], o);
  const bool paged = o.block_tables.has_value();
  Sizes s{.batch = paged ? q.shape(0) : 1,
          .queries = !paged          ? q.shape(0)
                     : q.rank() == 4 ? q.shape(1)
                                     : 1,
          .heads = q.shape(q.rank() - 2),
          .head_dim = q.shape(q.rank() - 1),
          .blocks = paged ? k.shape(0) : 1,
          .block_size = k.shape(paged ? 1 : 0),
          .keys = k.shape(0)};
  const int64_t table_size = paged ? o.block_tables->shape(1) : 1;
  for (const int64_t n :
       {s.batch, s.queries, s.heads, s.head_dim, s.block_size, table_size, s.heads * s.head_dim})
    if (n > kMaxSize || s.block_size * table_size > kMaxSize)
      fail(ErrorKind::unsupported, kName, ": sizes above 2^30 are not supported, got batch ",
           s.batch, ", queries ", s.queries, ", heads ", s.heads, ", head_dim ", s.head_dim,
           ", block_size ", s.block_size, " and ", table_size, " blocks of a request");
  s.keys = s.block_size * table_size;
  return s;
}

Dims out_shape(const TensorView& q, int64_t keys) {
  Dims shape = leading(q, 1);
  shape[q.rank() - 2] = keys;
  return shape;
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& o) {
  return {{"out", DType::float32, out_shape(in[0], sizes_of(in, o).keys)}};
}

// Strides of an array whose first dimensions are those of q: without pages rows of one request.
struct RowStrides {
  int64_t batch, row;
};
RowStrides row_strides(const TensorView& t, int rows_rank, bool paged) {
  if (!paged) return {0, t.stride(0)};
  return {t.stride(0), rows_rank == 2 ? t.stride(1) : 0};
}

Integers integers(const std::optional<TensorView>& t, RowStrides strides) {
  if (!t) return {};
  return {t->data(), strides.batch, strides.row, int32_t(t->dtype() == DType::int64)};
}

Problem check(const op::Call<Options>& call) {
  const Options& o = call.options;
  const TensorView &q = call.in(0), &k = call.in(1), &weights = call.in(2), &out = call.out();
  const Sizes s = sizes_of(call.inputs, o);
  op::check_like(kName, "out", out, DType::float32, out_shape(q, s.keys));
  const bool paged = o.block_tables.has_value();
  const int rank = q.rank() - 2;  // of rows
  const auto rows_of = [&](const TensorView& t) { return row_strides(t, rank, paged); };
  const auto ranges = [&](const std::optional<TensorView>& t) {
    return integers(t, t ? rows_of(*t) : RowStrides{});
  };
  const auto key_strides = [&](const TensorView& t, int64_t step) -> KeyStrides {
    return {paged ? t.stride(0) : 0, t.stride(paged ? 1 : 0), step};
  };
  const RowStrides of_q = rows_of(q), of_weights = rows_of(weights), of_out = rows_of(out);
  return {{.q = q.data(),
           .k = k.data(),
           .weights = weights.data_as<const float>(),
           .k_scale = data_of<const float>(o.k_scale),
           .out = out.data_as<float>(),
           .q_strides = {of_q.batch, of_q.row, q.stride(rank), q.stride(rank + 1)},
           .weights_strides = {of_weights.batch, of_weights.row, weights.stride(rank), 0},
           .out_strides = {of_out.batch, of_out.row, 0, out.stride(rank)},
           .k_strides = key_strides(k, k.stride(k.rank() - 1)),
           .scale_strides = o.k_scale ? key_strides(*o.k_scale, 0) : KeyStrides{},
           .starts = ranges(o.k_start),
           .ends = ranges(o.k_end),
           .tables = paged ? integers(o.block_tables,
                                      {o.block_tables->stride(0), o.block_tables->stride(1)})
                           : Integers{},
           .lengths = paged ? integers(o.lengths, {o.lengths->stride(0), 0}) : Integers{},
           .blocks = s.blocks,
           .batch = int32_t(s.batch),
           .queries = int32_t(s.queries),
           .heads = int32_t(s.heads),
           .head_dim = int32_t(s.head_dim),
           .keys = int32_t(s.keys),
           .block_size = int32_t(s.block_size)},
          q.dtype()};
}

// Ranges and lengths live on the device: the cost counts every logit.
op::Cost cost(const Problem& q) {
  const Params& p = q.params;
  const double rows = double(p.batch) * p.queries, keys = double(p.batch) * p.keys;
  const double of_heads = double(p.heads) * p.head_dim, bytes = double(dtype_bytes(q.dtype));
  return {.bytes = rows * (of_heads * bytes + p.heads * 4.0 + p.keys * 4.0) +
                   keys * (p.head_dim * bytes + (p.k_scale ? 4 : 0)),
          .flops = 2 * rows * p.keys * of_heads};
}

std::string sizes(const Problem& q) {
  const Params& p = q.params;
  return join("batch ", p.batch, ", queries ", p.queries, ", heads ", p.heads, ", head_dim ",
              p.head_dim, ", keys of a request at most ", p.keys);
}

constexpr DType kQueryTypes[] = {DType::float8_e4m3fn, DType::float16, DType::bfloat16,
                                 DType::float32};

const op::Definition<Problem, Options> kDefinition{
    .name = kName,
    .group = "attention",
    .summary = "Scores of an indexer: weighted sums over heads that share one head of keys.",
    .details =
        "out[i, j] = k_scale[j] * sum over heads h of weights[i, h] * relu(q[i, h, :] . k[j, :]) "
        "for the keys that query i sees, k_start[i] <= j < k_end[i], and -inf for others. A scale "
        "of q is a factor of its weights. With block_tables keys lie in pages: key j of request b "
        "is row j % block_size of block block_tables[b, j // block_size] of k, (blocks, "
        "block_size, head_dim); q is (batch, heads, head_dim) or (batch, queries, heads, "
        "head_dim), out has max_blocks * block_size columns, and without k_end query i sees none "
        "after its own key, i + lengths[b] - queries. Ranges are cut to the keys in use; an empty "
        "one gives -inf alone. Sums are float32, but wgmma keeps about 14 bits of those of float8 "
        "over head_dim; relu keeps NaN. What no query sees has no effect, "
        "NaN included. A logit has the same bits whatever else is in the batch, in pages or not. A "
        "block that a query sees and that k lacks is an IndexError on the CPU; a GPU gives its "
        "keys -inf. A length that a row of block_tables has no room for is a ValueError on cpu and "
        "simt; a GPU takes it as that room. A graph may be replayed with other contents of all "
        "arrays, ranges, tables and lengths included.",
    .inputs =
        {{"q",
          op::takes(
              kQueryTypes,
              "(queries, heads, head_dim), or with pages (batch, [queries,] heads, head_dim): %")},
         {"k", "(keys, head_dim), or (blocks, block_size, head_dim): dtype of q"},
         {"weights", op::takes(op::kFloat32, "%, shape of q without head_dim")}},
    .options = {op::option("k_scale", &Options::k_scale,
                           op::takes(op::kFloat32,
                                     "%: a number for each key, shape of k without head_dim")),
                op::option("k_start", &Options::k_start,
                           op::takes(op::kIndexTypes,
                                     "%, shape of q without heads and head_dim: the first key that "
                                     "a query sees; None: 0")),
                op::option("k_end", &Options::k_end,
                           "the same of the key behind its last; None: all, in pages up to its "
                           "own"),
                op::option("block_tables", &Options::block_tables,
                           op::takes(op::kIndexTypes,
                                     "% (batch, max_blocks): the blocks of each request")),
                op::option(
                    "lengths", &Options::lengths,
                    op::takes(op::kIndexTypes,
                              "% (batch,), with block_tables: keys in use; negative counts as 0"))},
    .out_doc = "float32, shape of q without heads and head_dim, then a column for each key",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn},
    .infer = infer,
    .check = check,
    .cost = cost,
    .sizes = sizes,
    .ladder = op::make_ladder<rung_call, kRungs, complete>(kName, kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::mqa_logits

void mqa_logits(const TensorView& out, const TensorView& q, const TensorView& k,
                const TensorView& weights, const MqaLogitsOptions& options) {
  op::run(kernel::mqa_logits::kDefinition, out, {q, k, weights}, options);
}

Tensor mqa_logits(const TensorView& q, const TensorView& k, const TensorView& weights,
                  const MqaLogitsOptions& options) {
  return std::move(op::allocate(kernel::mqa_logits::kDefinition, {q, k, weights}, options)[0]);
}

op::OperatorList ops::mqa_logits() { return op::registered(kernel::mqa_logits::kDefinition); }

}  // namespace tensorcraft
