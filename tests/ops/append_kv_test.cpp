// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/append_kv/append_kv.hpp"

#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/ops/norm/norm.hpp"
#include "tensorcraft/ops/permute/permute.hpp"
#include "tensorcraft/ops/rope/rope.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error, test::normal_tensor, test::values;

// Every variant of the host and the emulator that takes keys and values.
template <class F>
void each_append_variant(F&& f) {
  const auto places = test::places();
  for (const auto& v : find_operator("append_kv").description().variants)
    for (const Device place : places)
      if ((v.device == DeviceType::cpu) == (place == Device::cpu()) && v.name != "latent_warp")
        f(place, v.name);
}

Tensor cache_of(const Dims& shape, float value, Device device) {
  Tensor t(DType::float32, shape, device);
  std::fill_n(t.data_as<float>(), t.size(), value);
  return t;
}

Tensor slots_of(const std::vector<int32_t>& values, Device device) {
  return Tensor::from(values, {int64_t(values.size())}).to(device);
}

TEST(AppendKv, WritesRowsOfBlocksAndNothingElse) {
  const std::vector<int32_t> slots = {5, -1, 0, 11};
  each_append_variant([&](Device place, std::string_view variant) {
    const Tensor k = normal_tensor({4, 2, 32}, DType::float32, 1).to(place),
                 v = normal_tensor({4, 2, 32}, DType::float32, 2).to(place);
    for (const CacheLayout layout : {CacheLayout::nhd, CacheLayout::hnd}) {
      const bool nhd = layout == CacheLayout::nhd;
      const Dims shape = nhd ? Dims{3, 4, 2, 32} : Dims{3, 2, 4, 32};
      const Tensor k_cache = cache_of(shape, 7, place), v_cache = cache_of(shape, 9, place);
      append_kv(k_cache, v_cache, k, v, slots_of(slots, place),
                {.layout = layout, .variant = variant});
      for (int slot = 0; slot < 12; ++slot)
        for (int h = 0; h < 2; ++h)
          for (int i = 0; i < 32; ++i) {
            const int row =
                nhd ? (slot / 4 * 4 + slot % 4) * 2 + h : (slot / 4 * 2 + h) * 4 + slot % 4;
            const auto token = std::find(slots.begin(), slots.end(), slot) - slots.begin();
            const bool is_named = token < 4;
            ASSERT_EQ(test::at(k_cache, row * 32 + i),
                      is_named ? test::at(k, (token * 2 + h) * 32 + i) : 7)
                << variant << ' ' << slot;
            ASSERT_EQ(test::at(v_cache, row * 32 + i),
                      is_named ? test::at(v, (token * 2 + h) * 32 + i) : 9);
          }
    }
  });
}

// One launch prepares the values that rms_norm and rope give.
TEST(AppendKv, PreparesAsTheOperatorsDo) {
  const std::vector<int32_t> at = {3, 0, 7, 7, 12};
  each_append_variant([&](Device place, std::string_view variant) {
    const Tensor k = normal_tensor({5, 2, 32}, DType::float32, 1).to(place),
                 v = normal_tensor({5, 2, 32}, DType::float32, 2).to(place),
                 q = normal_tensor({5, 4, 32}, DType::float32, 3).to(place),
                 weight = normal_tensor({32}, DType::float32, 4).to(place),
                 cos = normal_tensor({13, 16}, DType::float32, 5).to(place),
                 sin = normal_tensor({13, 16}, DType::float32, 6).to(place);
    const Tensor k_cache = cache_of({2, 4, 2, 32}, 0, place),
                 v_cache = cache_of({2, 4, 2, 32}, 0, place);
    const Tensor positions = slots_of(at, place), q_out = cache_of({5, 4, 32}, NAN, place);
    append_kv(k_cache, v_cache, k, v, slots_of({0, 1, 2, 3, 4}, place),
              {.q = q,
               .cos = cos,
               .sin = sin,
               .positions = positions,
               .q_weight = weight,
               .k_weight = weight,
               .q_out = q_out,
               .variant = variant});
    const auto prepared = [&](const Tensor& x) {
      const Tensor normal = rms_norm(x, {.weight = weight, .eps = 1e-6f});
      return values(rope(normal, {.cos = cos, .sin = sin, .positions = positions}).out);
    };
    const auto want_q = prepared(q), want_k = prepared(k), got_q = values(q_out),
               got_k = values(k_cache), got_v = values(v_cache), want_v = values(v);
    for (size_t i = 0; i < want_q.size(); ++i) ASSERT_NEAR(got_q[i], want_q[i], 2e-5) << variant;
    for (size_t i = 0; i < want_k.size(); ++i) ASSERT_NEAR(got_k[i], want_k[i], 2e-5) << variant;
    for (size_t i = 0; i < want_v.size(); ++i) ASSERT_EQ(got_v[i], want_v[i]) << variant;
    // In place, by default in C++.
    const Tensor q_too = copy(q);
    append_kv(k_cache, v_cache, k, v, slots_of({0, 1, 2, 3, 4}, place),
              {.q = q_too,
               .cos = cos,
               .sin = sin,
               .positions = positions,
               .q_weight = weight,
               .k_weight = weight,
               .variant = variant});
    EXPECT_EQ(values(q_too), got_q) << variant;
  });
}

