// SPDX-License-Identifier: Apache-2.0
// Latent caches: rows of one array, without values.
#include "tensorcraft/ops/append_kv/append_kv.hpp"

#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/ops/permute/permute.hpp"
#include "tensorcraft/ops/rope/rope.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace tensorcraft {
namespace {

using test::doubles, test::expect_error, test::integers, test::normal_tensor;

// Every variant that takes rows of a latent cache, of `dim` elements in all.
template <class F>
void each_latent_variant(int64_t dim, F&& f) {
  const auto places = test::places();
  for (const auto& v : find_operator("append_kv").description().variants)
    for (const Device place : places)
      if ((v.device == DeviceType::cpu) == (place == Device::cpu()) && v.name != "vectorized" &&
          (v.name != "latent_warp" || dim == 576))
        f(place, v.name);
}

Tensor zeros_of(DType dtype, const Dims& shape, Device place) {
  Tensor t(dtype, shape, place);
  std::memset(t.data_as<char>(), 0, t.nbytes());
  return t;
}

// The rope part lies behind the latent one, in k and in q.
TEST(AppendKvLatent, WhatRotatesIsTheEndOfARow) {
  for (const int64_t dim : {80, 576})
    each_latent_variant(dim, [&](Device place, std::string_view variant) {
      const int64_t half = dim == 80 ? 8 : 32, latent = dim - 2 * half;
      const Tensor k = normal_tensor({5, 1, dim}, DType::float32, 1).to(place),
                   q = normal_tensor({5, 3, dim}, DType::float32, 2).to(place),
                   cos = normal_tensor({13, half}, DType::float32, 3).to(place),
                   sin = normal_tensor({13, half}, DType::float32, 4).to(place),
                   positions = integers({3, 0, 7, 7, 12}, place),
                   slots = integers({6, 1, -1, 0, 7}, place);
      const Tensor cache = zeros_of(DType::float32, {2, 4, 1, dim}, place),
                   q_out = zeros_of(DType::float32, {5, 3, dim}, place);
      append_kv(cache, std::nullopt, k, std::nullopt, slots,
                {.q = q,
                 .cos = cos,
                 .sin = sin,
                 .positions = positions,
                 .q_out = q_out,
                 .variant = variant});
      const auto rotated = [&](const Tensor& x) {
        const Tensor end = copy(x.view().slice(2, latent, dim));
        return doubles(rope(end, {.cos = cos, .sin = sin, .positions = positions}).out);
      };
      const auto from_k = doubles(k), from_q = doubles(q), k_end = rotated(k), q_end = rotated(q),
                 got = doubles(cache), got_q = doubles(q_out);
      const std::vector<int> tokens = {3, 1, -1, -1, -1, -1, 0, 4};  // of each slot
      for (int slot = 0; slot < 8; ++slot)
        for (int i = 0; i < dim; ++i) {
          const int token = tokens[size_t(slot)];
          const double want = token < 0    ? 0
                              : i < latent ? from_k[size_t(token * dim + i)]
                                           : k_end[size_t(token * 2 * half + i - latent)];
          ASSERT_NEAR(got[size_t(slot * dim + i)], want, i < latent ? 0 : 1e-5)
              << variant << ' ' << slot << ' ' << i;
        }
      for (int row = 0; row < 15; ++row)
        for (int i = 0; i < dim; ++i)
          ASSERT_NEAR(got_q[size_t(row * dim + i)],
                      i < latent ? from_q[size_t(row * dim + i)]
                                 : q_end[size_t(row * 2 * half + i - latent)],
                      i < latent ? 0 : 1e-5)
              << variant << ' ' << row << ' ' << i;
      // In place, by default in C++.
      const Tensor q_too = copy(q);
      append_kv(cache, std::nullopt, k, std::nullopt, slots,
                {.q = q_too, .cos = cos, .sin = sin, .positions = positions, .variant = variant});
      EXPECT_EQ(doubles(q_too), got_q) << variant;
    });
}

// The part that rotates in an array of its own gives the bits of one array.
TEST(AppendKvLatent, TwoArraysAreARow) {
  for (const int64_t dim : {80, 576})
    each_latent_variant(dim, [&](Device place, std::string_view variant) {
      const int64_t half = dim == 80 ? 8 : 32, latent = dim - 2 * half;
      const Tensor rows = normal_tensor({2, 3, 1, dim}, DType::bfloat16, 1).to(place),
                   cos = normal_tensor({9, half}, DType::float32, 3).to(place),
                   sin = normal_tensor({9, half}, DType::float32, 4).to(place);
      const auto ints = [&](std::vector<int32_t> all) {
        return test::tensor_of(DType::int32, all, {2, 3}, place);
      };
      const Tensor slots = ints({5, 0, 2, 3, 7, -1}), positions = ints({1, 2, 3, 4, 5, 8});
      const Tensor one = zeros_of(DType::bfloat16, {2, 4, 1, dim}, place),
                   two = zeros_of(DType::bfloat16, {2, 4, 1, dim}, place);
      append_kv(one, std::nullopt, rows, std::nullopt, slots,
                {.cos = cos, .sin = sin, .positions = positions, .variant = variant});
      append_kv(two, std::nullopt, rows.view().slice(3, 0, latent), std::nullopt, slots,
                {.k_pe = rows.view().slice(3, latent, dim),
                 .cos = cos,
                 .sin = sin,
                 .positions = positions,
                 .variant = variant});
      EXPECT_EQ(doubles(one), doubles(two)) << variant;
    });
}

// Then k_weight is of the latent part alone.
TEST(AppendKvLatent, KPeIsNotNormalized) {
  for (const int64_t latent : {64, 512})
    each_latent_variant(latent + 64, [&](Device place, std::string_view variant) {
      const Tensor k = normal_tensor({2, 1, latent}, DType::float32, 1).to(place),
                   k_pe = normal_tensor({2, 1, 64}, DType::float32, 2).to(place),
                   weight = normal_tensor({latent}, DType::float32, 3).to(place),
                   cache = zeros_of(DType::float32, {1, 2, 1, latent + 64}, place);
      append_kv(cache, std::nullopt, k, std::nullopt, integers({1, 0}, place),
                {.k_pe = k_pe, .k_weight = weight, .eps = 0.25f, .variant = variant});
      const auto x = doubles(k), w = doubles(weight), pe = doubles(k_pe), got = doubles(cache);
      for (size_t token = 0; token < 2; ++token) {
        double squares = 0;
        for (int64_t i = 0; i < latent; ++i)
          squares += x[token * size_t(latent) + size_t(i)] * x[token * size_t(latent) + size_t(i)];
        const double unit = 1 / std::sqrt(squares / double(latent) + 0.25);
        for (size_t i = 0; i < size_t(latent) + 64; ++i)
          ASSERT_NEAR(got[(1 - token) * size_t(latent + 64) + i],
                      i < size_t(latent) ? x[token * size_t(latent) + i] * unit * w[i]
                                         : pe[token * 64 + i - size_t(latent)],
                      1e-5)
              << variant << ' ' << i;
      }
    });
}

TEST(AppendKvLatent, SaysWhatItTakes) {
  const Tensor cache(DType::float32, {2, 4, 1, 8}), other(DType::float32, {2, 4, 1, 8}),
      k(DType::float32, {3, 1, 8}), pe(DType::float32, {3, 1, 4}), slots(DType::int32, {3}),
      cos(DType::float32, {5, 3}), scale(DType::float32, {}), short_k(DType::float32, {3, 1, 4});
  const auto refused = [&](const std::optional<TensorView>& v_cache, const TensorView& keys,
                           const std::optional<TensorView>& v, const AppendKvOptions& options,
                           const std::string& text) {
    expect_error(
        ErrorKind::value, [&] { append_kv(cache, v_cache, keys, v, slots, options); },
        "append_kv: " + text);
  };
  refused(other.view(), k, {}, {},
          "v_cache is given, but no v; give both, or neither: then k_cache is a latent cache and k "
          "its rows");
  refused({}, k, k.view(), {},
          "v is given, but no v_cache; give both, or neither: then k_cache is a latent cache and k "
          "its rows");
  refused(other.view(), short_k, short_k.view(), {.k_pe = pe},
          "k_pe is a part of rows of a latent cache, and v is given; leave v_cache and v out, or "
          "k_pe");
  refused({}, k, {}, {.v_scale = scale},
          "v_scale is for v_cache, which is not given; leave it out");
  refused({}, short_k, {}, {.k_pe = pe, .cos = cos, .sin = cos, .positions = slots},
          "cos: its rows turn 3 pairs, and k_pe has 4 elements; give at most 2 columns");
}

// Byte for byte, by the rule: a scale is the largest magnitude of 128 values over 448.
TEST(AppendKvLatent, ARowOf656Bytes) {
  std::vector<float> x(2 * 576);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(int(i * 37 % 64) - 30) * 0.5f;
  for (size_t i = 128; i < 256; ++i) x[i] = 0;       // a group of zeros
  for (size_t i = 256; i < 384; ++i) x[i] *= 1e-3f;  // another magnitude
  x[0] = 56, x[1] = -56, x[2] = 0.25f, x[3] = 1e-6f, x[4] = -0.0f, x[5] = 28.5f;
  const auto encoded = [&](float value, float scale) { return e4m3(value / scale).bits; };
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16})
    each_latent_variant(576, [&](Device place, std::string_view variant) {
      const Tensor k = astype(Tensor::from(x, {2, 1, 576}), {.dtype = dtype});
      const auto rounded = doubles(k);
      for (const bool has_axis : {false, true}) {
        const Tensor cache =
            zeros_of(DType::uint8, has_axis ? Dims{2, 2, 1, 656} : Dims{2, 2, 656}, place);
        append_kv(cache, std::nullopt, k.to(place), std::nullopt, integers({2, 1}, place),
                  {.variant = variant});
        const auto bytes = test::values<uint8_t>(cache);
        for (size_t token = 0; token < 2; ++token) {
          const uint8_t* const row = bytes.data() + (token == 0 ? 2 : 1) * 656;
          for (size_t group = 0; group < 4; ++group) {
            float amax = 0, scale;
            const auto value = [&](size_t i) {
              return float(rounded[token * 576 + group * 128 + i]);
            };
            for (size_t i = 0; i < 128; ++i) amax = std::max(amax, std::abs(value(i)));
            std::memcpy(&scale, row + 512 + 4 * group, 4);
            ASSERT_EQ(scale, amax == 0 ? 1 : amax / 448) << variant << ' ' << group;
            for (size_t i = 0; i < 128; ++i)
              ASSERT_EQ(int(row[group * 128 + i]), int(encoded(value(i), scale)))
                  << variant << ' ' << group << ' ' << i;
          }
          for (size_t i = 0; i < 64; ++i) {
            bf16 rope;
            std::memcpy(&rope, row + 528 + 2 * i, 2);
            ASSERT_EQ(float(rope), float(bf16(float(rounded[token * 576 + 512 + i])))) << variant;
          }
        }
        for (size_t i = 0; i < 656; ++i) ASSERT_EQ(bytes[i] | bytes[3 * 656 + i], 0);
      }
    });
}

