// SPDX-License-Identifier: Apache-2.0
// The launchers of kernels/ and the library choose alike: for each case whose tensors are dense,
// what a launcher's plan header makes of raw pointers is, byte for byte, what the library plans.
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/kernels/gemm_problem.hpp"
#include "tensorcraft/ops/attention/plan.h"
#include "tensorcraft/ops/elementwise/plan.h"
#include "tensorcraft/ops/embedding/plan.h"
#include "tensorcraft/ops/gated_activation/plan.h"
#include "tensorcraft/ops/gather/plan.h"
#include "tensorcraft/ops/masked_mean/plan.h"
#include "tensorcraft/ops/masked_mean/plan.h"
#include "tensorcraft/ops/pad/plan.h"
#include "tensorcraft/ops/permute/plan.h"
#include "tensorcraft/ops/quantize/plan.h"
#include "tensorcraft/ops/reduce/plan.h"
#include "tensorcraft/ops/rope/plan.h"
#include "tensorcraft/ops/scatter/plan.h"
#include "tests/kernels/planned.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <map>

namespace tensorcraft::test {
namespace {

bool embedding(const Planned& c) {
  const TensorView& table = c.in(1);
  const int bytes = int(dtype_bytes(table.dtype()));
  const auto p =
      k::embedding::contiguous_params(c.in().data(), table.data(), c.out().data(), c.in().size(),
                                      table.shape(0), table.shape(1), bytes);
  c.expect("vectorized", k::embedding::vectorized_problem(p, bytes),
           k::embedding::vectorized_launch(p, bytes), p);
  c.expect("naive", "", k::embedding::naive_launch(p), p);
  return true;
}

bool gated(const Planned& c, k::gated_activation::Gate gate) {
  namespace g = k::gated_activation;
  const int64_t cols = c.out().shape(c.out().rank() - 1);
  auto p = g::contiguous_params(c.in().data(), c.out().data(), c.out().size() / cols, cols);
  const int bytes = c.element_bytes();
  c.expect("naive", "", g::naive_launch(p, gate), p);
  const g::Launch launch = g::vectorized_launch(p, gate, bytes, c.num_sms());  // which tells p
  c.expect("vectorized", g::vectorized_problem(p, bytes), launch, p);
  return true;
}

bool silu_and_mul(const Planned& c) { return gated(c, k::gated_activation::Gate::silu); }

bool gelu_and_mul(const Planned& c) {
  using Gate = k::gated_activation::Gate;
  const bool tanh = c.option<std::string_view>("approximate", "none") == "tanh";
  return gated(c, tanh ? Gate::gelu_tanh : Gate::gelu);
}

// Positions count from a start, as the launcher's do; the library's are strided otherwise.
bool rope(const Planned& c) {
  namespace r = k::rope;
  const TensorView& x = c.in();
  if (c.address("positions") || c.option<std::string_view>("style", "half") != "half") return false;
  const int64_t dim = x.shape(x.rank() - 1), heads = x.shape(x.rank() - 2);
  const int64_t tokens = x.size() / heads / dim;
  const double base = c.option<double>("base", 10000);
  const int64_t heads_k = c.num_outputs() > 1 ? c.out(1).size() / tokens / dim : 0;
  const RowMap of_x = op::contiguous_rows(tokens, heads * dim);
  const RowMap of_k = heads_k ? op::contiguous_rows(tokens, heads_k * dim) : RowMap{};
  r::Params p{.log2_step = r::log2_step(base, dim),
              .step = std::exp2(r::log2_step(base, dim)),
              .x = r::contiguous_heads(x.data(), c.out().data(), heads, dim),
              .cos = c.address("cos"),
              .sin = c.address("sin"),
              .tokens = tokens,
              .seq = x.shape(x.rank() - 3),
              .start_pos = c.option<int64_t>("start_pos", 0),
              .by_seq = r::divider_of(x.shape(x.rank() - 3)),
              .half = int32_t(dim / 2),
              .maps = row_maps(of_x, of_x, of_k, of_k, RowMap{})};
  if (heads_k) p.k = r::contiguous_heads(c.address("k"), c.out(1).data(), heads_k, dim);
  if (p.cos) {
    p.cos_row = p.sin_row = p.half;
    p.cos_step = p.sin_step = 1;
    p.max_seq = c.option("cos", x).shape(0);
  }
  const int bytes = c.element_bytes();
  const int cache_bytes = p.cos ? int(dtype_bytes(c.option("cos", x).dtype())) : bytes;
  c.expect("vectorized", r::vectorized_problem(p, bytes, cache_bytes),
           r::vectorized_launch(p, r::Style::half, bytes, cache_bytes, c.num_sms()), p);
  c.expect("naive", "", r::naive_launch(p, r::Style::half), p);
  return true;
}

// Tokens, and blocks of rows, whose scales are computed and have no zero point.
bool quantize(const Planned& c) {
  namespace q = k::quantize;
  const auto scheme = c.option<std::string_view>("scheme", "tensor");
  if (scheme == "tensor" || c.option<std::string_view>("block_shape", "1x128") != "1x128" ||
      c.address("scales") || c.option<bool>("asymmetric", false))
    return false;
  const TensorView& x = c.in();
  const int64_t cols = x.shape(x.rank() - 1), rows = x.size() / cols;
  const bool column = c.option<std::string_view>("scales_layout", "row") == "column";
  const RowMap map = op::contiguous_rows(rows, cols);
  const q::Params p{
      .x_step = 1,
      .out_step = 1,
      .x = x.data(),
      .out = c.out().data(),
      .scales = c.out(1).data_as<float>(),
      .power_of_two = c.option<bool>("power_of_two", false),
      .tiles = scheme == "token" ? q::token_tiles(rows, cols) : q::block_tiles(rows, cols, column),
      .maps = row_maps(map, map)};
  const int bytes = c.element_bytes();
  c.expect("in_registers", q::in_registers_problem(p, bytes), q::in_registers_launch(p, bytes), p);
  c.expect("naive", "", q::naive_launch(p), p);
  return true;
}

bool take(const Planned& c) {
  const int64_t axis = c.option<int64_t>("axis", 0);
  if (axis < 0 || c.in().dtype() != DType::float32) return false;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < c.in().rank(); ++i)
    (i < axis ? outer : inner) *= i == axis ? 1 : c.in().shape(i);
  const auto g =
      k::gather::take_rows(c.in().data(), c.in(1).data(), c.out().data(), 4, 0x7fffffff7fffffff,
                           outer, c.in().shape(int(axis)), inner, c.in(1).size());
  c.expect("vectorized", "", k::gather::vectorized_launch(g, c.num_sms()),
           k::gather::vectorized_params(g));
  c.expect("naive", "", k::gather::naive_launch(g), k::gather::naive_params(g));
  return true;
}

// Float32, whose value has its own bits.
bool pad(const Planned& c) {
  namespace d = k::pad;
  const TensorView& x = c.in();
  if (x.dtype() != DType::float32) return false;
  const auto pairs = c.option<std::vector<Dims>>("pad_width", {});
  if (pairs.size() != size_t(x.rank()) || pairs.empty()) return false;
  Dims before, after;
  for (const Dims& pair : pairs) {
    before.push_back(pair[0]);
    after.push_back(pair[1]);
  }
  const auto p = d::contiguous_params(x.data(), c.out().data(),
                                      std::bit_cast<uint32_t>(float(c.option<double>("value", 0))),
                                      x.rank(), before.data(), after.data(), x.shape().data());
  c.expect("vectorized", d::vectorized_problem(p, 4), d::vectorized_launch(p, 4, c.num_sms()), p);
  c.expect("naive", "", d::naive_launch(p), p);
  return true;
}

bool scatter(const Planned& c) {
  namespace s = k::scatter;
  const TensorView &x = c.in(), &ids = c.in(1), &updates = c.in(2);
  const int64_t axis = c.option<int64_t>("axis", x.rank() - 1);
  if (axis < 0 || updates.size() != ids.size() || ids.size() == 0) return false;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < x.rank(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : x.shape(i);
  const auto reduction = c.option<std::string_view>("reduction", "none");
  const auto operation = reduction == "add"        ? s::Operation::add
                         : reduction == "multiply" ? s::Operation::multiply
                         : reduction == "max"      ? s::Operation::max
                         : reduction == "min"      ? s::Operation::min
                                                   : s::Operation::none;
  const auto p = s::contiguous_params(x.data(), ids.data(), updates.data(), c.out().data(),
                                      int(dtype_bytes(ids.dtype())), operation, outer,
                                      x.shape(int(axis)), inner, ids.shape(int(axis)));
  const std::string_view problem = s::claimed_problem(p, c.num_sms());
  c.expect("claimed", problem.empty() ? s::claimed_doubt(p) : problem,
           s::claimed_launch(p, c.element_bytes(), c.num_sms()), s::claimed_params(p, c.num_sms()));
  c.expect("naive", "", s::naive_launch(p), p);
  return true;
}

bool transpose(const Planned& c) {
  const int rank = c.in().rank();
  const int64_t rows = c.in().shape(rank - 2), cols = c.in().shape(rank - 1);
  const auto m = k::permute::transpose_move(c.in().data(), c.out().data(), c.element_bytes(),
                                            c.in().size() / rows / cols, rows, cols);
  const auto problem = k::permute::tiled_problem(m);
  if (problem.empty() && k::permute::tiled_waste(m).empty())
    c.expect("tiled", "", k::permute::tiled_launch(m, c.num_sms()),
             k::permute::tiled_params(m, c.num_sms()));
  c.expect("naive", "", k::permute::naive_launch(m), k::permute::naive_params(m));
  return true;
}

bool masked_mean(const Planned& c) {
  const auto p =
      k::masked_mean::contiguous_params(c.in().data(), c.in(1).data(), c.out().data(),
                                        c.in().shape(0), c.in().shape(1), c.in().shape(2));
  c.expect("block", k::masked_mean::block_problem(p), k::masked_mean::block_launch(p), p);
  c.expect("naive", "", k::masked_mean::naive_launch(p), p);
  return true;
}

bool sum(const Planned& c) {
  namespace r = k::reduce;
  const TensorView& x = c.in();
  int64_t axis = c.option<int64_t>("axis", kMaxRank);
  if (axis < 0) axis += x.rank();
  if (axis >= x.rank() || !is_floating(x.dtype())) return false;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) (i < axis ? outer : inner) *= x.shape(i);
  const auto p = r::contiguous_params(x.data(), c.out().data(), outer, x.shape(int(axis)), inner);
  const auto expect = [&](const char* variant, std::string_view problem, std::string_view doubt,
                          const r::Planned& plan) {
    c.expect(variant, problem.empty() ? doubt : problem, plan.launch, plan.params, plan.combine);
  };
  const auto operation = r::Operation::sum;
  expect("naive", r::naive_problem(p), "", r::naive_plan(p, operation));
  expect("row", r::row_problem(p), r::row_doubt(p),
         r::row_plan(p, operation, c.element_bytes(), c.num_sms()));
  if (r::column_problem(p).empty())
    expect("column", "", r::column_doubt(p),
           r::column_plan(p, operation, c.element_bytes(), c.num_sms()));
  return true;
}

bool attention(const Planned& c) {
  if (c.option<std::string_view>("layout", "bhsd") != "bhsd") return false;
  const TensorView &q = c.in(), &key = c.in(1);
  if (key.size() == 0) return false;  // strides of nothing say nothing
  auto p = k::attention::contiguous_params(q.data(), key.data(), c.in(2).data(), c.out().data(),
                                           int(q.shape(0)), int(q.shape(1)), int(key.shape(1)),
                                           int(q.shape(2)), int(key.shape(2)), int(q.shape(3)));
  p.scale = float(c.option<double>("scale", double(1.0f / std::sqrt(float(q.shape(3))))));
  p.causal = c.option<bool>("causal", false);
  p.key_lengths = static_cast<const int32_t*>(c.address("key_lengths"));
  if (c.num_outputs() > 1) p.lse = c.out(1).data_as<float>();
  const int bytes = c.element_bytes();
  if (bytes == 2)
    c.expect("tensor_core",
             k::attention::tensor_core_problem(p, k::attention::rows_aligned(p, bytes),
                                               c.shared_bytes()),
             k::attention::tensor_core_launch(p), p);
  c.expect("tiled", k::attention::tiled_problem(p, c.shared_bytes()), k::attention::tiled_launch(p),
           p);
  c.expect("naive", k::attention::naive_problem(p), k::attention::naive_launch(p), p);
  return true;
}

// Row-major A and B, or stored as columns, with C of the result's type; no batch.
template <class T, class Out>
void expect_gemm(const Planned& c) {
  namespace g = kernels::detail::gemm;
  using g::Layout;
  const auto layout = [&](std::string_view name) {
    return c.option<bool>(name, false) ? Layout::column_major : Layout::row_major;
  };
  const auto *a = c.in().data_as<T>(), *b = c.in(1).data_as<T>();
  auto* d = c.out().data_as<Out>();
  const auto* old = static_cast<const Out*>(c.address("c"));
  const bool columns = layout("transpose_a") == Layout::column_major;
  const g::Problem q = g::make_problem(
      a, b, old, d, c.out().shape(0), c.out().shape(1), c.in().shape(columns ? 0 : 1),
      float(c.option<double>("alpha", 1)), float(c.option<double>("beta", old ? 1 : 0)),
      layout("transpose_a"), layout("transpose_b"));
  const auto p = q.params();
  c.expect("naive", "", g::naive_launch(q), p);
  c.expect("block_tiled", "", g::block_tiled_launch(q), p);
  c.expect("thread_tiled", "", g::thread_tiled_launch(q, c.num_sms()), p);
  c.expect("vectorized", "", g::vectorized_launch(q, c.num_sms()), p);
  if (sizeof(T) == 2) c.expect("tensor_core", "", g::tensor_core_launch(q, c.num_sms()), p);
}

bool gemm(const Planned& c) {
  if (c.in().rank() != 2 || c.in(1).rank() != 2 || c.address("bias") ||
      c.option<std::string_view>("activation", "none") != "none")
    return false;
  if (c.element_bytes() == 4)
    expect_gemm<float, float>(c);
  else if (c.out().dtype() == DType::float32)
    expect_gemm<bf16, float>(c);
  else
    expect_gemm<bf16, bf16>(c);
  return true;
}

bool elementwise(const Planned& c, k::elementwise::Operation operation) {
  namespace e = k::elementwise;
  const bool two = e::num_inputs(operation) > 1;
  const TensorView &a = c.in(), &b = two ? c.in(1) : c.in(), &out = c.out();
  if (a.size() != out.size() || b.size() != out.size()) return false;
  const float alpha = float(c.option<double>(
      operation == e::Operation::swish ? "beta" : "alpha",
      operation == e::Operation::leaky_relu                                ? 0.01f
      : operation == e::Operation::elu || operation == e::Operation::swish ? 1.0f
                                                                           : 0.0f));
  const auto p = e::contiguous_params(a.data(), b.data(), out.data(), out.size(), alpha);
  const auto widest =
      int(std::max({dtype_bytes(a.dtype()), dtype_bytes(b.dtype()), dtype_bytes(out.dtype())}));
  c.expect("naive", "", e::naive_launch(operation, p.size, false), p);
  if (op::is_vector_aligned(p.a) && op::is_vector_aligned(p.b) && op::is_vector_aligned(p.out))
    c.expect("vectorized", "", e::vectorized_launch(operation, p.size, widest, c.num_sms()), p);
  return true;
}

const std::map<std::string_view, bool (*)(const Planned&)> kOperators = {
    {"softmax", softmax},
    {"log_softmax", log_softmax},
    {"logsumexp", logsumexp},
    {"cross_entropy", cross_entropy},
    {"cumulative_sum", cumulative_sum},
    {"topk", topk},
    {"l2_normalize", l2_normalize},
    {"rms_norm", rms_norm},
    {"layer_norm", layer_norm},
    {"embedding", embedding},
    {"masked_mean", masked_mean},
    {"attention", attention},
    {"gemm", gemm},
    {"batch_norm", batch_norm},
    {"group_norm", group_norm},
    {"silu_and_mul", silu_and_mul},
    {"gelu_and_mul", gelu_and_mul},
    {"rope", rope},
    {"quantize", quantize},
    {"sum", sum},
    {"transpose", transpose},
    {"take", take},
    {"pad", pad},
    {"scatter", scatter}};

bool compare(std::string_view name, const Planned& c) {
  static const std::map<std::string_view, k::elementwise::Operation> kOperations = {
      {"negative", k::elementwise::Operation::negative},
      {"exp", k::elementwise::Operation::exp},
      {"tanh", k::elementwise::Operation::tanh},
      {"sigmoid", k::elementwise::Operation::sigmoid},
      {"relu", k::elementwise::Operation::relu},
      {"leaky_relu", k::elementwise::Operation::leaky_relu},
      {"elu", k::elementwise::Operation::elu},
      {"silu", k::elementwise::Operation::silu},
      {"swish", k::elementwise::Operation::swish},
      {"add", k::elementwise::Operation::add},
      {"subtract", k::elementwise::Operation::subtract},
      {"multiply", k::elementwise::Operation::multiply},
      {"divide", k::elementwise::Operation::divide},
      {"maximum", k::elementwise::Operation::maximum},
      {"minimum", k::elementwise::Operation::minimum},
  };
  // A cast to the same dtype is a copy.
  if (name == "astype")
    return c.in().dtype() == c.out().dtype() && elementwise(c, k::elementwise::Operation::copy);
  if (const auto it = kOperators.find(name); it != kOperators.end()) return it->second(c);
  if (const auto it = kOperations.find(name); it != kOperations.end())
    return elementwise(c, it->second);
  return false;
}

TEST(LauncherPlans, AreTheLibrarysForEveryDenseCase) {
  std::map<std::string_view, int> compared;
  for (const Case& c : all_cases()) {
    if (c.has_tag("bench") && !c.has_tag("conformance")) continue;  // large, and no new kernel
    const Planned planned(c);
    if (planned.out().size() == 0 || planned.in().size() == 0 || !planned.is_dense()) continue;
    SCOPED_TRACE(c.name);
    compared[c.op->description().name] += compare(c.op->description().name, planned);
  }
  for (const auto& [name, unused] : kOperators) EXPECT_GT(compared[name], 0) << name;
  for (const char* name : {"add", "exp", "elu", "astype"}) EXPECT_GT(compared[name], 0) << name;
}

}  // namespace
}  // namespace tensorcraft::test
