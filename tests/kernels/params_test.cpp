// SPDX-License-Identifier: Apache-2.0
// A launcher of kernels/ and the library see a call alike: for every case that raw pointers can
// express, contiguous_params() of plan.h, which the launcher calls, is the same bytes as what the
// library plans, and every rung answers the same.
#include "tensorcraft/op/expression/operation_names.hpp"
#include "tensorcraft/op/host/element_bits.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/cross_entropy/plan.h"
#include "tensorcraft/ops/cumulative_sum/plan.h"
#include "tensorcraft/ops/elementwise/plan.h"
#include "tensorcraft/ops/elementwise/problem.hpp"
#include "tensorcraft/ops/embedding/plan.h"
#include "tensorcraft/ops/gated_activation/plan.h"
#include "tensorcraft/ops/gather/plan.h"
#include "tensorcraft/ops/gemm/plan.h"
#include "tensorcraft/ops/l2_normalize/plan.h"
#include "tensorcraft/ops/masked_mean/plan.h"
#include "tensorcraft/ops/norm/plan.h"
#include "tensorcraft/ops/pad/plan.h"
#include "tensorcraft/ops/permute/plan.h"
#include "tensorcraft/ops/quantize/plan.h"
#include "tensorcraft/ops/reduce/plan.h"
#include "tensorcraft/ops/rope/plan.h"
#include "tensorcraft/ops/scatter/plan.h"
#include "tensorcraft/ops/softmax/plan.h"
#include "tensorcraft/ops/topk/plan.h"
#include "tests/kernels/attention_launcher.hpp"
#include "tests/kernels/channel_launcher.hpp"
#include "tests/kernels/convolution_launcher.hpp"
#include "tests/kernels/grouped_launcher.hpp"
#include "tests/kernels/launcher_call.hpp"

#include <cmath>
#include <map>
#include <vector>

