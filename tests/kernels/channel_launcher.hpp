// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/batch_norm/plan.h"
#include "tensorcraft/ops/group_norm/plan.h"
#include "tests/kernels/launcher_call.hpp"

// Compare the launchers of norms of channels; false if no launcher can express a case.
namespace tensorcraft::test {

inline int64_t plane_size(const TensorView& x) { return split_at(x, 1).inner; }

inline bool compare_batch_norm(const LauncherCall& c) {
  namespace b = kernel::batch_norm;
  const b::Tensors t{.x = c.in().data(),
                     .weight = c.address("weight"),
                     .bias = c.address("bias"),
                     .running_mean = c.address("running_mean"),
                     .running_var = c.address("running_var"),
                     .out = c.out().writable_data(),
                     .mean = c.output<float>("mean"),
                     .rstd = c.output<float>("rstd"),
                     .running_mean_out = c.output("running_mean_out"),
                     .running_var_out = c.output("running_var_out")};
  const auto p = b::contiguous_params(t, c.in().shape(0), c.in().shape(1), plane_size(c.in()),
                                      c.number("eps", 1e-5), c.number("momentum", 0.1),
                                      c.choice("activation", Activation::none));
  c.expect_rungs(b::kRungs, p, b::Given{c.element_bytes(), c.option("training", false)});
  return true;
}

inline bool compare_batch_norm_backward(const LauncherCall& c) {
  namespace b = kernel::batch_norm;
  const TensorView& x = c.in(1);
  const b::BackwardParams p =
      b::contiguous_params(b::BackwardTensors{.grad = c.in().data(),
                                              .x = x.data(),
                                              .weight = c.address("weight"),
                                              .mean = c.address<float>("mean"),
                                              .rstd = c.address<float>("rstd"),
                                              .grad_input = c.out().writable_data(),
                                              .grad_weight = c.output("grad_weight"),
                                              .grad_bias = c.output("grad_bias")},
                           x.shape(0), x.shape(1), plane_size(x));
  c.expect_rungs(b::kBackwardRungs, p, b::Given{c.element_bytes()});
  return true;
}

inline bool compare_group_norm(const LauncherCall& c) {
  namespace g = kernel::group_norm;
  const auto p = g::contiguous_params(c.in().data(), c.address("weight"), c.address("bias"),
                                      c.out().writable_data(), c.in().shape(0), c.in().shape(1),
                                      plane_size(c.in()), c.option<int64_t>("num_groups", 1),
                                      c.number("eps", 1e-5));
  c.expect_rungs(g::kRungs, p, g::Given{c.element_bytes()});
  return true;
}

}  // namespace tensorcraft::test