// The codes of zeros are 0 and their scale is 1; a NaN or an infinity makes its group NaN.
TEST(AppendKvLatent, ScalesOfZerosNaNAndInfinity) {
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16})
    each_latent_variant(576, [&](Device place, std::string_view variant) {
      std::vector<float> x(576, 0);
      for (size_t i = 128; i < 512; ++i) x[i] = 1;
      x[200] = NAN, x[300] = -INFINITY, x[520] = NAN, x[521] = INFINITY;
      const Tensor cache = zeros_of(DType::uint8, {1, 1, 656}, place);
      append_kv(cache, std::nullopt,
                astype(Tensor::from(x, {1, 1, 576}), {.dtype = dtype}).to(place), std::nullopt,
                integers({0}, place), {.variant = variant});
      const auto bytes = test::values<uint8_t>(cache);
      float scales[4];
      std::memcpy(scales, bytes.data() + 512, 16);
      const auto decoded = [&](size_t i) {
        return float(e4m3::from_bits(bytes[i])) * scales[i / 128];
      };
      EXPECT_EQ(scales[0], 1) << variant;
      EXPECT_TRUE(std::isnan(scales[1])) << variant;
      EXPECT_EQ(scales[2], INFINITY) << variant;
      EXPECT_EQ(scales[3], 1.0f / 448) << variant;
      for (size_t i = 0; i < 128; ++i) {
        ASSERT_EQ(int(bytes[i]), 0) << variant;
        ASSERT_TRUE(std::isnan(decoded(128 + i))) << variant << ' ' << i;
        ASSERT_TRUE(std::isnan(decoded(256 + i))) << variant << ' ' << i;
        ASSERT_EQ(decoded(384 + i), 1) << variant;
      }
      bf16 rope[64];
      std::memcpy(rope, bytes.data() + 528, 128);
      EXPECT_TRUE(std::isnan(float(rope[8]))) << variant;
      EXPECT_EQ(float(rope[9]), INFINITY) << variant;
      EXPECT_EQ(float(rope[10]), 0) << variant;
    });
}

