// SPDX-License-Identifier: Apache-2.0
// Latent caches: rows of one array, without values.
#include "tensorcraft/ops/append_kv/append_kv.hpp"

#include "tensorcraft/ops/all.hpp"
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
          (v.name != "latent" || dim == 576))
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

}  // namespace
}  // namespace tensorcraft
