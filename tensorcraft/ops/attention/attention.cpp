// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/attention/attention.hpp"

#include "tensorcraft/core/tensor_matcher.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/attention/maps.hpp"
#include "tensorcraft/ops/attention/plan.h"
#include "tensorcraft/ops/attention/problem.hpp"

#include <algorithm>
#include <cmath>

namespace tensorcraft {

template <>
struct op::EnumNames<AttentionLayout> {
  static constexpr std::array<std::string_view, 2> names = {"bhsd", "bshd"};
};

namespace kernel::attention {
namespace {

constexpr int64_t kMaxSize = int64_t(1) << 30;  // kernels count in 32 bits

constexpr ConfigField kFields[] = {{"head_dim"}, {"block_m"},   {"block_n"},     {"threads"},
                                   {"stages"},   {"consumers"}, {"takes_turns"}, {"out_tile"}};

op::RungCall<Params, Given> rung_call(const Problem& q) {
  return {q.params, {.element_bytes = int(dtype_bytes(q.dtype))}, {q.dtype}};
}

void complete(op::Plan& plan, std::string_view rung, const Problem& q, const DeviceInfo& device) {
  add_maps(plan, rung == "persistent", q, device);
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu",
     .idea = "float, blocked online softmax between two matrix products, all cores",
     .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

// The dimensions of heads and sequence in a layout.
struct Axes {
  int head, row;
};
Axes axes_of(AttentionLayout layout) {
  return layout == AttentionLayout::bhsd ? Axes{1, 2} : Axes{2, 1};
}

Dims lse_shape(const TensorView& q, const AttentionOptions& o) {
  const Axes axes = axes_of(o.layout);
  return {q.shape(0), q.shape(axes.head), q.shape(axes.row)};
}

void check_rank(const TensorView& q, AttentionLayout layout) {
  if (q.rank() != 4)
    fail(ErrorKind::value, "attention: q: expected 4 dimensions (batch, ",
         layout == AttentionLayout::bhsd ? "heads, seq" : "seq, heads", ", head_dim), got shape ",
         q.shape());
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const AttentionOptions& o) {
  check_rank(in[0], o.layout);
  std::vector<op::OutputSpec> specs{{"out", in[0].dtype(), in[0].shape()}};
  if (o.return_lse) specs.push_back({"lse", DType::float32, lse_shape(in[0], o)});
  return specs;
}

// The strides of a tensor; 0 along a dimension of one element, whatever its stride was.
Strides strides_of(const TensorView& t, Axes axes) {
  const auto stride = [&](int i) { return t.shape(i) > 1 ? t.stride(i) : 0; };
  return {.batch = stride(0), .head = stride(axes.head), .row = stride(axes.row)};
}

void check_tensors(const op::Call<AttentionOptions>& call) {
  const bool bhsd = call.options.layout == AttentionLayout::bhsd;
  SymbolicSize batch("batch"), heads("heads"), heads_k("heads_k"), seq_q("seq_q"), seq_k("seq_k"),
      head_dim("head_dim");
  SymbolicDType dtype({DType::float32, DType::float16, DType::bfloat16});
  const auto match = [&](const TensorView& t, std::string_view name, SymbolicSize& h,
                         SymbolicSize& s) {
    TensorMatcher({batch, bhsd ? h : s, bhsd ? s : h, head_dim})
        .with_strides({kAnySize, kAnySize, kAnySize, 1})
        .with_dtype(dtype)
        .verify(t, "attention", name);
  };
  match(call.in(0), "q", heads, seq_q);
  match(call.in(1), "k", heads_k, seq_k);
  match(call.in(2), "v", heads_k, seq_k);
  match(call.out(), "out", heads, seq_q);
  if (const auto& lengths = call.options.key_lengths)
    TensorMatcher({batch})
        .with_dtype({DType::int32, DType::int64})
        .verify(*lengths, "attention", "key_lengths");
  if (const auto& lse = call.options.lse)
    TensorMatcher({batch, heads, seq_q})
        .with_dtype(DType::float32)
        .verify(*lse, "attention", "lse");
}

void check_sizes(const TensorView& q, const TensorView& k, Axes axes) {
  const int64_t heads = q.shape(axes.head), heads_k = k.shape(axes.head), d = q.shape(3);
  if (d < 1 || d > kMaxHeadDim)
    fail(ErrorKind::unsupported, "attention: head_dim must be 1 to ", kMaxHeadDim, ", got ", d);
  if (heads != 0 && (heads_k == 0 || heads % heads_k != 0))
    fail(ErrorKind::value, "attention: the heads of q must be a multiple of the heads of k, got ",
         heads, " and ", heads_k);
  for (const int64_t n : {q.shape(0), heads, q.shape(axes.row), k.shape(axes.row)})
    if (n > kMaxSize)
      fail(ErrorKind::unsupported, "attention: sizes above 2^30 are not supported, got ", n);
}

Problem check(const op::Call<AttentionOptions>& call) {
  const AttentionOptions& o = call.options;
  const TensorView &q = call.in(0), &k = call.in(1), &v = call.in(2), &out = call.out();
  check_rank(q, o.layout);
  check_tensors(call);
  const Axes axes = axes_of(o.layout);
  check_sizes(q, k, axes);
  const float scale = o.scale.value_or(1.0f / std::sqrt(float(q.shape(3))));
  if (!std::isfinite(scale)) fail(ErrorKind::value, "attention: scale must be finite, got ", scale);
  const int64_t heads = q.shape(axes.head);
  const Params p{.q = q.data(),
                 .k = k.data(),
                 .v = v.data(),
                 .out = out.data(),
                 .lse = o.lse ? o.lse->data_as<float>() : nullptr,
                 .key_lengths = o.key_lengths ? o.key_lengths->data() : nullptr,
                 .q_strides = strides_of(q, axes),
                 .k_strides = strides_of(k, axes),
                 .v_strides = strides_of(v, axes),
                 .out_strides = strides_of(out, axes),
                 .batch = int32_t(q.shape(0)),
                 .heads = int32_t(heads),
                 .group = int32_t(heads ? heads / k.shape(axes.head) : 1),
                 .seq_q = int32_t(q.shape(axes.row)),
                 .seq_k = int32_t(k.shape(axes.row)),
                 .head_dim = int32_t(q.shape(3)),
                 .causal = o.causal,
                 .wide_lengths = o.key_lengths && o.key_lengths->dtype() == DType::int64,
                 .scale = scale};
  return {p, q.dtype()};
}

// Key lengths live on the device: the cost counts every key.
op::Cost cost(const Problem& q) {
  const Params& p = q.params;
  const double sq = p.seq_q, sk = p.seq_k, heads = double(p.batch) * p.heads;
  double pairs = sq * sk;
  if (p.causal) pairs = sk >= sq ? sq * sk - sq * (sq - 1) / 2 : sk * (sk + 1) / 2;
  const double elements = 2 * heads * sq * p.head_dim + 2 * heads / p.group * sk * p.head_dim;
  return {.bytes = elements * double(dtype_bytes(q.dtype)) + (p.lse ? 4 * heads * sq : 0),
          .flops = 4 * heads * pairs * p.head_dim};
}

std::string sizes(const Problem& q) {
  const Params& p = q.params;
  return join("batch ", p.batch, ", heads ", p.heads, ", seq_q ", p.seq_q, ", heads_k ",
              p.heads / p.group, ", seq_k ", p.seq_k, ", head_dim ", p.head_dim);
}

using Options = AttentionOptions;
const op::Definition<Problem, Options> kDefinition{
    .name = "attention",
    .group = "attention",
    .summary = "Scaled dot-product attention: softmax(scale q k^T) v.",
    .details =
        "q is (batch, heads, seq_q, head_dim), k and v are (batch, heads_k, seq_k, head_dim), or "
        "with layout=\"bshd\" (batch, seq, heads, head_dim); float32, float16 or bfloat16; any "
        "strides, but head_dim's is 1. heads is a multiple of heads_k: query head h reads head "
        "h // (heads // heads_k). head_dim is 1 to 256. Scores, softmax and sums are float32. "
        "causal is aligned to the end of the keys in use: query i sees keys j <= i + keys - seq_q, "
        "where keys is seq_k, or key_lengths[b] if given; so the queries are the newest tokens of "
        "a cache in a longer buffer. A query that sees no key gives 0 and an lse of -inf. Any "
        "q k^T that float32 holds will do, a larger one makes its row NaN. What lies after "
        "key_lengths has no effect, NaN included; a NaN in v may also reach queries from which "
        "causal hides "
        "it. rope takes (batch, seq, heads, head_dim), which is layout=\"bshd\" here and not the "
        "default.",
    .aliases = {"flash_attention"},
    .inputs = {{"q", "queries"}, {"k", "keys"}, {"v", "values, shape of k"}},
    .options = {op::positional(
                    op::option("scale", &Options::scale, "of q k^T; None: 1 / sqrt(head_dim)")),
                op::option("causal", &Options::causal, "hide the keys after each query"),
                op::option(
                    "key_lengths", &Options::key_lengths,
                    "int32 or int64 (batch,): how many keys are in use, the first ones; negative "
                    "counts as 0"),
                op::option("layout", &Options::layout, "order of the dimensions"),
                op::option("return_lse", &Options::return_lse,
                           "return (out, lse) with the logarithm of each row's sum")},
    .out_doc = "shape and dtype of q",
    .extra_outputs = {{{"lse", "log(sum(exp(scale q k^T))), float32 (batch, heads, seq_q)",
                        "return_lse"},
                       &Options::lse}},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .infer = infer,
    .check = check,
    .cost = cost,
    .sizes = sizes,
    .ladder = op::make_ladder<rung_call, kRungs, instances, complete>("attention", kFields),
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
