// SPDX-License-Identifier: Apache-2.0
// The launchers of kernels/ and the library choose alike: for each case whose tensors are dense,
// what a launcher's plan header makes of raw pointers is, byte for byte, what the library plans.
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/kernels/gemm_problem.hpp"
#include "tensorcraft/ops/attention/plan.h"
#include "tensorcraft/ops/elementwise/plan.h"
#include "tensorcraft/ops/embedding/plan.h"
#include "tensorcraft/ops/l2_normalize/plan.h"
#include "tensorcraft/ops/layer_norm/plan.h"
#include "tensorcraft/ops/masked_mean/plan.h"
#include "tensorcraft/ops/rms_norm/plan.h"
#include "tensorcraft/ops/softmax/plan.h"
#include "tests/support/cases.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace tensorcraft::testing {
namespace {

namespace k = tensorcraft::kernel;

TensorView on_gpu(const TensorView& t) {
  return {t.data(), t.dtype(), t.shape(), t.strides(), Device::cuda(0)};
}

// The bytes of a struct, those between its fields as 0.
template <class T>
std::string bytes_of(const void* at) {
  T value;
  std::memcpy(static_cast<void*>(&value), at, sizeof(T));
  __builtin_clear_padding(&value);
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

// A case's call as if its memory lay on a GPU, and what the library plans for it.
class Planned {
 public:
  explicit Planned(const Case& c)
      : op_(*c.op), run_(c, Device::cpu()), device_(device_info_of_arch("sm_90a")) {
    const op::Arguments host = run_.arguments({});
    for (const auto& t : host.inputs) in_.push_back(on_gpu(t));
    for (const auto& t : run_.outputs()) out_.push_back(on_gpu(t));
    options_.assign(host.options.begin(), host.options.end());
    for (auto& v : options_)
      if (const auto* t = std::get_if<TensorView>(&v)) v = on_gpu(*t);
    variants_ = op_.explain(out_, {in_, options_, {}, std::nullopt}, device_).variants;
  }

  const TensorView& in(size_t i = 0) const { return in_[i]; }
  const TensorView& out(size_t i = 0) const { return out_[i]; }
  size_t num_outputs() const { return out_.size(); }
  int num_sms() const { return device_.num_sms; }
  size_t shared_bytes() const { return device_.shared_bytes_per_block; }
  int element_bytes() const { return int(dtype_bytes(in_[0].dtype())); }
  bool is_dense() const {
    const auto dense = [](const TensorView& t) { return t.is_contiguous(); };
    for (const auto& v : options_)
      if (const auto* t = std::get_if<TensorView>(&v); t && !dense(*t)) return false;
    return std::all_of(in_.begin(), in_.end(), dense) &&
           std::all_of(out_.begin(), out_.end(), dense);
  }

  template <class T>
  T option(std::string_view name, T otherwise) const {
    const auto& known = op_.description().options;
    for (size_t i = 0; i < known.size(); ++i) {
      if (known[i].name != name) continue;
      if (const auto* v = std::get_if<T>(&options_[i])) return *v;
      if constexpr (std::is_same_v<T, double>)  // a case may write a number without a point
        if (const auto* v = std::get_if<int64_t>(&options_[i])) return double(*v);
    }
    return otherwise;
  }
  // The address of an optional input, null where it is not given.
  void* address(std::string_view name) const {
    const TensorView none(nullptr, DType::float32, {0});
    return option<TensorView>(name, none).data();
  }

  // The library's row of this name declines for the same reason, or plans the same.
  template <class Params, class Config>
  void expect(std::string_view variant, std::string_view problem,
              const op::LaunchPlan<Config>& launch, const Params& params) const {
    for (const auto& row : variants_) {
      if (row.variant.name != variant) continue;
      EXPECT_EQ(row.reason, problem) << variant;
      if (!row.plan || !problem.empty()) return;
      EXPECT_EQ(row.plan->launch.grid, (Dim3{uint32_t(launch.blocks)})) << variant;
      EXPECT_EQ(row.plan->launch.block, (Dim3{uint32_t(launch.config.threads)})) << variant;
      EXPECT_EQ(int(row.plan->launch.shared_bytes), launch.shared_bytes) << variant;
      EXPECT_EQ(row.plan->kernel.min_blocks, launch.min_blocks) << variant;
      EXPECT_EQ(std::memcmp(row.plan->kernel.config.data(), &launch.config, sizeof(Config)), 0)
          << variant << ": Config";
      ASSERT_EQ(row.plan->params_bytes, sizeof(Params));
      EXPECT_EQ(bytes_of<Params>(row.plan->params), bytes_of<Params>(&params)) << variant;
      return;
    }
    ADD_FAILURE() << "the library has no row " << variant;
  }

 private:
  const op::Operator& op_;
  CaseRun run_;
  DeviceInfo device_;
  std::vector<TensorView> in_, out_;
  std::vector<op::Value> options_;
  std::vector<op::Considered> variants_;
};

// Each returns false where a launcher of raw pointers has no such call.
bool softmax(const Planned& c) {
  const int last = c.in().rank() - 1;
  const int64_t axis = c.option<int64_t>("axis", -1);
  if (c.in().rank() == 0 || (axis != -1 && axis != last)) return false;
  const int64_t cols = c.in().shape(last);
  const auto p =
      k::softmax::contiguous_params(c.in().data(), c.out().data(), c.in().size() / cols, cols);
  const int bytes = c.element_bytes();
  c.expect("in_registers", k::softmax::in_registers_problem(p, bytes),
           k::softmax::in_registers_launch(p, bytes), p);
  c.expect("online", k::softmax::online_problem(p), k::softmax::online_launch(p, bytes), p);
  return true;
}

bool l2_normalize(const Planned& c) {
  const int last = c.in().rank() - 1;
  const int64_t axis = c.option<int64_t>("axis", -1);
  if (c.in().rank() == 0 || (axis != -1 && axis != last)) return false;
  const int64_t cols = c.in().shape(last);
  const auto p =
      k::l2_normalize::contiguous_params(c.in().data(), c.out().data(), c.in().size() / cols, cols,
                                         float(c.option<double>("eps", 1e-12)));
  c.expect("in_registers", k::l2_normalize::in_registers_problem(p),
           k::l2_normalize::in_registers_launch(p, c.element_bytes()), p);
  c.expect("block", "", k::l2_normalize::block_launch(p), p);
  return true;
}

template <class Problem, class Launch, class General, class Params, class Config>
void expect_norm(const Planned& c, Problem problem, Launch in_registers, General vectorized,
                 const Params& p, const Config& given) {
  const int bytes = c.element_bytes();
  c.expect("in_registers", in_registers_problem(p), in_registers(p, given, bytes), p);
  c.expect("vectorized", problem(p, bytes), vectorized(p, given, bytes), p);
  c.expect("block", "", block_launch(p, given), p);
}

bool rms_norm(const Planned& c) {
  const int64_t cols = c.in().shape(c.in().rank() - 1);
  const k::rms_norm::Tensors t{.x = c.in().data(),
                               .residual = c.address("residual"),
                               .weight = c.address("weight"),
                               .out = c.out().data(),
                               .residual_out = c.num_outputs() > 1 ? c.out(1).data() : nullptr};
  const auto p = k::rms_norm::contiguous_params(t, c.in().size() / cols, cols,
                                                float(c.option<double>("eps", 1e-6)));
  const k::rms_norm::Config given{.has_residual = t.residual != nullptr,
                                  .has_weight = t.weight != nullptr};
  expect_norm(c, k::rms_norm::vectorized_problem, k::rms_norm::in_registers_launch,
              k::rms_norm::vectorized_launch, p, given);
  return true;
}

bool layer_norm(const Planned& c) {
  if (c.option<bool>("return_stats", false)) return false;  // outputs in another order
  constexpr std::string_view kNames[] = {"none", "relu", "gelu", "gelu_tanh", "silu"};
  const auto activation = c.option<std::string_view>("activation", "none");
  const auto* const name = std::find(std::begin(kNames), std::end(kNames), activation);
  const int64_t cols = c.in().shape(c.in().rank() - 1);
  const k::layer_norm::Tensors t{.x = c.in().data(),
                                 .residual = c.address("residual"),
                                 .weight = c.address("weight"),
                                 .bias = c.address("bias"),
                                 .out = c.out().data(),
                                 .residual_out = c.num_outputs() > 1 ? c.out(1).data() : nullptr,
                                 .mean = nullptr,
                                 .rstd = nullptr};
  const auto p = k::layer_norm::contiguous_params(t, c.in().size() / cols, cols,
                                                  float(c.option<double>("eps", 1e-5)));
  const k::layer_norm::Config given{
      .activation = k::layer_norm::Activation(name - std::begin(kNames)),
      .has_residual = t.residual != nullptr,
      .has_weight = t.weight != nullptr,
      .has_bias = t.bias != nullptr};
  expect_norm(c, k::layer_norm::vectorized_problem, k::layer_norm::in_registers_launch,
              k::layer_norm::vectorized_launch, p, given);
  return true;
}

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

bool masked_mean(const Planned& c) {
  const auto p =
      k::masked_mean::contiguous_params(c.in().data(), c.in(1).data(), c.out().data(),
                                        c.in().shape(0), c.in().shape(1), c.in().shape(2));
  c.expect("block", k::masked_mean::block_problem(p), k::masked_mean::block_launch(p), p);
  c.expect("naive", "", k::masked_mean::naive_launch(p), p);
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

bool compare(std::string_view name, const Planned& c) {
  static const std::map<std::string_view, bool (*)(const Planned&)> kOperators = {
      {"softmax", softmax},     {"l2_normalize", l2_normalize},
      {"rms_norm", rms_norm},   {"layer_norm", layer_norm},
      {"embedding", embedding}, {"masked_mean", masked_mean},
      {"attention", attention}, {"gemm", gemm}};
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
      {"copy", k::elementwise::Operation::copy},
  };
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
  for (const char* name : {"softmax", "l2_normalize", "rms_norm", "layer_norm", "embedding",
                           "masked_mean", "attention", "gemm", "add", "exp", "elu", "copy"})
    EXPECT_GT(compared[name], 0) << name;
}

}  // namespace
}  // namespace tensorcraft::testing