// The latent cache of one pool: its first columns are the values, the others the rotated keys.
TEST(AppendKv, KeysAndValuesMayBeColumnsOfOneCache) {
  each_append_variant([&](Device place, std::string_view variant) {
    if (variant == "vectorized") return;  // k and v have two head_dims
    const Tensor pool = cache_of({2, 4, 1, 80}, 0, place);
    const Tensor k = normal_tensor({2, 1, 16}, DType::float32, 1).to(place),
                 v = normal_tensor({2, 1, 64}, DType::float32, 2).to(place);
    append_kv(pool.view().slice(3, 64, 80), pool.view().slice(3, 0, 64), k, v,
              slots_of({6, 1}, place), {.variant = variant});
    for (int i = 0; i < 80; ++i) {
      ASSERT_EQ(test::at(pool, 6 * 80 + i), i < 64 ? test::at(v, i) : test::at(k, i - 64));
      ASSERT_EQ(test::at(pool, 0 * 80 + i), 0);
    }
  });
}

TEST(AppendKv, ASlotBehindTheCacheIsRefusedByWhatTheHostSees) {
  each_append_variant([&](Device place, std::string_view variant) {
    const Tensor k_cache = cache_of({2, 4, 2, 32}, 7, place),
                 v_cache = cache_of({2, 4, 2, 32}, 7, place), k = cache_of({2, 2, 32}, 1, place);
    const std::string text =
        place == Device::cpu()
            ? "append_kv: slots: element 1 is 8, expected one below 8, the rows of all blocks of "
              "k_cache, or a negative one to skip the token"
            : "append_kv: a slot is 8, expected [0, 8)";
    expect_error(
        ErrorKind::index,
        [&] { append_kv(k_cache, v_cache, k, k, slots_of({3, 8}, place), {.variant = variant}); },
        text);
    if (place == Device::cpu()) {
      EXPECT_EQ(values(k_cache), std::vector<float>(512, 7)) << variant;
    }
    const Tensor cos = cache_of({3, 16}, 1, place), positions = slots_of({0, 3}, place);
    expect_error(
        ErrorKind::index,
        [&] {
          append_kv(k_cache, v_cache, k, k, slots_of({3, 4}, place),
                    {.cos = cos, .sin = cos, .positions = positions, .variant = variant});
        },
        place == Device::cpu()
            ? "append_kv: positions: element 1 is 3, expected [0, 3), the rows of cos"
            : "append_kv: a position is 3, expected [0, 3)");
  });
}