namespace tensorcraft::test {
namespace {

// Each function compares a dense case; false if no launcher can express it.

bool softmax(const LauncherCall& c) {
  namespace s = kernel::softmax;
  const auto form = s::Form(c.name_among({"softmax", "log_softmax", "logsumexp"}));
  const auto [rows, cols, inner] = split_at(c.in(), c.option<int64_t>("axis", -1));
  if (inner != 1 || c.address("mask") || c.number("scale", 1) != 1) return false;
  c.expect_rungs(s::kRungs,
                 s::contiguous_params(c.in().data(), c.out().writable_data(), rows, cols, form),
                 s::Given{.element_bytes = c.element_bytes(), .form = form});
  return true;
}

// Losses that become one number lie in the plan's workspace.
bool cross_entropy(const LauncherCall& c) {
  namespace e = kernel::cross_entropy;
  const bool is_reduced = c.choice("reduction", LossReduction::mean) != LossReduction::none;
  const auto [rows, classes, inner] = split_at(c.in(), -1);
  auto* const losses = is_reduced ? nullptr : c.output<float>("out");
  e::CallParams p = e::contiguous_params(c.in().data(), c.in(1).data(), losses,
                                         c.output<float>("lse"), rows, classes);
  p.ignore_index = c.option("ignore_index", e::kIgnoreIndex);
  p.ignored = is_reduced ? -0.0f : 0.0f;  // -0 in every call of a launcher
  const e::Given given{c.element_bytes(), c.in().dtype() == DType::float16};
  c.expect_rungs(e::kRungs, p, given, [&](const e::CallParams&) {
    return is_reduced ? std::optional(e::reduce_start(rows)) : std::nullopt;
  });
  return true;
}

bool l2_normalize(const LauncherCall& c) {
  namespace l = kernel::l2_normalize;
  const auto [rows, cols, inner] = split_at(c.in(), c.option<int64_t>("axis", -1));
  if (inner != 1) return false;
  c.expect_rungs(l::kRungs,
                 l::contiguous_params(c.in().data(), c.out().writable_data(), rows, cols,
                                      c.number("eps", L2NormalizeOptions{}.eps)),
                 l::Given{c.element_bytes()});
  return true;
}

// A launcher of a sum with a residual has no statistics.
bool norm(const LauncherCall& c) {
  namespace n = kernel::norm;
  const auto form = n::Form(c.name_among({"layer_norm", "rms_norm"}));
  const n::Tensors t{.x = c.in().data(),
                     .residual = c.address("residual"),
                     .weight = c.address("weight"),
                     .bias = c.address("bias"),
                     .out = c.out().writable_data(),
                     .residual_out = c.output("residual_out"),
                     .mean = c.output<float>("mean"),
                     .rstd = c.output<float>("rstd")};
  if (t.residual && t.mean) return false;
  const auto [rows, cols, inner] = split_at(c.in(), -1);
  const bool is_quantized = c.out().dtype() != c.in().dtype();
  const auto activation = c.choice("activation", Activation::none);
  n::CallParams p =
      n::contiguous_params(t, rows, cols, c.number("eps", form == n::Form::layer ? 1e-5 : 1e-6));
  if (is_quantized) {
    p.scale = c.number("scale", 0);
    p.scales = c.output<float>("scales");
    p.activation = activation;
  }
  const n::Given given{.config = {.activation = activation,
                                  .has_residual = t.residual != nullptr,
                                  .has_weight = t.weight != nullptr,
                                  .has_bias = t.bias != nullptr,
                                  .form = form},
                       .element_bytes = c.element_bytes(),
                       .weight_bytes = c.element_bytes({"weight", "bias"}),
                       .is_quantized = is_quantized};
  c.expect_rungs(n::kRungs, p, given);
  return true;
}

bool embedding(const LauncherCall& c) {
  namespace e = kernel::embedding;
  const TensorView &ids = c.in(), &table = c.in(1);
  const int bytes = int(dtype_bytes(table.dtype()));
  c.expect_rungs(e::kRungs,
                 e::contiguous_params(ids.data(), table.data(), c.out().writable_data(), ids.size(),
                                      table.shape(0), table.shape(1), bytes),
                 e::Given{bytes});
  return true;
}

bool gated(const LauncherCall& c) {
  namespace g = kernel::gated_activation;
  const bool is_silu = c.name() == "silu_and_mul";
  const bool by_tanh = c.choice("approximate", GeluApproximation::none) == GeluApproximation::tanh;
  const auto gate = is_silu ? Activation::silu : by_tanh ? Activation::gelu_tanh : Activation::gelu;
  const auto [rows, cols, inner] = split_at(c.out(), -1);
  c.expect_rungs(g::kRungs,
                 g::contiguous_params(c.in().data(), c.out().writable_data(), rows, cols),
                 g::Given{gate, c.element_bytes()});
  return true;
}

// Positions of a launcher are int64_t, one for each token.
bool rope(const LauncherCall& c) {
  namespace r = kernel::rope;
  const TensorView& x = c.in();
  const int rank = x.rank();
  const int64_t dim = x.shape(rank - 1), tokens = x.size() / x.shape(rank - 2) / dim;
  const auto* positions = c.given<TensorView>("positions");
  if (positions && (positions->dtype() != DType::int64 || positions->size() != tokens))
    return false;
  const auto *k = c.given<TensorView>("k"), *cos = c.given<TensorView>("cos");
  const auto p =
      r::contiguous_params({.x = x.data(),
                            .k = c.address("k"),
                            .out = c.out().writable_data(),
                            .k_out = c.output("k_out"),
                            .cos = c.address("cos"),
                            .sin = c.address("sin"),
                            .positions = c.address<int64_t>("positions")},
                           {.tokens = tokens,
                            .seq = x.shape(rank - 3),
                            .heads = x.shape(rank - 2),
                            .heads_k = k ? k->shape(rank - 2) : 0,
                            .dim = dim,
                            .max_seq = cos ? cos->shape(0) : 0},
                           c.option<int64_t>("start_pos", 0), double(c.number("base", 10000)));
  c.expect_rungs(r::kRungs, p,
                 r::Given{.element_bytes = c.element_bytes(),
                          .cache_bytes = c.element_bytes({"cos"}),
                          .style = r::Style(c.choice("style", RopeStyle::Half))});
  return true;
}

// Launchers look at beta for whether there is a C when they launch. The tensor maps of tma are the
// library's own.
bool gemm(const LauncherCall& c) {
  namespace g = kernel::gemm;
  const TensorView &a = c.in(), &b = c.in(1), &d = c.out();
  if (a.rank() != 2 || b.rank() != 2 || c.address("bias") ||
      c.choice("activation", Activation::none) != Activation::none)
    return false;
  if (c.element_bytes() == 1) return false;  // a launcher's result has the operands' type
  if (c.address("a_scale") || c.address("b_scale") || c.address("out_scale") ||
      c.num_inputs() > 2 || c.choice("gated", Gate::none) != Gate::none ||
      c.choice("precision", Precision::standard) != Precision::standard)
    return false;
  const auto layout = [&](std::string_view name) {
    return c.option(name, false) ? g::Layout::column_major : g::Layout::row_major;
  };
  const g::Layout a_layout = layout("transpose_a"), b_layout = layout("transpose_b");
  const float beta = c.number("beta", c.address("c") ? 1 : 0);
  const int64_t k = a.shape(a_layout == g::Layout::row_major);
  const auto p = g::contiguous_params(a.data(), a_layout, b.data(), b_layout, c.address("c"),
                                      d.writable_data(), d.shape(0), d.shape(1), k,
                                      c.number("alpha", 1), beta);
  c.expect_rungs(g::kRungs, p,
                 g::Given{.operand_bytes = c.element_bytes(),
                          .result_bytes = int(dtype_bytes(d.dtype())),
                          .has_c = beta != 0,
                          .allow_tf32 = c.option("allow_tf32", false),
                          .batch_invariant = c.option("batch_invariant", false)});
  return true;
}

bool masked_mean(const LauncherCall& c) {
  namespace m = kernel::masked_mean;
  const Dims& shape = c.in().shape();
  c.expect_rungs(m::kRungs,
                 m::contiguous_params(c.in().data(), c.in(1).data(), c.out().writable_data(),
                                      shape[0], shape[1], shape[2]),
                 op::NoGiven{});
  return true;
}

// Axes that follow each other.
bool reduce(const LauncherCall& c) {
  namespace r = kernel::reduce;
  const auto named =
      r::Operation(c.name_among({"sum", "count_nonzero", "mean", "max", "min", "argmax", "argmin",
                                 "prod", "float_prod", "var", "std", "any", "all"}));
  if (c.given<DType>("dtype") || c.given<std::string_view>("dtype")) return false;
  const TensorView& x = c.in();
  int64_t first = 0, last = x.rank() - 1;
  if (const auto* axis = c.given<int64_t>("axis")) {
    first = last = *axis < 0 ? *axis + x.rank() : *axis;
  } else if (const auto* axes = c.given<Dims>("axis")) {
    if (axes->empty()) return false;
    first = (*axes)[0] + ((*axes)[0] < 0 ? x.rank() : 0);
    last = first + axes->rank() - 1;
    if (last >= x.rank()) return false;
    for (int i = 1; i < axes->rank(); ++i)
      if (((*axes)[i] - first - i) % x.rank() != 0) return false;
  }
  int64_t outer = 1, reduced = 1, inner = 1;
  for (int i = 0; i < x.rank(); ++i) (i < first ? outer : i > last ? inner : reduced) *= x.shape(i);
  const auto p = r::contiguous_params(x.data(), c.out().writable_data(), outer, reduced, inner,
                                      c.number("correction", 0));
  const bool is_bool = x.dtype() == DType::bool_;
  if (is_bool && named == r::Operation::prod) return false;  // of int64 in the library alone
  const bool counts = is_bool && named == r::Operation::sum;
  const r::Given given{counts ? r::Operation::count : named, c.element_bytes()};
  c.expect_rungs(r::kRungs, p, given, [&](const r::CallParams& own) {
    return own.splits > 1 ? std::optional(r::combine_start(own, given.operation)) : std::nullopt;
  });
  return true;
}

bool cumulative_sum(const LauncherCall& c) {
  namespace s = kernel::cumulative_sum;
  if (c.option("include_initial", false) || c.given<DType>("dtype") ||
      c.given<std::string_view>("dtype"))
    return false;
  const auto [rows, cols, inner] = split_at(c.in(), c.option<int64_t>("axis", 0));
  if (inner != 1) return false;
  c.expect_rungs(s::kRungs,
                 s::contiguous_params(c.in().data(), c.out().writable_data(), rows, cols),
                 s::Given{is_floating(c.in().dtype()), c.element_bytes()});
  return true;
}

bool topk(const LauncherCall& c) {
  namespace t = kernel::topk;
  const auto [rows, cols, inner] = split_at(c.in(), c.option<int64_t>("axis", -1));
  if (inner != 1) return false;
  c.expect_rungs(
      t::kRungs,
      t::contiguous_params(c.in().data(), c.out().writable_data(), c.output<int64_t>("indices"),
                           rows, cols, c.option<int64_t>("k", 1)),
      op::NoGiven{});
  return true;
}

// Scales that are computed, or read, for rows or for 128 elements of one; no zero points.
bool quantize(const LauncherCall& c) {
  namespace q = kernel::quantize;
  const auto scheme = c.choice("scheme", QuantizeScheme::tensor);
  const bool is_square = c.choice("block_shape", BlockShape::row) == BlockShape::square;
  if (scheme == QuantizeScheme::tensor || is_square || c.option("asymmetric", false) ||
      c.address("scales") || c.address("zero_point"))
    return false;
  const auto [rows, cols, inner] = split_at(c.in(), -1);
  const bool column = c.choice("scales_layout", ScalesLayout::row) == ScalesLayout::column;
  const q::Tiles tiles = scheme == QuantizeScheme::token ? q::token_tiles(rows, cols)
                                                         : q::block_tiles(rows, cols, column);
  const bool dequantizes = c.name() == "dequantize";
  auto* const scales = dequantizes ? c.in(1).data_as<float>() : c.output<float>("scales");
  q::CallParams p = q::contiguous_params(c.in().data(), c.out().writable_data(), scales, tiles);
  p.given = dequantizes;
  p.power_of_two = c.option("power_of_two", false);
  if (dequantizes)
    c.expect_rungs(q::kDequantizeRungs, p,
                   q::Given{.wide_bytes = int(dtype_bytes(c.out().dtype())), .dequantizes = true});
  else
    c.expect_rungs(q::kQuantizeRungs, p, q::Given{.wide_bytes = c.element_bytes()});
  return true;
}

// A launcher puts 0 for an index outside; the library NaN in a dtype that has it.
bool take(const LauncherCall& c) {
  namespace g = kernel::gather;
  constexpr uint64_t kNanOfBytes[] = {0, 0x7f7f7f7f7f7f7f7f, 0x7fff7fff7fff7fff, 0,
                                      0x7fffffff7fffffff};
  const auto [outer, size, inner] = split_at(c.in(), c.option<int64_t>("axis", 0));
  g::Params p = g::contiguous_params(c.in().data(), c.in(1).data(), c.out().writable_data(), outer,
                                     size, inner, c.in(1).size());
  p.missing = is_floating(c.in().dtype()) ? kNanOfBytes[c.element_bytes()] : 0;
  c.expect_rungs(g::kRungs, p, g::Given{c.element_bytes()});
  return true;
}

bool pad(const LauncherCall& c) {
  namespace d = kernel::pad;
  const TensorView& x = c.in();
  Dims before, after;
  for (int i = 0; i < x.rank(); ++i) {
    const auto* each = c.given<std::vector<Dims>>("pad_width");
    const auto* same = c.given<Dims>("pad_width");
    const int64_t width = c.option<int64_t>("pad_width", 0);
    before.push_back(each ? (*each)[size_t(i)][0] : same ? (*same)[0] : width);
    after.push_back(each ? (*each)[size_t(i)][1] : same ? (*same)[same->rank() - 1] : width);
  }
  if (x.rank() == 0) return false;
  const uint64_t value = host::element_bits(x.dtype(), c.number("value", 0));
  c.expect_rungs(d::kRungs,
                 d::contiguous_params(x.data(), c.out().writable_data(), value, x.rank(),
                                      before.data(), after.data(), x.shape().data()),
                 d::Given{c.element_bytes()});
  return true;
}

bool scatter(const LauncherCall& c) {
  namespace s = kernel::scatter;
  const TensorView &x = c.in(), &indices = c.in(1), &updates = c.in(2);
  if (updates.size() != indices.size()) return false;
  const int64_t axis = c.option<int64_t>("axis", -1);
  const auto [outer, size, inner] = split_at(x, axis);
  const auto operation = s::Operation(c.choice("reduction", ScatterReduction::none));
  const auto p = s::contiguous_params(x.data(), indices.data(), updates.data(),
                                      c.out().writable_data(), int(dtype_bytes(indices.dtype())),
                                      operation, outer, size, inner, split_at(indices, axis).size);
  c.expect_rungs(s::kRungs, p, s::Given{c.element_bytes(), true});
  return true;
}

// Matrices whose rows and columns change places.
bool transpose(const LauncherCall& c) {
  namespace p = kernel::permute;
  const TensorView& x = c.in();
  const int64_t rows = x.shape(x.rank() - 2), cols = x.shape(x.rank() - 1);
  c.expect_rungs(
      p::kRungs,
      p::contiguous_params(x.data(), c.out().writable_data(), x.size() / rows / cols, rows, cols),
      p::Given{c.element_bytes()});
  return true;
}

// Inputs of as many elements as the output.
bool elementwise(const LauncherCall& c) {
  namespace e = kernel::elementwise;
  using O = e::Operation;
  O named = O::fill;
  while (word(named) != c.name()) named = O(int(named) + 1);
  const TensorView &out = c.out(), &a = named == O::fill ? out : c.in(),
                   &b = e::num_inputs(named) > 1 ? c.in(1) : a;
  if (a.size() != out.size() || b.size() != out.size()) return false;
  const bool by_tanh = c.choice("approximate", GeluApproximation::none) == GeluApproximation::tanh;
  const bool moves = named == O::astype && a.dtype() == out.dtype();
  const float alpha = named == O::leaky_relu ? c.number("alpha", double(0.01f))
                      : named == O::elu      ? c.number("alpha", 1)
                      : named == O::swish    ? c.number("beta", 1)
                                             : 0;
  const uint64_t value =
      named == O::fill ? host::element_bits(out.dtype(), c.number("value", 0)) : 0;
  const auto bytes = [](const TensorView& t) { return int(dtype_bytes(t.dtype())); };
  c.expect_rungs(
      e::kRungs,
      e::contiguous_params(a.data(), b.data(), out.writable_data(), out.size(), alpha, value),
      e::Given{by_tanh ? O::gelu_tanh
               : moves ? O::copy
                       : named,
               std::max({bytes(a), bytes(b), bytes(out)})});
  return true;
}

// Says what compares operators; null: nothing does.
struct Compared {
  bool (*compare)(const LauncherCall&);
  std::vector<std::string_view> operators;
};
const Compared kCompared[] = {
    {softmax, {"softmax", "log_softmax", "logsumexp"}},
    {cross_entropy, {"cross_entropy"}},
    {l2_normalize, {"l2_normalize"}},
    {norm, {"layer_norm", "rms_norm"}},
    {compare_batch_norm, {"batch_norm"}},
    {compare_batch_norm_backward, {"batch_norm_backward"}},
    {compare_group_norm, {"group_norm"}},
    {embedding, {"embedding"}},
    {gated, {"silu_and_mul", "gelu_and_mul"}},
    {rope, {"rope"}},
    {compare_attention, {"attention"}},
    {gemm, {"gemm"}},
    {compare_grouped, {"grouped_gemm", "masked_gemm"}},
    {masked_mean, {"masked_mean"}},
    {reduce,
     {"sum", "mean", "max", "min", "argmax", "argmin", "prod", "count_nonzero", "var", "std", "any",
      "all"}},
    {cumulative_sum, {"cumulative_sum"}},
    {topk, {"topk"}},
    {quantize, {"quantize", "dequantize"}},
    {take, {"take"}},
    {pad, {"pad"}},
    {compare_convolution, {"conv2d", "depthwise_conv2d"}},
    {compare_im2col, {"im2col"}},
    {scatter, {"scatter"}},
    {transpose, {"transpose"}},
    {elementwise,
     {"add", "subtract", "multiply", "divide", "maximum", "minimum", "negative", "exp", "tanh",
      "sigmoid", "relu", "leaky_relu", "elu", "silu", "swish", "gelu", "astype", "fill"}},
    // The launchers of the folder do not compute it.
    {nullptr, {"rope_cache", "take_along_axis", "permute_dims", "cumulative_prod"}},
    // launch_copy has the kernels of astype to the same dtype.
    {nullptr, {"copy"}},
};

TEST(Launchers, SeeEveryDenseCaseAsTheLibraryDoes) {
  std::map<std::string_view, bool (*)(const LauncherCall&)> known;
  for (const Compared& some : kCompared)
    for (const std::string_view name : some.operators) known[name] = some.compare;
  std::map<std::string_view, int> compared;
  for (const Case& c : all_cases()) {
    if (c.has_tag("fixed")) continue;  // launchers take no config
    const LauncherCall call(c);
    SCOPED_TRACE(join(call.name(), ": ", c.name));
    const auto entry = known.find(call.name());
    if (entry == known.end())
      EXPECT_FALSE(call.has_launcher()) << "compare it, or say in kCompared why not";
    else if (entry->second && call.is_dense())
      compared[call.name()] += entry->second(call);
  }
  for (const auto& [name, compare] : known)
    EXPECT_EQ(compared[name] > 0, compare != nullptr) << name;
}

}  // namespace
}  // namespace tensorcraft::test