// The smallest and the largest scales.
TEST(AppendKvLatent, ValuesNearTheEndsOfFloat32) {
  each_latent_variant(576, [](Device place, std::string_view variant) {
    std::vector<float> x(576, 0);
    x[0] = 1e-45f, x[128] = 3.4e38f, x[129] = 1e38f, x[256] = 1e-38f, x[257] = -5e-39f;
    const Tensor cache = zeros_of(DType::uint8, {1, 1, 656}, place);
    append_kv(cache, std::nullopt, Tensor::from(x, {1, 1, 576}).to(place), std::nullopt,
              integers({0}, place), {.variant = variant});
    const auto bytes = test::values<uint8_t>(cache);
    float scales[4];
    std::memcpy(scales, bytes.data() + 512, 16);
    EXPECT_EQ(scales[0], 1) << variant;  // 1e-45 / 448 is 0
    for (const size_t i : {0, 128, 129, 256, 257})
      EXPECT_EQ(int(bytes[i]), int(e4m3(x[i] / scales[i / 128]).bits)) << variant << ' ' << i;
    EXPECT_NEAR(float(e4m3::from_bits(bytes[129])) * scales[1] / 1e38f, 1, 0.07) << variant;
  });
}

// The part that rotates is rounded once, to bfloat16, whatever k is.
TEST(AppendKvLatent, RowsOf656BytesRotate) {
  for (const DType dtype : {DType::float32, DType::float16})
    each_latent_variant(576, [&](Device place, std::string_view variant) {
      const Tensor k = normal_tensor({3, 1, 512}, dtype, 1).to(place),
                   k_pe = normal_tensor({3, 1, 64}, dtype, 2).to(place),
                   cos = normal_tensor({9, 32}, DType::float32, 3).to(place),
                   sin = normal_tensor({9, 32}, DType::float32, 4).to(place),
                   positions = integers({8, 0, 5}, place), slots = integers({0, 2, 1}, place);
      const Tensor cache = zeros_of(DType::uint8, {1, 3, 656}, place);
      append_kv(cache, std::nullopt, k, std::nullopt, slots,
                {.k_pe = k_pe, .cos = cos, .sin = sin, .positions = positions, .variant = variant});
      const auto bytes = test::values<uint8_t>(cache);
      const auto x = doubles(k_pe), c = doubles(cos), s = doubles(sin);
      const size_t at[] = {8, 0, 5}, slot[] = {0, 2, 1};
      for (size_t token = 0; token < 3; ++token)
        for (size_t i = 0; i < 64; ++i) {
          bf16 rope;
          std::memcpy(&rope, bytes.data() + slot[token] * 656 + 528 + 2 * i, 2);
          const size_t pair = i % 32;
          const double a = x[token * 64 + pair], b = x[token * 64 + pair + 32],
                       cosine = c[at[token] * 32 + pair], sine = s[at[token] * 32 + pair];
          const double want = i < 32 ? a * cosine - b * sine : b * cosine + a * sine;
          ASSERT_NEAR(float(rope), want, std::abs(want) / 256 + 1e-6) << variant << ' ' << i;
        }
    });
}

