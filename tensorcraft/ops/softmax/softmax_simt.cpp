// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/softmax/softmax_simt.hpp"

#include "tensorcraft/ops/softmax/00_naive.cuh"
#include "tensorcraft/ops/softmax/01_block.cuh"
#include "tensorcraft/ops/softmax/02_online.cuh"
#include "tensorcraft/ops/softmax/03_in_registers.cuh"

namespace tensorcraft::kernel::softmax {
namespace {

using Float = simt::AnyOf<simt::Types<float>>;
using Halves = simt::AnyOf<simt::Types<f16>, simt::Types<bf16>>;

constexpr std::array kNaive{Config{.threads = 128, .group = 1},
                            Config{.threads = 128, .group = 1, .nested = 1}};
constexpr std::array kBlock{
    Config{.threads = 128, .group = 128}, Config{.threads = 128, .group = 128, .nested = 1},
    Config{.threads = 256, .group = 256}, Config{.threads = 256, .group = 256, .nested = 1}};

template <int vector>
constexpr std::array kOnline{Config{.vector = vector}, Config{.vector = vector, .nested = 1}};

// Short rows, where rows may be nested, and rows of a block of each kind.
template <int vector>
constexpr std::array kInRegisters{
    Config{.threads = 128, .group = 16, .vector = vector, .slots = 1, .whole = 1},
    Config{.threads = 128, .group = 16, .vector = vector, .slots = 3, .whole = 1},
    Config{.threads = 128, .group = 32, .vector = vector, .slots = 1},
    Config{.threads = 128, .group = 32, .vector = vector, .slots = 1, .nested = 1},
    Config{.threads = 128, .group = 32, .vector = vector, .slots = 1, .whole = 1},
    Config{.threads = 128, .group = 32, .vector = vector, .slots = 2},
    Config{.threads = 128, .group = 32, .vector = vector, .slots = 3, .whole = 1},
    Config{.threads = 128, .group = 32, .vector = vector, .slots = 4},
    Config{.threads = 256, .group = 256, .vector = vector, .slots = 2},
    Config{.threads = 256, .group = 256, .vector = vector, .slots = 5},
    Config{.threads = 256, .group = 256, .vector = vector, .slots = 8, .whole = 1}};

}  // namespace

simt::InstanceList naive_instances() {
  return simt::instances<Params, kNaive>(
      simt::Floats{}, []<class T, Config C>(const Params& p) { naive<T, C>(p); });
}

simt::InstanceList block_instances() {
  return simt::instances<Params, kBlock>(
      simt::Floats{}, []<class T, Config C>(const Params& p) { block<T, C>(p); });
}

simt::InstanceList online_instances() {
  const auto rung = []<class T, Config C>(const Params& p) { online<T, C>(p); };
  return simt::concat(simt::instances<Params, kOnline<1>>(simt::Floats{}, rung),
                      simt::instances<Params, kOnline<4>>(Float{}, rung),
                      simt::instances<Params, kOnline<8>>(Halves{}, rung));
}

simt::InstanceList in_registers_instances() {
  const auto rung = []<class T, Config C>(const Params& p) { in_registers<T, C>(p); };
  return simt::concat(simt::instances<Params, kInRegisters<1>>(simt::Floats{}, rung),
                      simt::instances<Params, kInRegisters<4>>(Float{}, rung),
                      simt::instances<Params, kInRegisters<8>>(Halves{}, rung));
}

}  // namespace tensorcraft::kernel::softmax
