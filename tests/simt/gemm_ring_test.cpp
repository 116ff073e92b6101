// SPDX-License-Identifier: Apache-2.0
// The rungs on wgmma with every kind of Config: tiles, clusters, schedules and ways to D, of which
// the operators' cases have few.
#include "tensorcraft/core/dlpack_traits.hpp"
#include "tensorcraft/ops/gemm/09_wgmma.cuh"
#include "tensorcraft/ops/gemm/10_warp_specialized.cuh"
#include "tensorcraft/ops/gemm/11_persistent.cuh"
#include "tensorcraft/ops/gemm/12_split_k.cuh"
#include "tensorcraft/ops/gemm/plan.h"
#include "tensorcraft/simt/launch.hpp"
#include "tensorcraft/simt/tensor_map.hpp"
#include "tests/simt/kernels.hpp"

#include <cmath>
#include <cstring>
#include <random>
#include <utility>

namespace tensorcraft::simt {
namespace {

using kernel::gemm::Config, kernel::gemm::Layout, kernel::gemm::Schedule;
namespace gemm = kernel::gemm;

// The race build sees every access, which takes long: it runs each launch late and at one seed, and
// leaves what is right to the others.
#if defined(TENSORCRAFT_SIMT_RACE)
constexpr bool kRace = true;
#else
constexpr bool kRace = false;
#endif

constexpr Layout kRows = Layout::row_major, kColumns = Layout::column_major;

// Batch entries of rows x cols elements. A line ends with some that belong to no matrix.
template <class T>
struct Operand {
  Layout layout;
  int64_t rows, cols, entries;
  std::vector<T> data = {};

  Operand(Layout l, int64_t r, int64_t c, int64_t n) : layout(l), rows(r), cols(c), entries(n) {
    data.assign(size_t(entries * entry()), T(NAN));
  }
  int64_t length() const { return layout == kRows ? cols : rows; }
  int64_t count() const { return layout == kRows ? rows : cols; }
  int64_t line() const { return round_up(length() + 8, 8); }
  int64_t entry() const { return count() * line(); }
  size_t at(int64_t n, int64_t i, int64_t j) const {
    const int64_t in_entry = layout == kRows ? i * line() + j : j * line() + i;
    return size_t((entries > 1 ? n * entry() : 0) + in_entry);
  }
  void fill(unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (int64_t n = 0; n < entries; ++n)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j) data[at(n, i, j)] = T(normal(random));
  }
  gemm::Matrix matrix() const {
    return {.data = const_cast<T*>(data.data()),
            .row_stride = layout == kRows ? line() : 1,
            .col_stride = layout == kRows ? 1 : line(),
            .batch_strides = {entries > 1 ? entry() : 0}};
  }
  // Boxes of `elements` along `lines` lines.
  TensorMap map(int elements, int lines) const {
    using enum TiledTensor::Swizzle;
    const size_t line_bytes = size_t(elements) * sizeof(T);
    return encode_tiled({.dtype = dtype_of<T>(),
                         .address = const_cast<T*>(data.data()),
                         .rank = 3,
                         .dims = {uint64_t(length()), uint64_t(count()), uint64_t(entries)},
                         .strides = {uint64_t(line()) * sizeof(T), uint64_t(entry()) * sizeof(T)},
                         .box = {uint32_t(elements), uint32_t(lines), 1},
                         .swizzle = line_bytes == 128  ? bytes_128
                                    : line_bytes == 64 ? bytes_64
                                                       : bytes_32});
  }
};

struct Size {
  int64_t m, n, k;
  int64_t batch = 1;
  int64_t b_entries = 1;  // 1: all entries multiply the same B
  unsigned blocks = 0;    // of the grid; 0: one for each tile
};

// D = sums / 2 + C, if there is C; gated, silu of the left half of sums / 2 times the right half.
template <class Rung, Config C, class Out>
class Product {
 public:
  explicit Product(const Size& size)
      : size_(size),
        a_(C.swap ? gemm::transposed(C.b_layout) : C.a_layout, size.m, size.k, size.batch),
        b_(C.swap ? gemm::transposed(C.a_layout) : C.b_layout, size.k,
           C.gated ? 2 * size.n : size.n, size.b_entries),
        c_(kRows, size.m, size.n, 1),
        d_(kRows, size.m, size.n, size.batch) {
    a_.fill(1);
    b_.fill(2);
    c_.fill(3);
  }