TEST(AppendKvLatent, RowsOf656BytesSayWhatTheyTake) {
  const Tensor cache(DType::uint8, {2, 4, 656}), k(DType::float16, {3, 1, 576}),
      slots(DType::int32, {3}), scale(DType::float32, {}), heads(DType::float16, {3, 2, 576}),
      short_k(DType::float16, {3, 1, 512}), odd(DType::uint8, {2, 4, 640}),
      wide(DType::uint8, {2, 4, 664}), other(DType::uint8, {2, 4, 656}),
      cos(DType::float32, {5, 40});
  const auto refused = [&](const TensorView& rows, const TensorView& keys,
                           const std::optional<TensorView>& v, const AppendKvOptions& options,
                           const std::string& text) {
    std::optional<TensorView> v_cache;
    if (v) v_cache = other;
    test::expect_error_with(ErrorKind::value, "append_kv: " + text,
                            [&] { append_kv(rows, v_cache, keys, v, slots, options); });
  };
  refused(cache, k, {}, {.k_scale = scale},
          "k_scale: rows of 656 bytes have scales of their own, which are computed; leave it out");
  refused(cache, heads, {}, {}, "k: rows of 656 bytes have one head of 576 elements");
  refused(cache, short_k, {}, {}, "k: rows of 656 bytes have one head of 576 elements");
  refused(odd, k, {}, {}, "k_cache: expected (blocks, block_size, 656)");
  refused(wide.view().slice(2, 0, 656), k, {}, {}, "k_cache: rows of bytes must be contiguous");
  refused(cache, k, {}, {.cos = cos, .sin = cos, .positions = slots},
          "cos: its rows turn 40 pairs, and a row of 656 bytes keeps 64 elements to be rotated; "
          "give at most 32 columns");
  refused(cache, k, k.view(), {}, "k_cache: uint8 rows have latent values and no v");
}

}  // namespace
}  // namespace tensorcraft
