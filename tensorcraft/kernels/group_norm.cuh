// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/group_norm/01_cluster.cuh"
#include "tensorcraft/ops/group_norm/02_in_registers.cuh"
#include "tensorcraft/ops/group_norm/plan.h"

// Normalisation of groups of channels of dense tensors (batch, channels, spatial). Compiled for
// each T and type of the vectors: in_registers for aligned groups of the sizes of kRegisterRows
// whose planes are whole accesses (18 kernels), and one block a group for all others (3).
namespace tensorcraft::kernels {
namespace detail::group_norm {

using namespace kernel::group_norm;

template <class T>
inline constexpr auto kRegisterInstances = [] {
  std::array<Instance<Config>, kRegisterRows.size()> all{};
  for (size_t i = 0; i < all.size(); ++i) {
    Config c = in_registers_config(kRegisterRows[i], 16 / int(sizeof(T)), true);
    all[i] = {c, in_registers_min_blocks(c)};
  }
  return all;
}();
template <class T>
inline constexpr std::array kBlockInstances{
    Instance<Config>{{.vector = 16 / int(sizeof(T)), .slots = kClusterSlots, .planes = 1}},
    Instance<Config>{{.vector = 16 / int(sizeof(T)), .slots = kClusterSlots, .planes = 0}},
    Instance<Config>{{.vector = 1, .slots = kClusterSlots, .planes = 1}}};

}  // namespace detail::group_norm

// out = (in - mean) / sqrt(variance + eps) * weight + bias, with mean and variance of each of
// `groups` groups of neighbouring channels of each sample; weight and bias [channels] may each be
// null. T: float, f16 or bf16; W: T or float; computed in float. out may be in. Returns the name of
// the variant, empty if there is nothing to do. Errors and stream as launch_softmax.
template <class T, class W>
std::string_view launch_group_norm(const T* in, const W* weight, const W* bias, T* out,
                                   int64_t batch, int64_t channels, int64_t spatial, int64_t groups,
                                   float eps = 1e-5f, cudaStream_t stream = nullptr,
                                   DebugInfo where = {}) {
  namespace g = detail::group_norm;
  constexpr const char* kLauncher = "launch_group_norm";
  validate_sizes(kLauncher, {{"batch", batch}, {"channels", channels}, {"spatial", spatial}});
  if (groups < 1 || channels % groups)
    throw std::invalid_argument("launch_group_norm: groups must divide channels");
  if (batch == 0 || channels == 0 || spatial == 0) return {};
  validate_arrays(kLauncher, {{"in", in}, {"out", out}});
  const g::Params p =
      g::contiguous_params(in, weight, bias, out, batch, channels, spatial, groups, eps);
  const g::Given given{sizeof(T)};
  const g::Choice one_block = g::cluster(p, given, {});  // of a GPU without clusters
  if (!one_block.refusal.empty())
    throw std::invalid_argument(join("launch_group_norm: ", one_block.refusal));
  const g::Choice held = g::in_registers(p, given, {});
  if (held.refusal.empty() &&
      launch_listed<Kernels<g::InRegisters, g::kRegisterInstances<T>, T, W>>(held.start, p, stream,
                                                                             where))
    return "in_registers";
  return launch_or_fail<Kernels<g::Cluster, g::kBlockInstances<T>, T, W>>(
      "cluster", one_block.start, p, stream, where);
}

}  // namespace tensorcraft::kernels
