// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/batch_norm/problem.hpp"

#include "tensorcraft/ops/batch_norm/00_naive.cuh"
#include "tensorcraft/ops/batch_norm/01_planes.cuh"
#include "tensorcraft/ops/batch_norm/02_channels_last.cuh"
#include "tensorcraft/ops/batch_norm/03_cluster.cuh"
#include "tensorcraft/ops/batch_norm/05_backward_cluster.cuh"

namespace tensorcraft::kernel::batch_norm {
namespace {

using simt::AnyOf, simt::Types, simt::concat, simt::list;

// Types of x and of the vectors of channels.
using Float = AnyOf<Types<float, float>>;
using Half = AnyOf<Types<bf16, float>>;
using All = simt::FloatsAndWider;

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

simt::OperatorInstances instances() {
  return {
      {"naive", list<Naive, kNaive>(All{}, &Config::nested)},
      {"planes", concat(list<Planes, kPlaneFloats>(Float{}), list<Planes, kPlaneHalves>(Half{}))},
      {"channels_last",
       concat(list<ChannelsLast, kRowFloats>(Float{}), list<ChannelsLast, kRowHalves>(Half{}))},
      {"cluster",
       concat(list<Cluster, kClusterFloats>(Float{}), list<Cluster, kClusterHalves>(Half{}))},
      {"backward_naive", list<BackwardNaive, kBackwardNaive>(All{}, &Config::nested)},
      {"backward_cluster", concat(list<BackwardCluster, kBackwardFloats>(Float{}),
                                  list<BackwardCluster, kBackwardHalves>(Half{}))}};
}

}  // namespace tensorcraft::kernel::batch_norm
