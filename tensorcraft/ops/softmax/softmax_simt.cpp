// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/softmax/problem.hpp"

#include "tensorcraft/ops/softmax/00_naive.cuh"
#include "tensorcraft/ops/softmax/01_block.cuh"
#include "tensorcraft/ops/softmax/02_online.cuh"
#include "tensorcraft/ops/softmax/03_in_registers.cuh"
#include "tensorcraft/ops/softmax/04_cluster.cuh"
#include "tensorcraft/ops/softmax/05_staged.cuh"
#include "tensorcraft/ops/softmax/06_persistent.cuh"

namespace tensorcraft::kernel::softmax {
namespace {

using simt::AnyOf, simt::Types, simt::concat, simt::list;

using simt::Bf16, simt::Float, simt::Halves;
using Two = AnyOf<Types<float>, Types<bf16>>;

constexpr Config with(Config config, Form form, Mask mask = Mask::none) {
  config.form = form;
  config.mask = mask;
  config.scaled |= mask != Mask::none;
  return config;
}
constexpr Config masked(Config config, Mask mask) { return with(config, Form::softmax, mask); }
constexpr Config nested(Config config) {
  config.nested = 1;
  return config;
}

constexpr Config kRow{.threads = 128, .group = 1, .nested = 1, .scaled = 1};
constexpr std::array kNaive{kRow,
                            masked(kRow, Mask::boolean),
                            masked(kRow, Mask::like_x),
                            with(kRow, Form::log_softmax),
                            with(kRow, Form::log_softmax, Mask::boolean),
                            with(kRow, Form::log_softmax, Mask::like_x),
                            with(kRow, Form::logsumexp)};
constexpr std::array kNaiveWide{masked(kRow, Mask::float32),
                                with(kRow, Form::log_softmax, Mask::float32)};

constexpr Config kShort{.threads = 128, .group = 128, .nested = 1, .scaled = 1};
constexpr std::array kBlock{kShort,
                            Config{.threads = 256, .group = 256, .nested = 1, .scaled = 1},
                            masked(kShort, Mask::boolean),
                            masked(kShort, Mask::like_x),
                            with(kShort, Form::log_softmax),
                            with(kShort, Form::logsumexp)};

template <int vector>
constexpr Config kLong{.vector = vector, .nested = 1, .scaled = 1};
template <int vector>
constexpr std::array kOnline{kLong<vector>};
constexpr std::array kOnlineFloats{kLong<4>, with(kLong<4>, Form::log_softmax),
                                   masked(kLong<4>, Mask::like_x)};
constexpr std::array kOnlineHalves{kLong<8>, with(kLong<8>, Form::logsumexp),
                                   masked(kLong<8>, Mask::boolean),
                                   masked(kLong<8>, Mask::float32)};

constexpr Config slots(int threads, int group, int vector, int slots, bool whole) {
  return {.threads = threads, .group = group, .vector = vector, .slots = slots, .whole = whole};
}

// Rows of a warp and of a block, in single elements and in 16-byte accesses.
constexpr std::array kScalar{slots(128, 32, 1, 1, false), slots(128, 32, 1, 2, false),
                             slots(128, 32, 1, 4, false), slots(1024, 1024, 1, 2, false)};
constexpr Config kWarpOfFloats = slots(128, 32, 4, 1, false);
constexpr std::array kFloats{kWarpOfFloats,
                             nested(kWarpOfFloats),
                             slots(128, 32, 4, 3, true),
                             slots(256, 256, 4, 2, true),
                             nested(slots(512, 512, 4, 2, false)),
                             masked(kWarpOfFloats, Mask::boolean),
                             masked(kWarpOfFloats, Mask::like_x),
                             with(kWarpOfFloats, Form::log_softmax),
                             with(kWarpOfFloats, Form::logsumexp)};
constexpr Config kWarpOfHalves = slots(128, 32, 8, 1, false),
                 kBlockOfHalves = slots(256, 256, 8, 1, true);
constexpr std::array kHalves{kWarpOfHalves,
                             nested(kWarpOfHalves),
                             slots(128, 16, 8, 3, true),
                             kBlockOfHalves,
                             nested(slots(256, 256, 8, 2, false)),
                             nested(masked(kWarpOfHalves, Mask::float32)),
                             masked(kBlockOfHalves, Mask::boolean),
                             with(kBlockOfHalves, Form::log_softmax),
                             with(kBlockOfHalves, Form::logsumexp)};

template <int vector>
constexpr Config shared_row(int slots, int cluster, bool whole) {
  return {.vector = vector, .slots = slots, .whole = whole, .cluster = cluster};
}
constexpr std::array kClusterFloats{shared_row<4>(8, 2, true), shared_row<4>(5, 4, false)};
constexpr std::array kClusterHalves{shared_row<8>(5, 2, false),
                                    shared_row<8>(8, 2, true),
                                    shared_row<8>(8, 4, true),
                                    shared_row<8>(8, 8, false),
                                    shared_row<8>(8, 8, true),
                                    with(shared_row<8>(8, 2, true), Form::log_softmax),
                                    masked(shared_row<8>(5, 2, false), Mask::boolean)};

constexpr Config staged_row(int threads, int vector, int cluster) {
  return {.threads = threads, .group = threads, .vector = vector, .cluster = cluster};
}
constexpr std::array kStagedFloats{staged_row(128, 4, 1), staged_row(256, 4, 2)};
constexpr std::array kStagedHalves{with(staged_row(128, 8, 1), Form::log_softmax)};

constexpr Config walk(int threads, int vector, int slots, int cluster, bool whole) {
  return {.threads = threads,
          .group = threads,
          .vector = vector,
          .slots = slots,
          .whole = whole,
          .cluster = cluster,
          .stages = 3};
}
constexpr std::array kPersistentFloats{walk(1024, 4, 1, 1, false), walk(1024, 4, 3, 2, false),
                                       walk(1024, 4, 1, 1, true)};
constexpr std::array kPersistentHalves{with(walk(512, 8, 2, 1, false), Form::log_softmax)};

}  // namespace

simt::OperatorInstances instances() {
  return {
      {"naive", concat(list<Naive, kNaive>(simt::Floats{}, &Config::nested, &Config::scaled),
                       list<Naive, kNaiveWide>(Halves{}, &Config::nested, &Config::scaled))},
      {"block", list<Block, kBlock>(Two{}, &Config::nested, &Config::scaled)},
      {"online", concat(list<Online, kOnline<1>>(Two{}, &Config::nested, &Config::scaled),
                        list<Online, kOnlineFloats>(Float{}, &Config::nested, &Config::scaled),
                        list<Online, kOnlineHalves>(Bf16{}, &Config::nested, &Config::scaled))},
      {"in_registers",
       concat(list<InRegisters, kScalar>(Two{}), list<InRegisters, kFloats>(Float{}),
              list<InRegisters, kHalves>(Bf16{}))},
      {"cluster",
       concat(list<Cluster, kClusterFloats>(Float{}), list<Cluster, kClusterHalves>(Bf16{}))},
      {"staged", concat(list<Staged, kStagedFloats>(Float{}), list<Staged, kStagedHalves>(Bf16{}))},
      {"persistent", concat(list<Persistent, kPersistentFloats>(Float{}),
                            list<Persistent, kPersistentHalves>(Bf16{}))}};
}

}  // namespace tensorcraft::kernel::softmax
