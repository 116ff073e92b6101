// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/batch_norm/batch_norm_simt.hpp"

#include "tensorcraft/ops/batch_norm/00_naive.cuh"
#include "tensorcraft/ops/batch_norm/01_planes.cuh"
#include "tensorcraft/ops/batch_norm/02_channels_last.cuh"
#include "tensorcraft/ops/batch_norm/03_cluster.cuh"
#include "tensorcraft/ops/batch_norm/05_backward_cluster.cuh"

namespace tensorcraft::kernel::batch_norm {
namespace {

using simt::AnyOf, simt::Types, simt::InstanceList, simt::instances;

// Types of x and of the vectors of channels.
using Float = AnyOf<Types<float, float>>;
using Half = AnyOf<Types<bf16, float>>;
using All = AnyOf<Types<float, float>, Types<f16, f16>, Types<f16, float>, Types<bf16, bf16>,
                  Types<bf16, float>>;

constexpr std::array kNaive{Config{.threads = 128, .nested = 1},
                            Config{.threads = 128, .training = 1, .nested = 1}};
constexpr std::array kBackwardNaive{Config{.threads = 128, .nested = 1}};

constexpr Config planes_of(int vector, int slots, bool whole, Activation activation) {
  return {.vector = vector, .slots = slots, .activation = activation, .whole = whole};
}
constexpr std::array kPlaneFloats{planes_of(4, 4, true, Activation::none),
                                  planes_of(4, 4, false, Activation::relu)};
constexpr std::array kPlaneHalves{planes_of(8, 4, false, Activation::gelu),
                                  planes_of(8, 1, false, Activation::gelu_tanh)};
constexpr std::array kRowFloats{Config{.vector = 4, .slots = 4}};
constexpr std::array kRowHalves{Config{.vector = 8, .slots = 4, .activation = Activation::silu}};

constexpr Config shared(int vector, int cluster, bool nested = false,
                        Activation activation = Activation::none) {
  return {
      .vector = vector, .slots = 2, .cluster = cluster, .activation = activation, .nested = nested};
}
constexpr std::array kClusterFloats{shared(4, 1), shared(4, 8), shared(1, 2),
                                    shared(1, 1, true, Activation::relu)};
constexpr std::array kClusterHalves{shared(8, 4, false, Activation::silu), shared(1, 1)};
constexpr std::array kBackwardFloats{shared(4, 1), shared(4, 8), shared(1, 1, true)};
constexpr std::array kBackwardHalves{shared(8, 2), shared(1, 1)};

}  // namespace

InstanceList naive_instances() {
  return instances<Params, kNaive>(
      All{}, []<class T, class W, Config C>(const Params& p) { naive<T, W, C>(p); },
      &Config::nested);
}

InstanceList planes_instances() {
  const auto rung = []<class T, class W, Config C>(const Params& p) { planes<T, W, C>(p); };
  return simt::concat(instances<Params, kPlaneFloats>(Float{}, rung),
                      instances<Params, kPlaneHalves>(Half{}, rung));
}

InstanceList channels_last_instances() {
  const auto rung = []<class T, class W, Config C>(const Params& p) { channels_last<T, W, C>(p); };
  return simt::concat(instances<Params, kRowFloats>(Float{}, rung),
                      instances<Params, kRowHalves>(Half{}, rung));
}

InstanceList cluster_instances() {
  const auto rung = []<class T, class W, Config C>(const Params& p) { cluster<T, W, C>(p); };
  return simt::concat(instances<Params, kClusterFloats>(Float{}, rung),
                      instances<Params, kClusterHalves>(Half{}, rung));
}

InstanceList backward_naive_instances() {
  return instances<BackwardParams, kBackwardNaive>(
      All{},
      []<class T, class W, Config C>(const BackwardParams& p) { backward_naive<T, W, C>(p); },
      &Config::nested);
}

InstanceList backward_cluster_instances() {
  const auto rung = []<class T, class W, Config C>(const BackwardParams& p) {
    backward_cluster<T, W, C>(p);
  };
  return simt::concat(instances<BackwardParams, kBackwardFloats>(Float{}, rung),
                      instances<BackwardParams, kBackwardHalves>(Half{}, rung));
}

}  // namespace tensorcraft::kernel::batch_norm
