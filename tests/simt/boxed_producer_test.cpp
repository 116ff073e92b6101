// SPDX-License-Identifier: Apache-2.0
// Which parts of A and B each block of a cluster brings, and to whom.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/ptx/cluster.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/boxed_producer.cuh"
#include "tensorcraft/simt/tensor_map.hpp"
#include "tests/simt/kernels.hpp"

#include <cstring>

namespace tensorcraft::simt {
namespace {

constexpr int kM = 128, kN = 128, kK = 64;  // of a stage
constexpr int kUp = 384;                    // columns between the halves of a gated B
constexpr int kFirstK = 64, kLengthK = 128, kRows = 256, kColumns = 640, kBatch = 2;

struct Params {
  TensorMap a, b;
  uint16_t* stages;  // of each block
};

template <bool a_along_k, bool b_along_k>
using Stage = OperandTiles<BoxedTile, bf16, StepShape{kM, kN, kK, a_along_k, b_along_k}>;

// A block's stage in global memory. Entry 1 of A, while all entries share B.
template <class Stage, class Cluster, bool kGated>
struct Copy {
  struct Shared {
    alignas(1024) Stage stage;
    uint64_t full;
  };
  static void run(const Params& p) {
    auto& s = tensorcraft::dynamic_shared<Shared>();
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(&s.full, 1);
      ptx::fence_mbarrier_init();
    }
    ptx::cluster_sync();
    const int rank = int(blockIdx.x) % Cluster::blocks;
    const BlockTile tile{rank % Cluster::m * kM, rank / Cluster::m * (kGated ? kN / 2 : kN), 1};
    if (threadIdx.x == 0) {
      const BoxedProducer<Stage, Cluster, kGated> producer({&p.a, 1}, {&p.b, 0}, tile, kUp);
      producer.copy(s.stage, &s.full, kFirstK);
    }
    __syncwarp();
    ptx::mbarrier_wait_parity(&s.full, 0);
    constexpr int words = sizeof(Stage) / 2;
    const auto* from = reinterpret_cast<const uint16_t*>(&s.stage);
    for (int i = int(threadIdx.x); i < words; i += 32)
      p.stages[int(blockIdx.x) * words + i] = from[i];
    ptx::cluster_sync();
  }
};

// Entries of a matrix with `size` rows or columns, each element with a number of its own.
class Operand {
 public:
  Operand(bool along_k, int size)
      : along_k_(along_k), size_(size), data_(size_t(kBatch * size * kLengthK)) {
    for (size_t i = 0; i < data_.size(); ++i) data_[i] = uint16_t(i);
  }
  uint16_t at(int batch, int i, int k) const {
    const int in_entry = along_k_ ? i * kLengthK + k : k * size_ + i;
    return data_[size_t(batch * size_ * kLengthK + in_entry)];
  }
  TensorMap map(int lines) const {
    const int length = along_k_ ? kLengthK : size_, count = along_k_ ? size_ : kLengthK;
    return encode_tiled({.dtype = DType::bfloat16,
                         .address = const_cast<uint16_t*>(data_.data()),
                         .rank = 3,
                         .dims = {uint64_t(length), uint64_t(count), kBatch},
                         .strides = {uint64_t(length) * 2, uint64_t(length * count) * 2},
                         .box = {64, uint32_t(lines), 1},
                         .swizzle = TiledTensor::Swizzle::bytes_128});
  }

 private:
  bool along_k_;
  int size_;
  std::vector<uint16_t> data_;
};

// Row or column i at k of a tile.
template <class Tile, bool kAlongK>
uint16_t element(const uint16_t* tile, int i, int k) {
  const int line = kAlongK ? i : k, at = kAlongK ? k : i;
  return tile[Tile::place(line, at / 8) / 2 + at % 8];
}

template <class Cluster, bool a_along_k, bool b_along_k, bool kGated = false>
void expect_parts() {
  using S = Stage<a_along_k, b_along_k>;
  const Operand a(a_along_k, kRows), b(b_along_k, kColumns);
  std::vector<uint16_t> stages(Cluster::blocks * sizeof(S) / 2);
  constexpr int cols = kN / Cluster::m;
  constexpr int piece = kGated && cols == kN ? cols / 2 : cols;
  const Params p{a.map(box_lines(a_along_k, kM / Cluster::n, kK)),
                 b.map(box_lines(b_along_k, piece, kK)), stages.data()};
  using Kernel = Copy<S, Cluster, kGated>;
  run({.name = "copy",
       .grid = {Cluster::blocks},
       .block = {32},
       .cluster = {Cluster::blocks},
       .shared_bytes = sizeof(typename Kernel::Shared)},
      [](const void* params) { Kernel::run(*static_cast<const Params*>(params)); }, &p, {});
  for (int rank = 0; rank < Cluster::blocks; ++rank) {
    const uint16_t* stage = stages.data() + size_t(rank) * sizeof(S) / 2;
    const uint16_t* stage_b = stage + sizeof(typename S::A) / 2;
    const int row = rank % Cluster::m * kM, col = rank / Cluster::m * (kGated ? kN / 2 : kN);
    for (int k = 0; k < kK; ++k) {
      for (int i = 0; i < kM; ++i)
        ASSERT_EQ((element<typename S::A, a_along_k>(stage, i, k)), a.at(1, row + i, kFirstK + k))
            << "rank " << rank << ", row " << i << ", k " << k;
      for (int j = 0; j < kN; ++j) {
        const int from = kGated && j >= kN / 2 ? kUp + col + j - kN / 2 : col + j;
        ASSERT_EQ((element<typename S::B, b_along_k>(stage_b, j, k)), b.at(0, from, kFirstK + k))
            << "rank " << rank << ", column " << j << ", k " << k;
      }
    }
  }
}

template <class Cluster>
void expect_parts_of_every_layout() {
  SCOPED_TRACE(testing::Message() << "cluster " << Cluster::m << " x " << Cluster::n);
  expect_parts<Cluster, true, true>();
  expect_parts<Cluster, true, false>();
  expect_parts<Cluster, false, true>();
  expect_parts<Cluster, false, false>();
}

TEST(BoxedProducer, BringsEachBlockItsTilesWhoeverFetchesThem) {
  expect_parts_of_every_layout<ClusterShape<1, 1>>();
  expect_parts_of_every_layout<ClusterShape<2, 1>>();
  expect_parts_of_every_layout<ClusterShape<1, 2>>();
  expect_parts_of_every_layout<ClusterShape<2, 2>>();
}

TEST(BoxedProducer, BringsTheUpperHalfOfAGatedOperandFromItsOwnColumns) {
  expect_parts<ClusterShape<1, 1>, true, true, true>();
  expect_parts<ClusterShape<1, 1>, true, false, true>();
  expect_parts<ClusterShape<2, 1>, true, true, true>();
  expect_parts<ClusterShape<1, 2>, true, false, true>();
  expect_parts<ClusterShape<2, 2>, false, true, true>();
}

}  // namespace
}  // namespace tensorcraft::simt
