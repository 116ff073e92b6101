// SPDX-License-Identifier: Apache-2.0
// Operators on rows: what their launchers plan.
#include "tensorcraft/ops/batch_norm/plan.h"
#include "tensorcraft/ops/cross_entropy/plan.h"
#include "tensorcraft/ops/cumulative_sum/plan.h"
#include "tensorcraft/ops/group_norm/plan.h"
#include "tensorcraft/ops/l2_normalize/plan.h"
#include "tensorcraft/ops/l2_normalize/plan.h"
#include "tensorcraft/ops/layer_norm/plan.h"
#include "tensorcraft/ops/layer_norm/plan.h"
#include "tensorcraft/ops/rms_norm/plan.h"
#include "tensorcraft/ops/softmax/plan.h"
#include "tensorcraft/ops/topk/plan.h"
#include "tests/kernels/planned.hpp"

namespace tensorcraft::test {

// Each returns false where a launcher of raw pointers has no such call.
bool softmax_form(const Planned& c, k::softmax::Form form) {
  const int last = c.in().rank() - 1;
  const int64_t axis = c.option<int64_t>("axis", -1);
  if (c.in().rank() == 0 || (axis != -1 && axis != last)) return false;
  if (c.address("mask") || c.option<double>("scale", 1) != 1) return false;
  const int64_t cols = c.in().shape(last);
  const auto p = k::softmax::contiguous_params(c.in().data(), c.out().data(), c.in().size() / cols,
                                               cols, form);
  const int bytes = c.element_bytes();
  const k::softmax::Given given{.form = form};
  c.expect("in_registers", k::softmax::in_registers_problem(p, bytes, given),
           k::softmax::in_registers_launch(p, bytes, given), p);
  c.expect("online", k::softmax::online_problem(p, given),
           k::softmax::online_launch(p, bytes, given), p);
  return true;
}

bool cross_entropy(const Planned& c) {
  if (c.option<std::string_view>("reduction", "mean") != "none") return false;
  auto* const lse = c.num_outputs() > 1 ? c.out(1).data_as<float>() : nullptr;
  const int64_t rows = c.in(1).size();
  auto p = k::cross_entropy::contiguous_params(
      c.in().data(), c.in(1).data(), c.out().data_as<float>(), lse, rows, c.in().size() / rows);
  p.ignore_index = c.option<int64_t>("ignore_index", p.ignore_index);
  c.expect("online", k::cross_entropy::online_problem(p),
           k::cross_entropy::online_launch(p, c.element_bytes(), c.in().dtype() == DType::float16),
           p);
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

bool cumulative_sum(const Planned& c) {
  namespace s = k::cumulative_sum;
  const TensorView& x = c.in();
  const int64_t axis = c.option<int64_t>("axis", 0), last = x.rank() - 1;
  if (axis != -1 && axis != last) return false;
  const int64_t cols = x.shape(int(last));
  const auto p = s::contiguous_params(x.data(), c.out().data(), x.size() / cols, cols);
  const auto row = s::row_plan(p, is_floating(x.dtype()), c.element_bytes(), c.num_sms());
  const std::string_view problem = s::row_problem(p);
  c.expect("row", problem.empty() ? s::row_doubt(p) : problem, row.launch, row.params);
  const auto naive = s::naive_plan(p);
  c.expect("naive", s::naive_problem(p), naive.launch, naive.params);
  return true;
}

bool topk(const Planned& c) {
  namespace t = k::topk;
  const int last = c.in().rank() - 1;
  const int64_t axis = c.option<int64_t>("axis", -1);
  if (axis != -1 && axis != last) return false;
  const int64_t cols = c.in().shape(last);
  const auto p = t::contiguous_params(c.in().data(), c.out().data(), c.out(1).data_as<int64_t>(),
                                      c.in().size() / cols, cols, c.option<int64_t>("k", 1));
  c.expect("warp", t::warp_problem(p), t::warp_launch(p), p);
  c.expect("block", t::rows_problem(p), t::block_launch(p), p);
  return true;
}

// Of either norm, which stores values or codes.
template <class Params, class Config>
void expect_norm(const Planned& c, const Params& p, const Config& given) {
  const int bytes = c.element_bytes();
  if (c.out().dtype() != c.in().dtype()) {
    c.expect("in_registers", in_registers_problem(p),
             quantized_in_registers_launch(p, given, bytes), p);
    c.expect("block", "", block_launch(p, Config{}), p);
    return;
  }
  const int weight_bytes = c.element_bytes(c.address("weight") ? "weight" : "bias");
  c.expect("in_registers", in_registers_problem(p),
           in_registers_launch(p, given, bytes, weight_bytes), p);
  c.expect("vectorized", vectorized_problem(p, bytes), vectorized_launch(p, given, bytes), p);
  c.expect("block", "", block_launch(p, given), p);
}

bool rms_norm(const Planned& c) {
  const int64_t cols = c.in().shape(c.in().rank() - 1);
  Planned::Outputs outputs(c);
  k::rms_norm::Tensors t{.x = c.in().data(),
                         .residual = c.address("residual"),
                         .weight = c.address("weight"),
                         .out = outputs.next(),
                         .residual_out = nullptr};
  auto* const scales = static_cast<float*>(outputs.next(c.option<bool>("per_token", false)));
  t.residual_out = outputs.next(t.residual != nullptr);
  auto p = k::rms_norm::contiguous_params(t, c.in().size() / cols, cols,
                                          float(c.option<double>("eps", 1e-6)));
  p.scale = float(c.option<double>("scale", 0));
  p.scales = scales;
  const k::rms_norm::Config given{.has_residual = t.residual != nullptr,
                                  .has_weight = t.weight != nullptr};
  expect_norm(c, p, given);
  return true;
}

bool layer_norm(const Planned& c) {
  constexpr std::string_view kNames[] = {"none", "relu", "gelu", "gelu_tanh", "silu"};
  const auto activation = c.option<std::string_view>("activation", "none");
  const auto* const name = std::find(std::begin(kNames), std::end(kNames), activation);
  const int64_t cols = c.in().shape(c.in().rank() - 1);
  const bool has_stats = c.option<bool>("return_stats", false);
  Planned::Outputs outputs(c);
  k::layer_norm::Tensors t{.x = c.in().data(),
                           .residual = c.address("residual"),
                           .weight = c.address("weight"),
                           .bias = c.address("bias"),
                           .out = outputs.next(),
                           .residual_out = nullptr,
                           .mean = static_cast<float*>(outputs.next(has_stats)),
                           .rstd = static_cast<float*>(outputs.next(has_stats))};
  auto* const scales = static_cast<float*>(outputs.next(c.option<bool>("per_token", false)));
  t.residual_out = outputs.next(t.residual != nullptr);
  auto p = k::layer_norm::contiguous_params(t, c.in().size() / cols, cols,
                                            float(c.option<double>("eps", 1e-5)));
  const k::layer_norm::Config given{.activation = Activation(name - std::begin(kNames)),
                                    .has_residual = t.residual != nullptr,
                                    .has_weight = t.weight != nullptr,
                                    .has_bias = t.bias != nullptr};
  p.scale = float(c.option<double>("scale", 0));
  p.scales = scales;
  // Compiled into a kernel that stores values.
  if (c.out().dtype() != c.in().dtype()) p.activation = given.activation;
  expect_norm(c, p, given);
  return true;
}

int64_t plane_size(const TensorView& x) { return x.size() / (x.shape(0) * x.shape(1)); }

bool batch_norm(const Planned& c) {
  namespace b = k::batch_norm;
  constexpr std::string_view kNames[] = {"none", "relu", "gelu", "gelu_tanh", "silu"};
  const auto activation = c.option<std::string_view>("activation", "none");
  const auto* const name = std::find(std::begin(kNames), std::end(kNames), activation);
  const bool training = c.option<bool>("training", false);
  b::Tensors t{.x = c.in().data(),
               .weight = c.address("weight"),
               .bias = c.address("bias"),
               .running_mean = c.address("running_mean"),
               .running_var = c.address("running_var"),
               .out = c.out().data(),
               .mean = nullptr,
               .rstd = nullptr,
               .running_mean_out = nullptr,
               .running_var_out = nullptr};
  if (training) {
    t.mean = c.out(1).data_as<float>();
    t.rstd = c.out(2).data_as<float>();
    if (c.num_outputs() > 3) t.running_mean_out = c.out(3).data();
    if (c.num_outputs() > 4) t.running_var_out = c.out(4).data();
  }
  const auto p = b::contiguous_params(
      t, c.in().shape(0), c.in().shape(1), plane_size(c.in()), float(c.option<double>("eps", 1e-5)),
      float(c.option<double>("momentum", 0.1)), Activation(name - std::begin(kNames)));
  const int bytes = c.element_bytes();
  if (training)
    c.expect("cluster", "", b::cluster_launch(p, bytes, c.num_sms(), true), p);
  else
    c.expect("planes", b::planes_problem(p, bytes), b::planes_launch(p, bytes), p);
  c.expect("naive", "", b::naive_launch(p, training), p);
  return true;
}

bool group_norm(const Planned& c) {
  namespace g = k::group_norm;
  const auto p = g::contiguous_params(c.in().data(), c.address("weight"), c.address("bias"),
                                      c.out().data(), c.in().shape(0), c.in().shape(1),
                                      plane_size(c.in()), c.option<int64_t>("num_groups", 1),
                                      float(c.option<double>("eps", 1e-5)));
  const int bytes = c.element_bytes();
  c.expect("in_registers", g::in_registers_problem(p), g::in_registers_launch(p, bytes), p);
  c.expect("cluster", g::cluster_problem(p), g::cluster_launch(p, bytes, c.num_sms(), true), p);
  return true;
}
bool softmax(const Planned& c) { return softmax_form(c, k::softmax::Form::softmax); }
bool log_softmax(const Planned& c) { return softmax_form(c, k::softmax::Form::log_softmax); }
bool logsumexp(const Planned& c) { return softmax_form(c, k::softmax::Form::logsumexp); }

}  // namespace tensorcraft::test
