// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/ptx/tma.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/swizzle.cuh"
#include "tensorcraft/simt/tensor_map.hpp"
#include "tests/simt/kernels.hpp"

#include <cmath>
#include <cstring>
#include <numeric>

namespace tensorcraft::simt {
namespace {

using tensorcraft::dynamic_shared;

constexpr int kBytes = 32 * 1024;
struct Shared {
  alignas(1024) unsigned char bytes[kBytes];
  uint64_t barrier;
};

// Copies one box and gives shared memory as it is then.
struct Params {
  TensorMap map;
  int32_t at[5];
  int rank;
  uint32_t bytes;
  unsigned char* out;
};

template <int kRank>
void load_box(const Params& p, Shared& s) {
  int32_t at[kRank];
  std::copy_n(p.at, kRank, at);
  ptx::prefetch_tensormap(&p.map);
  ptx::tma_prefetch(&p.map, at);
  ptx::mbarrier_arrive_expect_tx(&s.barrier, p.bytes);
  ptx::tma_load(s.bytes, &p.map, at, &s.barrier);
}

void loads(const void* params) {
  const Params& p = *static_cast<const Params*>(params);
  Shared& s = dynamic_shared<Shared>();
  ptx::mbarrier_init(&s.barrier, 1);
  ptx::fence_mbarrier_init();
  p.rank == 1   ? load_box<1>(p, s)
  : p.rank == 2 ? load_box<2>(p, s)
  : p.rank == 3 ? load_box<3>(p, s)
  : p.rank == 4 ? load_box<4>(p, s)
                : load_box<5>(p, s);
  ptx::mbarrier_wait_parity(&s.barrier, 0);
  std::memcpy(p.out, s.bytes, p.bytes);
}

const Launch kLaunch{.name = "k", .block = {1}, .shared_bytes = sizeof(Shared)};

std::vector<float> load(const TiledTensor& t, std::vector<int32_t> at, size_t elements,
                        const Options& o = {}) {
  std::vector<float> out(elements, -1);
  Params p{encode_tiled(t),
           {},
           t.rank,
           uint32_t(elements * 4),
           reinterpret_cast<unsigned char*>(out.data())};
  std::copy(at.begin(), at.end(), p.at);
  run(kLaunch, loads, &p, o);
  return out;
}

struct Numbers {
  alignas(16) float values[8192];
  Numbers() { std::iota(std::begin(values), std::end(values), 1.0f); }
};

TEST(SimtTensorCopy, LoadsABoxAndFillsWhatIsOutside) {
  Numbers n;
  TiledTensor t{.address = n.values, .rank = 2, .dims = {10, 6}, .strides = {48}, .box = {8, 4}};
  for (const Options& o : timings(3))
    for (const bool nan : {false, true}) {
      t.nan_fill = nan;
      const auto out = load(t, {4, -1}, 32, o);
      for (int y = 0; y < 4; ++y)
        for (int x = 0; x < 8; ++x) {
          const float got = out[size_t(y * 8 + x)];
          const bool inside = y > 0 && 4 + x < 10;
          if (inside)
            EXPECT_EQ(got, n.values[(y - 1) * 12 + 4 + x]);
          else if (nan)
            EXPECT_TRUE(std::isnan(got));
          else
            EXPECT_EQ(got, 0.0f);
        }
    }
}

TEST(SimtTensorCopy, RoundsToTf32IfTheMapSaysSo) {
  alignas(16) const float values[4] = {1 + 0x1p-10f, 1 + 0x1p-11f, -1 - 0x1p-12f, 3};
  TiledTensor t{.address = const_cast<float*>(values), .rank = 1, .dims = {4}, .box = {4}};
  EXPECT_EQ(load(t, {0}, 4), std::vector<float>(values, values + 4));
  t.rounds_to_tf32 = true;
  EXPECT_EQ(load(t, {0}, 4), (std::vector<float>{1 + 0x1p-10f, 1 + 0x1p-10f, -1, 3}));
}

TEST(SimtTensorCopy, StepsOverElementsAndWalksFiveDimensions) {
  Numbers n;
  const TiledTensor t{.address = n.values,
                      .rank = 5,
                      .dims = {4, 6, 3, 2, 2},
                      .strides = {16, 96, 288, 576},
                      .box = {4, 5, 2, 2, 1},
                      .element_strides = {1, 2, 1, 1, 1}};
  const auto out = load(t, {0, 1, 1, 0, 1}, 4 * 3 * 2 * 2);
  size_t i = 0;
  for (int d = 0; d < 2; ++d)
    for (int c = 0; c < 2; ++c)
      for (int b = 0; b < 3; ++b)
        for (int a = 0; a < 4; ++a, ++i)
          EXPECT_EQ(out[i], n.values[a + 4 * (1 + 2 * b) + 24 * (1 + c) + 72 * d + 144]);
  const TiledTensor line{.address = n.values, .rank = 1, .dims = {100}, .box = {16}};
  EXPECT_EQ(load(line, {92}, 16),
            (std::vector<float>{93, 94, 95, 96, 97, 98, 99, 100, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(SimtTensorCopy, SwizzlesBySixteenBytes) {
  Numbers n;
  for (const auto s : {TiledTensor::Swizzle::bytes_32, TiledTensor::Swizzle::bytes_64,
                       TiledTensor::Swizzle::bytes_128}) {
    const uint32_t row = 4u << int(s);  // floats of a span
    const TiledTensor t{.address = n.values,
                        .rank = 2,
                        .dims = {64, 64},
                        .strides = {256},
                        .box = {row, 16},
                        .swizzle = s};
    const auto out = load(t, {4, 3}, row * 16);
    for (uint32_t y = 0; y < 16; ++y)
      for (uint32_t x = 0; x < row; ++x) {
        // Unit u of row r goes to u ^ r for 128 bytes, u ^ (r / 2) for 64, u ^ (r / 4) for 32.
        const uint32_t units = row / 4, moved = (x / 4) ^ (y * units / 8 % units);
        EXPECT_EQ(out[y * row + moved * 4 + x % 4], n.values[(3 + y) * 64 + 4 + x]);
      }
  }
}

void stores(const void* params) {
  const Params& p = *static_cast<const Params*>(params);
  Shared& s = dynamic_shared<Shared>();
  for (uint32_t i = 0; i < p.bytes / 4; ++i) {
    const float value = float(i);
    std::memcpy(s.bytes + swizzled(Swizzle::bytes_128, i * 4), &value, 4);
  }
  ptx::fence_proxy_async();
  const int32_t at[2] = {p.at[0], p.at[1]};
  ptx::tma_store(&p.map, at, s.bytes);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group<0>();
  ptx::tma_reduce_add(&p.map, at, s.bytes);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group_read<0>();
}

TEST(SimtTensorCopy, StoresAndAddsWhatIsInside) {
  for (const Options& o : timings(3)) {
    Numbers n;
    const TiledTensor t{.address = n.values,
                        .rank = 2,
                        .dims = {52, 40},
                        .strides = {256},
                        .box = {32, 8},
                        .swizzle = TiledTensor::Swizzle::bytes_128};
    const Params p{encode_tiled(t), {28, 36}, 2, 32 * 8 * 4, nullptr};
    run(kLaunch, stores, &p, o);
    for (int y = 0; y < 64; ++y)
      for (int x = 0; x < 64; ++x) {
        const bool inside = x >= 28 && x < 52 && y >= 36 && y < 40;
        const int i = y * 64 + x;
        EXPECT_EQ(n.values[i], inside ? 2.0f * float((y - 36) * 32 + x - 28) : float(i + 1));
      }
  }
}

TEST(SimtTensorCopy, ReportsAStoreThatAGpuDoesOtherwise) {
  Numbers n;
  const TiledTensor t{.address = n.values,
                      .rank = 2,
                      .dims = {52, 40},
                      .strides = {256},
                      .box = {32, 8},
                      .swizzle = TiledTensor::Swizzle::bytes_128};
  const Params p{encode_tiled(t), {0, -1}, 2, 32 * 8 * 4, nullptr};
  expect_fault(fault_of(kLaunch, stores, &p), "coordinate 1 is -1");
  TiledTensor odd = t;
  odd.dims[0] = 50;
  const Params beyond{encode_tiled(odd), {28, 0}, 2, 32 * 8 * 4, nullptr};
  expect_fault(fault_of(kLaunch, stores, &beyond), "the box passes the end of dimension 0");
}

void loads_windows(const void* params) {
  const Params& p = *static_cast<const Params*>(params);
  Shared& s = dynamic_shared<Shared>();
  ptx::mbarrier_init(&s.barrier, 1);
  ptx::fence_mbarrier_init();
  ptx::mbarrier_arrive_expect_tx(&s.barrier, p.bytes);
  const int32_t at[4] = {p.at[0], p.at[1], p.at[2], p.at[3]};
  const uint16_t offsets[2] = {uint16_t(p.at[4] & 0xffff), uint16_t(p.at[4] >> 16)};
  ptx::tma_load_im2col(s.bytes, &p.map, at, offsets, &s.barrier);
  ptx::mbarrier_wait_parity(&s.barrier, 0);
  std::memcpy(p.out, s.bytes, p.bytes);
}

// Two images of 4 channels, 5 x 4 pixels, and 3 x 3 taps with padding 1 and stride 2: 3 x 2
// windows.
Im2colTensor windows_over(float* values) {
  return {.images = {.address = values,
                     .rank = 4,
                     .dims = {4, 5, 4, 2},
                     .strides = {16, 80, 320},
                     .box = {4, 7},
                     .element_strides = {1, 2, 2, 1, 1}},
          .lower = {-1, -1},
          .upper = {-1, -2}};
}

TEST(SimtTensorCopy, GathersATapOfWindowsThroughRowsAndImages) {
  Numbers n;
  for (const Options& o : timings(3)) {
    std::vector<float> out(28, -1);
    // Tap (row 2, column 0) from the third window of the second row of the first image on.
    Params p{encode_im2col(windows_over(n.values)),
             {0, 3, 1, 0, 2 << 16},
             4,
             112,
             reinterpret_cast<unsigned char*>(out.data())};
    run(kLaunch, loads_windows, &p, o);
    // Rows and columns of the tap, of 7 windows: (3, 3) in image 0, then image 1.
    const int places[7][3] = {{0, 3, 3},  {1, 1, -1}, {1, 1, 1}, {1, 1, 3},
                              {1, 3, -1}, {1, 3, 1},  {1, 3, 3}};
    for (int w = 0; w < 7; ++w)
      for (int c = 0; c < 4; ++c) {
        const auto [image, row, column] = places[w];
        const bool inside = column >= 0;
        EXPECT_EQ(out[size_t(w * 4 + c)],
                  inside ? n.values[image * 80 + row * 20 + column * 4 + c] : 0.0f)
            << w;
      }
    p.at[3] = 1;  // behind the last image there are zeros
    run(kLaunch, loads_windows, &p, o);
    EXPECT_EQ(out[0], n.values[80 + 60 + 12]);
    for (size_t i = 4; i < 28; ++i) EXPECT_EQ(out[i], 0.0f);
  }
}

TEST(SimtTensorCopy, ReportsWindowsThatDoNotFit) {
  Numbers n;
  const auto fault = [&](const TensorMap& map, std::vector<int32_t> at) {
    Params p{map, {}, 4, 112, reinterpret_cast<unsigned char*>(n.values)};
    std::copy(at.begin(), at.end(), p.at);
    return fault_of(kLaunch, loads_windows, &p);
  };
  const TensorMap map = encode_im2col(windows_over(n.values));
  expect_fault(fault(map, {0, 0, -1, 0, 0}),
               "coordinate 1 is 0, where no window begins: 3 do from "
               "-1 on, 2 apart");
  expect_fault(fault(map, {0, -1, 3, 0, 0}), "coordinate 2 is 3, where no window begins");
  expect_fault(fault(map, {0, -1, -1, 0, 256}), "offset 0 is 256, but must be below 256");
  const TiledTensor box{.address = n.values,
                        .rank = 4,
                        .dims = {4, 5, 4, 2},
                        .strides = {16, 80, 320},
                        .box = {4, 7, 1, 1}};
  expect_fault(fault(encode_tiled(box), {0, 0, 0, 0, 0}), "the tensor map is of the other mode");
  Params p{map, {}, 4, 112, reinterpret_cast<unsigned char*>(n.values)};
  expect_fault(fault_of(kLaunch, loads, &p), "the tensor map is of the other mode");
  expect_fault(fault({}, {0, 0, 0, 0, 0}), "was not encoded for the emulator");
}

TEST(SimtTensorCopy, ReportsAMapOrAPlaceThatDoesNotFit) {
  Numbers n;
  const TiledTensor t{.address = n.values, .rank = 1, .dims = {100}, .box = {16}};
  Params p{encode_tiled(t), {}, 2, 64, reinterpret_cast<unsigned char*>(n.values)};
  expect_fault(fault_of(kLaunch, loads, &p),
               "cp.async.bulk.prefetch.tensor: the tensor map has rank 1, the copy 2");
  const TiledTensor two{
      .address = n.values, .rank = 2, .dims = {10, 6}, .strides = {48}, .box = {8, 4}};
  const Params odd{encode_tiled(two), {5, 0}, 2, 128, reinterpret_cast<unsigned char*>(n.values)};
  expect_fault(fault_of(kLaunch, loads, &odd), "is not at a multiple of 16 bytes");
  p.map = {};
  expect_fault(fault_of(kLaunch, loads, &p), "was not encoded for the emulator");
  p.map = encode_tiled(t);
  expect_fault(fault_of(
                   kLaunch,
                   [](const void* q) {
                     const int32_t at[1] = {0};
                     ptx::tma_store(&static_cast<const Params*>(q)->map, at,
                                    dynamic_shared<Shared>().bytes + 16);
                   },
                   &p),
               "shared memory at byte 16 is not a multiple of 128 bytes");
  expect_fault(fault_of(
                   kLaunch,
                   [](const void* q) {
                     const int32_t at[1] = {0};
                     ptx::tma_reduce_min(&static_cast<const Params*>(q)->map, at,
                                         dynamic_shared<Shared>().bytes);
                   },
                   &p),
               "cp.reduce.async.bulk.tensor: has no such operation for dtype float32");
}

}  // namespace
}  // namespace tensorcraft::simt
