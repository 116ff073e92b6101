// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/batch_norm/00_naive.cuh"
#include "tensorcraft/ops/batch_norm/01_planes.cuh"
#include "tensorcraft/ops/batch_norm/03_cluster.cuh"
#include "tensorcraft/ops/batch_norm/05_backward_cluster.cuh"
#include "tensorcraft/ops/batch_norm/plan.h"

// Batch normalisation of dense tensors (batch, channels, spatial), for inference, for training and
// backward. Compiled for each T, type of the vectors, and activation: planes (4 kernels) and naive
// for inference, one block a channel for the other two (2 kernels each).
namespace tensorcraft::kernels {

// Results of training: vectors of an element a channel, each null if it is not wanted.
// The running statistics are read and replaced.
template <class W>
struct BatchStatistics {
  float* mean = nullptr;      // of the batch
  float* rstd = nullptr;      // 1 / sqrt(variance + eps) of the batch
  W* running_mean = nullptr;  // before, and then after the batch
  W* running_var = nullptr;   // the same, of the unbiased variance
  float momentum = 0.1f;      // share of the batch in new running statistics
};

namespace detail::batch_norm {

using namespace kernel::batch_norm;

template <class T, Activation activation>
inline constexpr auto kPlanesInstances = [] {
  std::array<Instance<Config>, 4> all{};
  for (int i = 0; i < 4; ++i)
    all[size_t(i)] = {{.threads = kThreads,
                       .vector = 16 / int(sizeof(T)),
                       .slots = i / 2 ? 1 : kSlots,
                       .activation = activation,
                       .whole = i % 2},
                      4};
  return all;
}();
inline constexpr std::array kNaiveInstances{Instance<Config>{{.threads = 128}}};
// One block a channel, with 16-byte accesses and with single elements.
template <class T, Activation activation>
inline constexpr std::array kChannelInstances{
    Instance<Config>{
        {.vector = 16 / int(sizeof(T)), .slots = kChannelSlots, .activation = activation}},
    Instance<Config>{{.slots = kChannelSlots, .activation = activation}}};

// False if there is nothing to do.
inline bool check_sizes(const char* launcher, const void* in, const void* out, int64_t batch,
                        int64_t channels, int64_t spatial) {
  validate_sizes(launcher, {{"batch", batch}, {"channels", channels}, {"spatial", spatial}});
  if (batch == 0 || channels == 0 || spatial == 0) return false;
  validate_arrays(launcher, {{"in", in}, {"out", out}});
  return true;
}

}  // namespace detail::batch_norm

// out = activation((in - running_mean) / sqrt(running_var + eps) * weight + bias) for each channel;
// weight and bias may be null. T: float, f16 or bf16; W: T or float; computed in float. out may be
// in. Returns the name of the variant, empty if there is nothing to do. Errors and stream as
// launch_softmax.
template <Activation activation = Activation::none, class T, class W>
std::string_view launch_batch_norm(const T* in, const W* running_mean, const W* running_var,
                                   const W* weight, const W* bias, T* out, int64_t batch,
                                   int64_t channels, int64_t spatial, float eps = 1e-5f,
                                   cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace b = detail::batch_norm;
  constexpr const char* kLauncher = "launch_batch_norm";
  if (!b::check_sizes(kLauncher, in, out, batch, channels, spatial)) return {};
  validate_arrays(kLauncher, {{"running_mean", running_mean}, {"running_var", running_var}});
  const b::Params p = b::contiguous_params({.x = in,
                                            .weight = weight,
                                            .bias = bias,
                                            .running_mean = running_mean,
                                            .running_var = running_var,
                                            .out = out},
                                           batch, channels, spatial, eps, 0, activation);
  return launch_ladder(b::kRungs, p, b::Given{sizeof(T)}, stream, where,
                       Kernels<b::Planes, b::kPlanesInstances<T, activation>, T, W>{"planes"},
                       Kernels<b::Naive, b::kNaiveInstances, T, W>{"naive"});
}

// The same with mean and variance of the batch, of at least 2 values a channel; one block each.
template <Activation activation = Activation::none, class T, class W>
std::string_view launch_batch_norm_training(const T* in, const W* weight, const W* bias, T* out,
                                            const BatchStatistics<W>& statistics, int64_t batch,
                                            int64_t channels, int64_t spatial, float eps = 1e-5f,
                                            cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace b = detail::batch_norm;
  constexpr const char* kLauncher = "launch_batch_norm_training";
  if (!b::check_sizes(kLauncher, in, out, batch, channels, spatial)) return {};
  const auto& s = statistics;
  const b::Tensors tensors{.x = in,
                           .weight = weight,
                           .bias = bias,
                           .running_mean = s.running_mean,
                           .running_var = s.running_var,
                           .out = out,
                           .mean = s.mean,
                           .rstd = s.rstd,
                           .running_mean_out = s.running_mean,
                           .running_var_out = s.running_var};
  const b::Params p =
      b::contiguous_params(tensors, batch, channels, spatial, eps, s.momentum, activation);
  return launch_or_fail<Kernels<b::Cluster, b::kChannelInstances<T, activation>, T, W>>(
      "cluster", b::cluster(p, {sizeof(T), true}, {}).start, p, stream, where);
}

// The gradients of launch_batch_norm_training without an activation, from that of its result and
// from the mean and rstd that it left; weight, grad_weight and grad_bias may be null. grad_in may
// be grad or in.
template <class T, class W>
std::string_view launch_batch_norm_backward(const T* grad, const T* in, const W* weight,
                                            const float* mean, const float* rstd, T* grad_in,
                                            W* grad_weight, W* grad_bias, int64_t batch,
                                            int64_t channels, int64_t spatial,
                                            cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace b = detail::batch_norm;
  constexpr const char* kLauncher = "launch_batch_norm_backward";
  if (!b::check_sizes(kLauncher, in, grad_in, batch, channels, spatial)) return {};
  validate_arrays(kLauncher, {{"grad", grad}, {"mean", mean}, {"rstd", rstd}});
  const b::BackwardTensors tensors{.grad = grad,
                                   .x = in,
                                   .weight = weight,
                                   .mean = mean,
                                   .rstd = rstd,
                                   .grad_input = grad_in,
                                   .grad_weight = grad_weight,
                                   .grad_bias = grad_bias};
  const b::BackwardParams p = b::contiguous_params(tensors, batch, channels, spatial);
  return launch_or_fail<
      Kernels<b::BackwardCluster, b::kChannelInstances<T, Activation::none>, T, W>>(
      "cluster", b::backward_cluster(p, {sizeof(T)}, {}).start, p, stream, where);
}

}  // namespace tensorcraft::kernels