  const std::vector<Out>& run(const Options& options) {
    d_.data.assign(d_.data.size(), Out(NAN));
    constexpr int a_lines = gemm::a_box_lines(C), b_lines = gemm::b_box_lines(C);
    constexpr gemm::SlotShape slot = gemm::slot_shape(C, sizeof(Out));
    gemm::WgmmaParams<C> p{
        {{.m = size_.m,
          .n = size_.n,
          .k = size_.k,
          .a = a_.matrix(),
          .b = b_.matrix(),
          .c = c_.matrix(),
          .d = d_.matrix(),
          .alpha = 0.5f,
          .beta = C.has_c ? 1.0f : 0.0f,
          .batch_shape = {uint32_t(size_.batch)},
          .batch_rank = size_.batch > 1},
         C.swap ? b_.map(64, a_lines) : a_.map(64, a_lines),
         C.swap ? a_.map(64, b_lines) : b_.map(64, b_lines)},
        C.slots == gemm::kEngineSlots ? d_.map(slot.cols, slot.rows) : TensorMap{}};
    simt::run({.name = "ring",
               .grid = {size_.blocks ? size_.blocks : blocks()},
               .block = {unsigned(C.threads)},
               .cluster = {unsigned(kCluster)},
               .shared_bytes = size_t(gemm::ring_shared_bytes(C, sizeof(bf16)))},
              body<Rung, C, bf16, Out>, &p, options);
    return d_.data;
  }

  void expect_right() const {
    for (int64_t n = 0; n < size_.batch; ++n)
      for (int64_t i = 0; i < size_.m; ++i)
        for (int64_t j = 0; j < size_.n; ++j) ASSERT_NO_FATAL_FAILURE(expect_right(n, i, j));
    for (int64_t n = 0; n < size_.batch; ++n)
      for (int64_t i = 0; i < size_.m; ++i)
        for (int64_t j = size_.n; j < d_.line(); ++j)
          ASSERT_TRUE(std::isnan(float(d_.data[d_.at(n, i, j)]))) << "written behind row " << i;
  }

 private:
  static constexpr int kCluster = C.cluster_m * C.cluster_n * C.split;
  unsigned blocks() const {
    const int64_t rows = div_ceil(C.swap ? size_.n : size_.m, C.block_m * C.cluster_m);
    const int64_t cols = div_ceil(C.swap ? size_.m : size_.n, tile_columns(C) * C.cluster_n);
    return unsigned(rows * cols * size_.batch * kCluster);
  }
  // A sum, and what its rounding is a part of.
  struct Sum {
    double value = 0, magnitude = 0;
  };
  Sum half_sum(int64_t n, int64_t i, int64_t j) const {
    Sum sum;
    for (int64_t k = 0; k < size_.k; ++k) {
      const double term = 0.5 * float(a_.data[a_.at(n, i, k)]) * float(b_.data[b_.at(n, k, j)]);
      sum.value += term;
      sum.magnitude += std::fabs(term);
    }
    return sum;
  }
  // silu is at most 1.1 times as steep as its argument.
  static Sum gated(const Sum& x, const Sum& y) {
    const double gate = x.value / (1 + std::exp(-x.value));
    return {gate * y.value, 1.1 * x.magnitude * std::fabs(y.value) + std::fabs(gate) * y.magnitude};
  }
  void expect_right(int64_t n, int64_t i, int64_t j) const {
    Sum sum = half_sum(n, i, j);
    if (C.has_c) sum.value += float(c_.data[c_.at(0, i, j)]);
    if (C.gated) sum = gated(sum, half_sum(n, i, size_.n + j));
    const double rounding = sizeof(Out) == 2 ? std::fabs(sum.value) * 0x1p-8 : 0;
    ASSERT_NEAR(float(d_.data[d_.at(n, i, j)]), sum.value, rounding + sum.magnitude * 0x1p-16)
        << "entry " << n << ", row " << i << ", column " << j;
  }

