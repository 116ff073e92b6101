// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/transfer_hicache/transfer_hicache.hpp"

#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/transfer_hicache/plan.h"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace tensorcraft {
namespace {

using test::counting_tensor, test::expect_error, test::values;

// Every variant of the host and the emulator.
template <class F>
void each_transfer_variant(F&& f) {
  const auto places = test::places();
  for (const auto& v : find_operator("transfer_hicache_one_layer").description().variants)
    for (const Device place : places)
      if ((v.device == DeviceType::cpu) == (place == Device::cpu())) f(place, v.name);
}

Tensor filled(const Dims& shape, float value, Device device) {
  Tensor t(DType::float32, shape, device);
  std::fill_n(t.data_as<float>(), t.size(), value);
  return t;
}

Tensor shifted(const Dims& shape, float by, Device device) {
  Tensor t = counting_tensor(shape, device);
  for (int64_t i = 0; i < t.size(); ++i) t.data_as<float>()[i] += by;
  return t;
}

Tensor tokens(const std::vector<int64_t>& which, Device device) {
  return Tensor::from(which, {int64_t(which.size())}).to(device);
}

// The first n of a random order of `of` tokens.
std::vector<int64_t> some_of(int64_t n, int64_t of, unsigned seed) {
  std::vector<int64_t> all(static_cast<size_t>(of));
  std::iota(all.begin(), all.end(), 0);
  std::ranges::shuffle(all, std::mt19937(seed));
  all.resize(size_t(n));
  return all;
}

// The address of each layer of (layers, ...).
Tensor table_of(const Tensor& layers, Device device) {
  std::vector<int64_t> addresses;
  for (int64_t i = 0; i < layers.shape(0); ++i)
    addresses.push_back(reinterpret_cast<int64_t>(layers.select(0, i).data()));
  return tokens(addresses, device);
}

TEST(TransferHicache, MovesElementsAndNothingElse) {
  each_transfer_variant([](Device place, std::string_view variant) {
    const Tensor k = shifted({9, 32}, 1, place), v = shifted({9, 32}, 1000, place);
    const Tensor k_dst = filled({7, 32}, -1, place), v_dst = filled({7, 32}, -2, place);
    transfer_hicache_one_layer(k_dst, v_dst, tokens({5, 0, 2}, place), k, v,
                               tokens({8, 1, 4}, place), {.variant = variant});
    const std::vector<int64_t> from = {1, -1, 4, -1, -1, 8, -1};
    for (int64_t token = 0; token < 7; ++token)
      for (int64_t i = 0; i < 32; ++i) {
        const int64_t at = token * 32 + i, source = from[size_t(token)] * 32 + i;
        ASSERT_EQ(test::at(k_dst, at), source < 0 ? -1 : test::at(k, source)) << variant;
        ASSERT_EQ(test::at(v_dst, at), source < 0 ? -2 : test::at(v, source)) << variant;
      }
  });
}

// More elements than all threads of the quota take at once, by tables of layers there and back.
TEST(TransferHicache, TablesBringEveryLayerThereAndBack) {
  each_transfer_variant([](Device place, std::string_view variant) {
    for (const int64_t layers : {1, 2, 5}) {
      const int64_t n = 300, dim = 32;
      const Tensor k = shifted({layers, n, dim}, 1, place),
                   v = shifted({layers, n, dim}, 9e6f, place);
      const Tensor k_far = filled({layers, 2 * n, dim}, 0, place),
                   v_far = filled({layers, 2 * n, dim}, 0, place);
      const Tensor k_back = filled({layers, n, dim}, 0, place),
                   v_back = filled({layers, n, dim}, 0, place);
      const std::vector<int64_t> near_order = some_of(n, n, 1), far_order = some_of(n, 2 * n, 2);
      const Tensor near_tokens = tokens(near_order, place), far_tokens = tokens(far_order, place);
      const TransferHicacheAllLayerOptions options{
          .element_size = dim * 4, .block_quota = 1, .variant = variant};
      transfer_hicache_all_layer(table_of(k_far, place), table_of(v_far, place), far_tokens,
                                 table_of(k, place), table_of(v, place), near_tokens, options);
      transfer_hicache_all_layer(table_of(k_back, place), table_of(v_back, place), near_tokens,
                                 table_of(k_far, place), table_of(v_far, place), far_tokens,
                                 options);
      EXPECT_EQ(values(k_back), values(k)) << variant;
      EXPECT_EQ(values(v_back), values(v)) << variant;
    }
  });
}

// Layers of their own on one side, pages of the host on the other: what a cache of an engine is.
TEST(TransferHicache, ATableOnOneSideAndPagesOnTheOther) {
  each_transfer_variant([](Device place, std::string_view variant) {
    const Tensor k = shifted({3, 8, 32}, 1, place), v = shifted({3, 8, 32}, 5000, place);
    const Tensor k_pages = filled({4, 3, 2, 32}, 0, place),
                 v_pages = filled({4, 3, 2, 32}, 0, place);
    const std::vector<int64_t> order = some_of(8, 8, 3);
    transfer_hicache_all_layer(
        k_pages, v_pages, tokens(order, place), table_of(k, place), table_of(v, place),
        tokens({0, 1, 2, 3, 4, 5, 6, 7}, place),
        {.dst_layout = HicacheLayout::page_first_direct, .variant = variant});
    for (int64_t layer = 0; layer < 3; ++layer)
      for (int64_t i = 0; i < 8; ++i) {
        const int64_t t = order[size_t(i)];
        const int64_t at = ((t / 2 * 3 + layer) * 2 + t % 2) * 32;
        ASSERT_EQ(test::at(k_pages, at), test::at(k, (layer * 8 + i) * 32)) << variant;
        ASSERT_EQ(test::at(v_pages, at + 31), test::at(v, (layer * 8 + i) * 32 + 31)) << variant;
      }
  });
}

// A stride of tokens in bytes: tables may give layers that lie in one row of each token.
TEST(TransferHicache, StridesOfTablesAreInBytes) {
  each_transfer_variant([](Device place, std::string_view variant) {
    const Tensor k = shifted({4, 2, 32}, 1, place), k_dst = filled({2, 4, 32}, 0, place);
    const Tensor v_dst = filled({2, 4, 32}, 0, place);
    const Tensor pages = tokens(
        {reinterpret_cast<int64_t>(k.data()), reinterpret_cast<int64_t>(k.data_as<float>() + 32)},
        place);
    const Tensor order = tokens({0, 1, 2, 3}, place);
    transfer_hicache_all_layer(table_of(k_dst, place), table_of(v_dst, place), order, pages, pages,
                               order,
                               {.kv_src_stride = 256, .element_size = 128, .variant = variant});
    for (int64_t layer = 0; layer < 2; ++layer)
      for (int64_t token = 0; token < 4; ++token)
        ASSERT_EQ(test::at(k_dst, (layer * 4 + token) * 32), test::at(k, (token * 2 + layer) * 32))
            << variant;
    EXPECT_EQ(values(v_dst), values(k_dst));
  });
}

TEST(TransferHicache, AViewThatRunsBackwardsIsACache) {
  each_transfer_variant([](Device place, std::string_view variant) {
    const Tensor k = shifted({4, 32}, 1, place), k_dst = filled({4, 32}, 0, place),
                 v_dst = filled({4, 32}, 0, place), order = tokens({0, 1, 2, 3}, place);
    transfer_hicache_one_layer(k_dst.view().flip(0), v_dst.view().flip(0), order, k, k, order,
                               {.variant = variant});
    for (int64_t i = 0; i < 128; ++i)
      ASSERT_EQ(test::at(k_dst, i), test::at(k, (3 - i / 32) * 32 + i % 32)) << variant;
  });
}

TEST(TransferHicache, CachesOfTheHostMayStandBesideThoseOfTheSimtDevice) {
  if (test::places().size() < 2) GTEST_SKIP() << "no emulator";
  const Device simt = Device::simt(), host = Device::cpu();
  const Tensor k = shifted({6, 32}, 1, host), v = shifted({6, 32}, 500, host);
  const Tensor k_dst = filled({6, 32}, 0, simt), v_dst = filled({6, 32}, 0, simt);
  const Tensor order = tokens(some_of(6, 6, 5), simt), straight = tokens({0, 1, 2, 3, 4, 5}, simt);
  transfer_hicache_one_layer(k_dst, v_dst, order, k, v, straight);
  const Tensor k_back = filled({6, 32}, 0, host), v_back = filled({6, 32}, 0, host);
  transfer_hicache_one_layer(k_back, v_back, straight, k_dst, v_dst, order);
  EXPECT_EQ(values(k_back), values(k));
  EXPECT_EQ(values(v_back), values(v));
}

TEST(TransferHicache, ATokenOutsideACacheIsRefusedByWhatTheHostSees) {
  each_transfer_variant([](Device place, std::string_view variant) {
    const Tensor k = filled({3, 32}, 1, place), k_dst = filled({2, 32}, 7, place),
                 v_dst = filled({2, 32}, 7, place);
    for (const int64_t bad : {2, -1}) {
      const bool on_host = place == Device::cpu();
      expect_error(
          ErrorKind::index,
          [&] {
            transfer_hicache_one_layer(k_dst, v_dst, tokens({0, bad}, place), k, k,
                                       tokens({0, 1}, place), {.variant = variant});
          },
          on_host ? join("transfer_hicache_one_layer: idx_dst: element 1 is ", bad,
                         ", expected [0, 2), the tokens of k_dst and v_dst")
                  : join("transfer_hicache: a token of idx_dst is ", bad, ", expected [0, 2)"));
      if (on_host) {
        EXPECT_EQ(values(k_dst), std::vector<float>(64, 7)) << variant;
      }
    }
  });
}

TEST(TransferHicache, SaysWhatItTakes) {
  const Device d = Device::cpu();
  const Tensor k = filled({3, 32}, 1, d), other = filled({3, 16}, 1, d), i = tokens({0, 1}, d),
               one = tokens({0}, d), table = tokens({0, 0}, d);
  const auto one_layer = [&](const TensorView& k_dst, const TensorView& v_dst, const TensorView& to,
                             const TensorView& v_src,
                             const TransferHicacheOneLayerOptions& o = {}) {
    transfer_hicache_one_layer(k_dst, v_dst, to, filled({3, 32}, 0, d), v_src, i, o);
  };
  const Tensor a = filled({3, 32}, 1, d), b = filled({3, 32}, 1, d);
  expect_error(
      ErrorKind::value, [&] { one_layer(a, b, i, k, {.element_dim = 16}); },
      "transfer_hicache_one_layer: HicacheKernel: cache dimension mismatch. element_dim is 16, and "
      "the caches have 32; leave it out");
  expect_error(
      ErrorKind::value, [&] { one_layer(a, b, i, other); },
      "transfer_hicache_one_layer: v_src: Size mismatch for shape#1('head dimension'): expected 32 "
      "but got 16 (head dimension is k_dst.shape[1]); k_dst is [3, 32], v_src is [3, 16]");
  const Tensor wide = filled({3, 40}, 1, d);
  expect_error(
      ErrorKind::value, [&] { one_layer(a, wide.slice(1, 0, 32), i, k); },
      "transfer_hicache_one_layer: v_dst: Size mismatch for stride#0('dst kv stride'): expected 32 "
      "but got 40 (dst kv stride is k_dst.strides[0]); k_dst has strides [32, 1], v_dst has "
      "strides [40, 1]; pass v_dst.copy()");
  expect_error(
      ErrorKind::value, [&] { one_layer(a, b, one, k); },
      "transfer_hicache_one_layer: idx_src: Size mismatch for shape#0('indices length'): expected "
      "1 "
      "but got 2 (indices length is idx_dst.shape[0]); idx_dst is [1], idx_src is [2]");
  expect_error(
      ErrorKind::value, [&] { one_layer(a, b, i, k, {.unroll = 3}); },
      "transfer_hicache_one_layer: unroll must be 1, 2 or 4, got 3; leave it out for what suits "
      "the "
      "elements");
  expect_error(
      ErrorKind::value, [&] { one_layer(a, b, i, k, {.block_quota = 0}); },
      "transfer_hicache_one_layer: block_quota must be in [1, 2^31), got 0; leave it out for 256");
  expect_error(
      ErrorKind::type, [&] { one_layer(a, b, filled({2}, 0, d), k); },
      "transfer_hicache_one_layer: idx_dst: Dtype value [float32] not in the allowed options: "
      "[int32, int64]; tc.astype(idx_dst, tc.int32) converts it");
  const auto all_layer = [&](const TensorView& dst, const TensorView& v_dst,
                             const TransferHicacheAllLayerOptions& o) {
    transfer_hicache_all_layer(dst, v_dst, i, table, table, i, o);
  };
  expect_error(
      ErrorKind::value, [&] { all_layer(tokens({0, 0}, d), tokens({0, 0}, d), {}); },
      "transfer_hicache_all_layer: element_size is needed where tables give all layers: the bytes "
      "of "
      "a token in one layer of a cache");
  expect_error(
      ErrorKind::value,
      [&] { all_layer(filled({2, 3, 8}, 0, d), filled({2, 3, 8}, 0, d), {.element_size = 33}); },
      "transfer_hicache_all_layer: HicacheKernel: cache dimension mismatch. element_size is 33, "
      "and "
      "the caches have 32; leave it out");
  expect_error(
      ErrorKind::value,
      [&] {
        all_layer(tokens({0, 0}, d), tokens({0, 0}, d),
                  {.element_size = 32, .dst_layout = HicacheLayout::page_first});
      },
      "transfer_hicache_all_layer: dst_layout is for tensors, and k_ptr_dst is a table of "
      "addresses, "
      "which says where each layer begins; leave it out");
}

TEST(TransferHicache, NoGranuleIsRefusedBeforeAnythingIsCompiled) {
  if (test::places().size() < 2) GTEST_SKIP() << "no emulator";
  const Device d = Device::simt();
  const Tensor k = filled({2, 25}, 1, d), k_dst = filled({2, 25}, 0, d),
               v_dst = filled({2, 25}, 0, d);
  expect_error(
      ErrorKind::unsupported,
      [&] {
        transfer_hicache_one_layer(k_dst, v_dst, tokens({0}, d), k, k, tokens({1}, d),
                                   {.variant = "vectorized"});
      },
      "transfer_hicache_one_layer: variant vectorized does not accept this problem\n"
      "  vectorized: elements must be multiples of 128 bytes");
}

TEST(TransferHicachePlan, ChoosesByTheSizeOfElements) {
  namespace t = kernel::transfer_hicache;
  for (const auto& [bytes, unroll] :
       {std::pair(128, 4), {512, 4}, {640, 2}, {1024, 2}, {1152, 1}, {16384, 1}})
    EXPECT_EQ(t::default_unroll(bytes), unroll) << bytes;
  EXPECT_EQ(t::blocks_of(0, 128, 256), 1);
  EXPECT_EQ(t::blocks_of(128, 128, 256), 1);
  EXPECT_EQ(t::blocks_of(129, 128, 256), 2);
  EXPECT_EQ(t::blocks_of(int64_t(1) << 40, 128, 256), 256);
  EXPECT_EQ(t::blocks_of(1000, 128, 2), 2);
  EXPECT_EQ(t::unit_of(uint64_t(640)), 16);
  EXPECT_EQ(t::unit_of(uint64_t(8) | 640), 8);
  EXPECT_EQ(t::unit_of(uint64_t(6)), 2);
  static_assert(sizeof(t::Params) <= 4096);
  t::Params p{.count = 1000, .layers = 2, .element_bytes = 512};
  const auto start = [&](int unroll) {
    return t::vectorized(p, {.unit = 16, .unroll = unroll}, {}).start;
  };
  EXPECT_EQ(start(4).config.lanes, 8);
  EXPECT_EQ(start(4).blocks, 16);  // 128 elements a block
  EXPECT_EQ(start(1).config.lanes, 32);
  EXPECT_EQ(start(1).blocks, 63);
  p.element_bytes = 100;
  EXPECT_EQ(t::vectorized(p, {.unit = 4}, {}).refusal, "elements must be multiples of 128 bytes");
}

}  // namespace
}  // namespace tensorcraft