TEST(AppendKv, CodesAreQuotientsThatSaturate) {
  each_append_variant([&](Device place, std::string_view variant) {
    std::vector<float> x(64, 0.25f);
    x[0] = 1000, x[1] = -1000, x[2] = 0.5f, x[3] = 0.75f, x[4] = -0.5f, x[5] = NAN;
    const Tensor k = Tensor::from(x, {1, 2, 32}).to(place);
    const Tensor scale = cache_of({}, 0.5f, place);
    Tensor k_cache(DType::int8, {1, 1, 2, 32}, place), v_cache(DType::int8, {1, 1, 2, 32}, place);
    append_kv(k_cache, v_cache, k, k, slots_of({0}, place),
              {.k_scale = scale, .v_scale = scale, .variant = variant});
    const auto codes = values<int8_t>(k_cache);
    EXPECT_EQ(std::vector<int>(codes.begin(), codes.begin() + 7),
              (std::vector<int>{127, -128, 1, 2, -1, 0, 0}))
        << variant;
  });
}

TEST(AppendKv, AHeadIsDividedByTheScaleOfItsOwn) {
  each_append_variant([&](Device place, std::string_view variant) {
    std::vector<float> x(128, 3);
    x[1] = 1e9f, x[65] = -1e9f;
    const Tensor k = Tensor::from(x, {2, 2, 32}).to(place),
                 k_scale = Tensor::from(std::vector<float>{0.5f, -1.5f}, {2}).to(place),
                 v_scale = Tensor::from(std::vector<float>{3, 1}, {2}).to(place);
    const Tensor k_cache(DType::float8_e5m2, {1, 2, 2, 32}, place),
        v_cache(DType::float8_e5m2, {1, 2, 2, 32}, place);
    append_kv(k_cache, v_cache, k, k, slots_of({0, 1}, place),
              {.k_scale = k_scale, .v_scale = v_scale, .variant = variant});
    const auto keys = test::doubles(k_cache), values = test::doubles(v_cache);
    for (size_t i = 0; i < 128; ++i) {
      const bool is_first = i / 32 % 2 == 0;
      const double largest = i == 1 ? 57344 : i == 65 ? -57344 : 0;
      ASSERT_EQ(keys[i], largest != 0 ? largest : is_first ? 6 : -2) << variant << ' ' << i;
      ASSERT_EQ(values[i], largest != 0 ? largest : is_first ? 1 : 3) << variant << ' ' << i;
    }
  });
}

TEST(AppendKv, SaysWhatItTakes) {
  const Tensor cache(DType::float32, {2, 4, 1, 8}), other(DType::float32, {2, 4, 1, 8}),
      k(DType::float32, {3, 1, 8}), slots(DType::int32, {3}), codes(DType::int8, {2, 4, 1, 8}),
      other_codes(DType::int8, {2, 4, 1, 8}), cos(DType::float32, {5, 5});
  expect_error(
      ErrorKind::value, [&] { append_kv(codes, other_codes, k, k, slots); },
      "append_kv: k_cache: int8 codes need k_scale, by which they are multiplied; give a number, "
      "or one for each head, or one for each token and head");
  const Tensor scales(DType::float32, {3});
  expect_error(
      ErrorKind::value, [&] { append_kv(codes, other_codes, k, k, slots, {.k_scale = scales}); },
      "append_kv: k_scale: expected a number, or shape [1], one for each head, or [3, 1], that of "
      "k without head_dim, got [3]");
  expect_error(
      ErrorKind::value, [&] { append_kv(cache, other, k, k, slots, {.cos = cos, .sin = cos}); },
      "append_kv: give cos, sin and positions, or none of them; got cos sin ");
  expect_error(
      ErrorKind::value,
      [&] { append_kv(cache, other, k, k, slots, {.cos = cos, .sin = cos, .positions = slots}); },
      "append_kv: cos: its rows turn 5 pairs, and a head has 8 elements; give at most 4 columns");
  expect_error(
      ErrorKind::value, [&] { append_kv(cache, other, k, k, slots, {.q = k}); },
      "append_kv: q is given, but neither cos, sin and positions nor q_weight, so nothing would "
      "change it; leave q out");
  expect_error(
      ErrorKind::value, [&] { append_kv(cache, cache, k, k, slots); },
      "append_kv: v_cache_out overlaps the memory of k_cache_out; give it memory of its own");
}

}  // namespace
}  // namespace tensorcraft