  Size size_;
  Operand<bf16> a_, b_;
  Operand<Out> c_, d_;
};

// Right, and the same bits whatever the timing.
template <class Rung, Config C, class Out = bf16>
void expect_products(std::initializer_list<Size> sizes) {
  for (const Size& size : sizes) {
    SCOPED_TRACE(testing::Message() << size.m << " x " << size.n << " x " << size.k << ", batch "
                                    << size.batch << ", blocks " << size.blocks);
    Product<Rung, C, Out> product(size);
    const std::vector<Out> late = product.run({});
    if (!kRace) {
      ASSERT_NO_FATAL_FAILURE(product.expect_right());
    }
    for (const Options& options : timings(1)) {
      if (kRace && options.timing != Timing::seeded) continue;
      const std::vector<Out>& again = product.run(options);
      ASSERT_EQ(std::memcmp(again.data(), late.data(), late.size() * sizeof(Out)), 0)
          << "seed " << options.seed;
    }
  }
}

// A tile and who multiplies it; with a producer of its own.
constexpr Config ring(int block_m, int block_n, int stages, int consumers, int slots = 2) {
  return {.block_m = block_m,
          .block_n = block_n,
          .block_k = 64,
          .threads = (consumers + 1) * kWarpgroup,
          .stages = stages,
          .consumers = consumers,
          .slots = slots};
}
constexpr Config with_cluster(Config c, int m, int n) {
  c.cluster_m = m;
  c.cluster_n = n;
  return c;
}
constexpr Config with_layouts(Config c, Layout a, Layout b) {
  c.a_layout = a;
  c.b_layout = b;
  return c;
}
constexpr Config with_turns(Config c) {
  c.schedule = Schedule::ping_pong;
  return c;
}
constexpr Config with_c(Config c) {
  c.has_c = 1;
  if (c.slots == gemm::kEngineSlots) c.slots = gemm::kByRows;
  return c;
}
constexpr Config with_gate(Config c) {
  c.gated = 1;
  if (c.slots == gemm::kEngineSlots) c.slots = gemm::kByRows;
  c.activation = Activation::silu;
  return c;
}
constexpr Config with_swap(Config c) {
  c.swap = 1;
  return c;
}
constexpr Config with_split(Config c, int parts) {
  c.split = parts;
  c.slots = 0;
  return c;
}
constexpr Config without_producer(Config c) {
  c.threads -= kWarpgroup;
  return c;
}

constexpr Config kSmall = ring(64, 64, 4, 1), kWide = ring(64, 128, 3, 1);
constexpr Config kTurns = with_turns(ring(128, 128, 3, 2));

TEST(GemmRing, WgmmaIsRightForStepsOfAnyCount) {
  constexpr Config c = without_producer(ring(128, 64, 3, 2, 0));
  expect_products<gemm::Wgmma, c>({{128, 64, 64}, {130, 72, 1}, {40, 9, 200}, {129, 130, 520}});
}

TEST(GemmRing, WarpSpecializedIsRightForStepsOfAnyCount) {
  constexpr Config c = ring(128, 64, 3, 2, 0);
  expect_products<gemm::WarpSpecialized, c>(
      {{128, 64, 64}, {130, 72, 1}, {40, 9, 200}, {129, 130, 520}});
}

TEST(GemmRing, TailsAlongKCountAsZero) {
  expect_products<gemm::Persistent, kSmall>(
      {{64, 64, 1}, {64, 64, 7}, {64, 64, 63}, {64, 64, 65}, {64, 64, 255}, {64, 64, 320}});
}

TEST(GemmRing, EveryLayoutIsRight) {
  const std::initializer_list<Size> sizes = {{72, 136, 72}, {128, 64, 136, 1, 1, 1}};
  expect_products<gemm::Persistent, with_layouts(kSmall, kRows, kColumns)>(sizes);
  expect_products<gemm::Persistent, with_layouts(kSmall, kColumns, kRows)>(sizes);
  expect_products<gemm::Persistent, with_layouts(kSmall, kColumns, kColumns)>(sizes);
}

TEST(GemmRing, BlocksTakeTilesUntilNoneIsLeft) {
  expect_products<gemm::Persistent, kSmall>(
      {{300, 200, 136, 1, 1, 1}, {300, 200, 136, 1, 1, 3}, {64, 704, 64, 1, 1, 2}});
}

TEST(GemmRing, ConsumersStoreByRowsToAnyAddress) {
  expect_products<gemm::Persistent, ring(64, 64, 4, 1, 1)>({{130, 67, 136, 1, 1, 2}});
  expect_products<gemm::Persistent, ring(64, 64, 4, 1, 1), float>({{130, 67, 136, 1, 1, 2}});
}

TEST(GemmRing, ResultsMayBeWider) {
  expect_products<gemm::Persistent, with_c(kSmall), float>({{130, 72, 136, 1, 1, 2}});
  expect_products<gemm::Persistent, kTurns, float>({{130, 260, 136, 1, 1, 1}});
}

// One consumer alone, an even and an odd count of tiles, and of steps that does not divide the
// ring.
TEST(GemmRing, ConsumersTakeTurns) {
  expect_products<gemm::Persistent, kTurns>({{128, 128, 64},
                                             {136, 136, 200, 1, 1, 1},
                                             {300, 200, 320, 1, 1, 1},
                                             {300, 200, 72, 1, 1, 5},
                                             {128, 896, 136, 1, 1, 1}});
}

TEST(GemmRing, TurnsStoreByRowsToo) {
  expect_products<gemm::Persistent, with_c(with_turns(ring(128, 128, 3, 2, 1)))>(
      {{260, 136, 136, 1, 1, 1}});
}

TEST(GemmRing, ClustersShareRowsAndColumns) {
  const std::initializer_list<Size> sizes = {
      {72, 40, 72}, {200, 264, 200}, {200, 264, 136, 1, 1, 4}};
  expect_products<gemm::Persistent, with_cluster(kWide, 1, 2)>(sizes);
  expect_products<gemm::Persistent, with_cluster(kWide, 2, 1)>(sizes);
  expect_products<gemm::Persistent, with_cluster(kWide, 2, 2)>(sizes);
}

TEST(GemmRing, ClustersShareOperandsOfEveryLayout) {
  constexpr Config wide = with_cluster(ring(128, 128, 3, 2), 2, 2);
  const std::initializer_list<Size> sizes = {{264, 272, 136}};
  expect_products<gemm::Persistent, with_layouts(wide, kRows, kColumns)>(sizes);
  expect_products<gemm::Persistent, with_layouts(wide, kColumns, kRows)>(sizes);
  expect_products<gemm::Persistent, with_layouts(wide, kColumns, kColumns)>(sizes);
}

TEST(GemmRing, ClustersTakeTurns) {
  expect_products<gemm::Persistent, with_cluster(kTurns, 1, 2)>({{300, 304, 200, 1, 1, 2}});
  expect_products<gemm::Persistent, with_cluster(kTurns, 2, 1)>({{600, 144, 136, 1, 1, 2}});
}

TEST(GemmRing, ThreeConsumersShareATile) {
  expect_products<gemm::Persistent, with_cluster(ring(192, 128, 4, 3), 1, 2)>(
      {{200, 264, 200}, {400, 520, 72, 1, 1, 2}});
}

TEST(GemmRing, SumsMayNeedTwoInstructions) {
  constexpr Config c = with_cluster(ring(128, 320, 3, 2), 2, 1);
  expect_products<gemm::Persistent, with_layouts(c, kRows, kColumns)>(
      {{264, 328, 200}, {520, 640, 72, 1, 1, 2}});
}

// A tile of the library's tables, several times along each axis, and by fewer blocks than tiles if
// blocks go on to the next.
template <class Rung, const auto& kTiles, size_t i, Layout b_layout>
void expect_tile() {
  constexpr gemm::RingTile t = kTiles[i];
  constexpr Config c =
      with_layouts(gemm::ring_tile(t, sizeof(bf16), 1, t.split > 1 ? 0 : 2), kRows, b_layout);
  if constexpr (gemm::ring_problem(c, sizeof(bf16)).empty()) {
    SCOPED_TRACE(testing::Message() << "tile " << t.m << " x " << t.n << ", split " << t.split);
    const int m = t.m * t.cluster_m, n = t.n * t.cluster_n;
    const unsigned blocks = t.split > 1 ? 0 : unsigned(2 * t.cluster_m * t.cluster_n);
    expect_products<Rung, c>({{m + 8, 2 * n - 8, 136, 1, 1, blocks}});
  }
}
template <class Rung, const auto& kTiles>
void expect_tiles() {
  [&]<size_t... i>(std::index_sequence<i...>) {
    if (!kRace) (expect_tile<Rung, kTiles, i, kRows>(), ...);
    (expect_tile<Rung, kTiles, i, kColumns>(), ...);
  }(std::make_index_sequence<std::size(kTiles)>());
}

TEST(GemmRing, EveryTileOfTheTablesIsRight) {
  expect_tiles<gemm::Persistent, gemm::kPersistentTiles>();
  expect_tiles<gemm::SplitK, gemm::kSplitTiles>();
}

// The kernel's rows are D's columns.
TEST(GemmRing, TheTransposeIsRight) {
  const std::initializer_list<Size> sizes = {{40, 200, 136}, {200, 72, 72, 3, 1, 2}};
  expect_products<gemm::Persistent, with_swap(kSmall)>(sizes);
  expect_products<gemm::Persistent, with_layouts(with_swap(ring(64, 16, 4, 1)), kRows, kColumns)>(
      sizes);
  expect_products<gemm::Persistent, with_swap(ring(64, 64, 4, 1, 1)), float>(sizes);
  expect_products<gemm::Persistent, with_layouts(with_swap(kSmall), kColumns, kColumns)>(sizes);
  expect_products<gemm::Persistent, with_c(with_swap(kTurns))>({{264, 264, 136, 1, 1, 2}});
  expect_products<gemm::Persistent, with_cluster(with_swap(kWide), 2, 1)>(
      {{264, 264, 136, 1, 1, 2}});
}

TEST(GemmRing, BlocksShareTheStepsOfATile) {
  const std::initializer_list<Size> sizes = {
      {72, 72, 64}, {72, 72, 72}, {130, 136, 520}, {24, 72, 200, 3, 1}};
  expect_products<gemm::SplitK, with_split(kSmall, 2)>(sizes);
  expect_products<gemm::SplitK, with_split(kSmall, 4), float>(sizes);
  expect_products<gemm::SplitK, with_c(with_split(with_swap(kSmall), 2))>(sizes);
  expect_products<gemm::SplitK, with_split(ring(128, 64, 3, 2), 2)>(sizes);
}

// The right half of a row of B begins at a multiple of 16 bytes, that of columns anywhere.
TEST(GemmRing, GatedTilesAreRight) {
  constexpr Config rows = with_gate(kWide),
                   columns = with_layouts(with_gate(kSmall), kRows, kColumns);
  constexpr Config stored = with_gate(ring(64, 128, 3, 1, 1));
  const std::initializer_list<Size> sizes = {{72, 40, 72}, {130, 136, 136, 1, 1, 2}};
  const std::initializer_list<Size> odd_sizes = {{67, 35, 71}, {24, 67, 136, 3, 3, 2}};
  expect_products<gemm::Persistent, rows>(sizes);
  expect_products<gemm::Persistent, with_layouts(rows, kColumns, kRows), float>(sizes);
  expect_products<gemm::Persistent, columns>(sizes);
  expect_products<gemm::Persistent, stored>(sizes);
  expect_products<gemm::Persistent, with_layouts(stored, kRows, kColumns), float>(odd_sizes);
}

TEST(GemmRing, EveryRungGates) {
  constexpr Config c = with_gate(ring(128, 128, 3, 2, 0));
  expect_products<gemm::WarpSpecialized, c>({{136, 72, 200}});
  expect_products<gemm::Wgmma, without_producer(c)>({{136, 72, 200}});
}

// Along m each block of a pair brings one of the halves to both.
TEST(GemmRing, ClustersShareGatedTiles) {
  constexpr Config wide = with_gate(kWide);
  const std::initializer_list<Size> sizes = {{72, 40, 72}, {200, 136, 136, 1, 1, 4}};
  expect_products<gemm::Persistent, with_cluster(wide, 2, 1)>(sizes);
  expect_products<gemm::Persistent, with_layouts(with_cluster(wide, 2, 1), kRows, kColumns)>(sizes);
  expect_products<gemm::Persistent, with_cluster(wide, 1, 2)>(sizes);
  expect_products<gemm::Persistent, with_layouts(with_cluster(wide, 2, 2), kRows, kColumns)>(sizes);
}

TEST(GemmRing, GatedTilesTakeTurns) {
  expect_products<gemm::Persistent, with_gate(kTurns)>(
      {{136, 72, 200, 1, 1, 1}, {300, 136, 136, 1, 1, 2}});
  expect_products<gemm::Persistent, with_cluster(with_gate(kTurns), 2, 1)>(
      {{600, 72, 136, 1, 1, 2}});
}

TEST(GemmRing, EntriesHaveTilesOfTheirOwnAndMayShareB) {
  expect_products<gemm::Persistent, kSmall>({{72, 72, 72, 3, 3, 2}, {72, 72, 72, 3, 1, 2}});
  expect_products<gemm::Persistent, with_cluster(kWide, 2, 1)>({{72, 72, 72, 3, 1, 2}});
  expect_products<gemm::Persistent, kTurns>({{72, 136, 72, 5, 1, 2}});
}

}  // namespace
}  // namespace tensorcraft::simt
