// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/l2_normalize/l2_normalize_simt.hpp"

#include "tensorcraft/ops/l2_normalize/00_naive.cuh"
#include "tensorcraft/ops/l2_normalize/01_block.cuh"
#include "tensorcraft/ops/l2_normalize/02_in_registers.cuh"

namespace tensorcraft::kernel::l2_normalize {
namespace {

using Float = simt::AnyOf<simt::Types<float>>;
using Halves = simt::AnyOf<simt::Types<f16>, simt::Types<bf16>>;

constexpr std::array kNaive{Config{.threads = 128, .group = 1},
                            Config{.threads = 128, .group = 1, .nested = 1}};
constexpr std::array kBlock{
    Config{.threads = 128, .group = 128}, Config{.threads = 128, .group = 128, .nested = 1},
    Config{.threads = 256, .group = 256}, Config{.threads = 256, .group = 256, .nested = 1}};

template <int vector>
constexpr std::array kInRegisters{
    Config{.threads = 128, .group = 8, .vector = vector},
    Config{.threads = 128, .group = 8, .vector = vector, .nested = 1},
    Config{.threads = 128, .group = 32, .vector = vector},
    Config{.threads = 128, .group = 32, .vector = vector, .nested = 1},
    Config{.threads = 128, .group = 32, .vector = vector, .whole = 1},
    Config{.threads = 128, .group = 32, .vector = vector, .slots = 2},
    Config{.threads = 128, .group = 16, .vector = vector, .slots = 3, .whole = 1},
    Config{.threads = 128, .group = 32, .vector = vector, .slots = 3, .whole = 1},
    Config{.threads = 128, .group = 128, .vector = vector, .slots = 12}};

}  // namespace

simt::InstanceList naive_instances() {
  return simt::instances<Params, kNaive>(
      simt::Floats{}, []<class T, Config C>(const Params& p) { naive<T, C>(p); });
}

simt::InstanceList block_instances() {
  return simt::instances<Params, kBlock>(
      simt::Floats{}, []<class T, Config C>(const Params& p) { block<T, C>(p); });
}

simt::InstanceList in_registers_instances() {
  const auto rung = []<class T, Config C>(const Params& p) { in_registers<T, C>(p); };
  return simt::concat(simt::instances<Params, kInRegisters<1>>(simt::Floats{}, rung),
                      simt::instances<Params, kInRegisters<4>>(Float{}, rung),
                      simt::instances<Params, kInRegisters<8>>(Halves{}, rung));
}

}  // namespace tensorcraft::kernel::l2_normalize
