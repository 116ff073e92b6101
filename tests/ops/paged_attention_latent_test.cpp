// SPDX-License-Identifier: Apache-2.0
// Latent attention: rows of 656 bytes, and queries and keys in two arrays.
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/ops/append_kv/append_kv.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/ops/permute/permute.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/paged_batch.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace tensorcraft {
namespace {

using namespace test;

constexpr int kRow = 656, kBlock = 4, kBlocks = 40, kWidth = 40;

// Reads one row of bytes by its layout.
std::vector<float> decoded(const uint8_t* row) {
  std::vector<float> x(576);
  float scales[4];
  bf16 rope[64];
  std::memcpy(scales, row + 512, sizeof(scales));
  std::memcpy(rope, row + 528, sizeof(rope));
  for (size_t i = 0; i < 512; ++i) x[i] = float(e4m3::from_bits(row[i])) * scales[i / 128];
  for (size_t i = 0; i < 64; ++i) x[512 + i] = float(rope[i]);
  return x;
}

// Rows of random tokens in a cache of bytes, of which those of no token are NaN, scales too.
struct RowCache {
  std::vector<int> lengths;
  std::vector<uint8_t> bytes = std::vector<uint8_t>(size_t(kBlocks) * kBlock * kRow, 0xff);
  std::vector<int32_t> table;  // of requests, kWidth blocks each

  explicit RowCache(std::vector<int> all) : lengths(std::move(all)) {
    table.resize(lengths.size() * kWidth, -1);
    std::vector<int32_t> slots;
    int32_t next = 0;
    for (size_t b = 0; b < lengths.size(); ++b)
      for (int j = 0; j < lengths[b]; ++j) {
        int32_t& block = table[b * kWidth + size_t(j / kBlock)];
        if (j % kBlock == 0) block = next++ * 7 % kBlocks;
        slots.push_back(block * kBlock + j % kBlock);
      }
    const auto tokens = int64_t(slots.size());
    Tensor cache = Tensor::from(bytes, {kBlocks, kBlock, kRow});
    append_kv(cache, std::nullopt, normal_tensor({tokens, 1, 576}, DType::float32, 3), std::nullopt,
              Tensor::from(slots, {tokens}));
    bytes = values<uint8_t>(cache);
  }
  uint8_t* row(size_t b, int j) {
    const int32_t block = table[b * kWidth + size_t(j / kBlock)];
    return bytes.data() + (block * kBlock + j % kBlock) * kRow;
  }
  void set_scale(size_t b, int j, int group, float scale) {
    std::memcpy(row(b, j) + 512 + 4 * group, &scale, sizeof(scale));
  }
  Tensor lengths_tensor() const {
    const std::vector<int32_t> all(lengths.begin(), lengths.end());
    return Tensor::from(all, {int64_t(all.size())});
  }
  Tensor tables() const { return Tensor::from(table, {int64_t(lengths.size()), kWidth}); }
  // These numbers in float32.
  Tensor floats() const {
    std::vector<float> all;
    for (size_t i = 0; i < size_t(kBlocks) * kBlock; ++i)
      for (const float x : decoded(bytes.data() + i * kRow)) all.push_back(x);
    return Tensor::from(all, {kBlocks, kBlock, 1, 576});
  }
  PagedAttentionResult run(const Tensor& cache, const Tensor& q, Device place,
                           std::string_view variant, PagedAttentionOptions o = {}) const {
    o.return_lse = true;
    o.variant = variant;
    return paged_attention(q.to(place), cache.to(place), std::nullopt, tables().to(place),
                           lengths_tensor().to(place), o);
  }
  Tensor rows(const Dims& shape = {kBlocks, kBlock, kRow}) const {
    return Tensor::from(bytes, shape);
  }
};

template <class F>
void each_general_variant(F&& f) {
  each_paged_variant([&](Device place, std::string_view variant) {
    if (variant == "naive" || place == Device::cpu()) f(place, variant);
  });
}

TEST(PagedAttentionLatent, RowsOf656BytesGiveWhatTheirNumbersGive) {
  RowCache cache({37, 0, 5, 90});
  const Tensor floats = cache.floats();
  for (const int64_t queries : {1, 3, 70})
    for (const int64_t v_dim : {512, 200}) {
      const Tensor q = normal_tensor({4, queries, 2, 576}, DType::float32, 9);
      const auto want =
          cache.run(floats, q, Device::cpu(), "reference", {.scale = 0.05f, .v_dim = v_dim});
      each_general_variant([&](Device place, std::string_view variant) {
        if (queries == 70 && variant == "naive") return;
        for (const bool has_axis : {false, true}) {
          const Dims shape =
              has_axis ? Dims{kBlocks, kBlock, 1, kRow} : Dims{kBlocks, kBlock, kRow};
          const auto got =
              cache.run(cache.rows(shape), q, place, variant, {.scale = 0.05f, .v_dim = v_dim});
          expect_close(got.out, want.out, 1e-4, 1e-5);
        }
        const auto first = cache.run(cache.rows({kBlocks, 1, kBlock, kRow}), q, place, variant,
                                     {.scale = 0.05f, .layout = CacheLayout::hnd, .v_dim = v_dim});
        expect_close(first.out, want.out, 1e-4, 1e-5);
      });
    }
}

TEST(PagedAttentionLatent, QueriesOf16BitsBesideRowsOf656Bytes) {
  RowCache cache({20, 7});
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    const Tensor q = normal_tensor({2, 16, 576}, dtype, 9);
    const auto want =
        cache.run(cache.floats(), astype(q, {.dtype = DType::float32}), Device::cpu(), "reference");
    each_general_variant([&](Device place, std::string_view variant) {
      const auto got = cache.run(cache.rows(), q, place, variant);
      EXPECT_EQ(got.out.dtype(), dtype);
      expect_close(got.out, want.out, 0.01, 0.01);
    });
  }
}

// A scale is a factor like any other, and what no query sees has no effect.
TEST(PagedAttentionLatent, ScalesOf0NaNAndInfinity) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Tensor q = normal_tensor({2, 8, 3, 576}, DType::float32, 9);
  const auto is_nan = [](const Tensor& out, size_t i) {  // query i of request 0
    const auto all = doubles(out);
    return std::isnan(all[i * 3 * 512 + 3 * 128]);  // of the spoilt group
  };
  each_general_variant([&](Device place, std::string_view variant) {
    RowCache cache({12, 8});
    const auto before = cache.run(cache.rows(), q, place, variant);
    // Zeros, whatever the codes are.
    RowCache zeros = cache, cleared = cache;
    zeros.set_scale(0, 2, 1, 0);
    for (int i = 128; i < 256; ++i) cleared.row(0, 2)[i] = 0;
    EXPECT_EQ(doubles(zeros.run(zeros.rows(), q, place, variant).out),
              doubles(cleared.run(cleared.rows(), q, place, variant).out))
        << variant;
    for (const float scale : {std::numeric_limits<float>::quiet_NaN(), kInf, -kInf}) {
      // Key 9 of 12: queries 5 to 7 of 8 see it.
      RowCache other = cache;
      other.set_scale(0, 9, 3, scale);
      if (std::isinf(scale)) other.row(0, 9)[3 * 128] = 0;  // 0 * infinity
      const auto got = other.run(other.rows(), q, place, variant);
      for (size_t i = 0; i < 8; ++i) EXPECT_EQ(is_nan(got.out, i), i >= 5) << variant << ' ' << i;
      EXPECT_EQ(rows_of(got.out, 1, 1), rows_of(before.out, 1, 1)) << variant;
      const auto lse = doubles(got.lse), lse_before = doubles(before.lse);
      for (size_t i = 0; i < 5 * 3; ++i) EXPECT_EQ(lse[i], lse_before[i]) << variant;
      // Behind the length, and in front of the window.
      RowCache behind = other;
      behind.lengths = {9, 8};
      cache.lengths = {9, 8};
      EXPECT_EQ(doubles(behind.run(behind.rows(), q, place, variant).out),
                doubles(cache.run(cache.rows(), q, place, variant).out))
          << variant;
      cache.lengths = {12, 8};
      RowCache early = cache;
      early.set_scale(0, 1, 0, scale);
      const PagedAttentionOptions window{.window = Dims{1, 0}};
      EXPECT_EQ(doubles(early.run(early.rows(), q, place, variant, window).out),
                doubles(cache.run(cache.rows(), q, place, variant, window).out))
          << variant;
    }
  });
}

// The two parts of a vector are one, whichever of both operands has them apart.
TEST(PagedAttentionLatent, TwoArraysGiveTheBitsOfOne) {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    PagedBatch batch{.lengths = {30, 0, 17}, .heads_k = 2, .dim = 80, .dtype = dtype};
    batch.fill(1);
    const Tensor q = normal_tensor({3, 4, 6, 80}, dtype, 9);
    each_general_variant([&](Device place, std::string_view variant) {
      const Tensor all = q.to(place), k = batch.k_cache.to(place), v = batch.v_cache.to(place),
                   tables = batch.tables.to(place), lengths = batch.lengths_tensor().to(place);
      const auto part = [](const Tensor& t, int64_t begin, int64_t end) {
        return t.view().slice(3, begin, end);
      };
      for (const bool has_values : {false, true}) {
        PagedAttentionOptions o{.scale = 0.1f, .v_dim = 64, .return_lse = true, .variant = variant};
        std::optional<TensorView> v_cache;
        if (has_values) v_cache = v.view();
        const auto want = paged_attention(all, k, v_cache, tables, lengths, o);
        for (const int which : {1, 2, 3}) {
          o.q_pe = o.k_pe = std::nullopt;
          if (which & 1) o.q_pe = part(all, 64, 80);
          if (which & 2) o.k_pe = part(k, 64, 80);
          const auto got =
              paged_attention(which & 1 ? part(all, 0, 64) : all.view(),
                              which & 2 ? part(k, 0, 64) : k.view(), v_cache, tables, lengths, o);
          EXPECT_EQ(doubles(got.out), doubles(want.out)) << variant << ' ' << which;
          EXPECT_EQ(doubles(got.lse), doubles(want.lse)) << variant << ' ' << which;
        }
      }
    });
  }
}

// 576 of MLA, ragged and of many queries; the default scale is that of the whole.
TEST(PagedAttentionLatent, TwoArraysOfLatentAttention) {
  PagedBatch batch{.lengths = {100, 9}, .heads_k = 1, .dim = 576, .dtype = DType::float32};
  batch.fill(1);
  const Tensor q = normal_tensor({78, 2, 576}, DType::float32, 9),
               starts = Tensor::from(std::vector<int32_t>{0, 70, 78}, {3});
  const auto part = [](const Tensor& t, int64_t begin, int64_t end) {
    return copy(t.view().slice(t.rank() - 1, begin, end));
  };
  const auto want =
      paged_attention(q, batch.k_cache, std::nullopt, batch.tables, batch.lengths_tensor(),
                      {.cu_seqlens_q = starts, .variant = "reference"});
  const Tensor q_c = part(q, 0, 512), q_pe = part(q, 512, 576), c = part(batch.k_cache, 0, 512),
               k_pe = part(batch.k_cache, 512, 576);
  each_general_variant([&](Device place, std::string_view variant) {
    const Tensor q_end = q_pe.to(place), k_end = k_pe.to(place), begins = starts.to(place);
    const auto got =
        paged_attention(q_c.to(place), c.to(place), std::nullopt, batch.tables.to(place),
                        batch.lengths_tensor().to(place),
                        {.q_pe = q_end, .k_pe = k_end, .cu_seqlens_q = begins, .variant = variant});
    expect_close(got.out, want.out, 1e-4, 1e-5);
  });
}

TEST(PagedAttentionLatent, SaysWhatItTakes) {
  const Tensor q(DType::bfloat16, {2, 4, 576}), rows(DType::uint8, {3, 16, 656}),
      tables(DType::int32, {2, 2}), lengths(DType::int32, {2}), q_c(DType::bfloat16, {2, 4, 512}),
      pe(DType::bfloat16, {2, 4, 64}), c(DType::bfloat16, {3, 16, 1, 512}),
      k_pe(DType::bfloat16, {3, 16, 1, 64}), scale(DType::float32, {}),
      wide(DType::uint8, {3, 16, 660}), two(DType::uint8, {3, 16, 2, 656}),
      other_pe(DType::bfloat16, {2, 5, 64});
  const auto refused = [&](const TensorView& queries, const TensorView& cache,
                           const PagedAttentionOptions& options, const std::string& text) {
    expect_error_with(ErrorKind::value, "paged_attention: " + text, [&] {
      paged_attention(queries, cache, std::nullopt, tables, lengths, options);
    });
  };
  refused(q, rows, {.k_scale = scale},
          "k_scale: rows of 656 bytes have all of a key, its scales and its value; leave k_scale "
          "out");
  refused(q_c, rows, {.q_pe = pe, .k_pe = k_pe}, "k_pe: rows of 656 bytes have all of a key");
  refused(q_c, rows, {},
          "k_cache: rows of 656 bytes have 576 elements, and queries, q_pe included, 512");
  refused(q, wide.view().slice(2, 0, 656), {}, "k_cache: rows of bytes must be contiguous");
  refused(q, wide, {}, "k_cache: expected (blocks, block_size, 656)");
  refused(q, two, {}, "k_cache: expected (blocks, block_size, 656)");
  refused(q, rows, {.v_dim = 513}, "v_dim must be 1 to the latent values of a row, 512");
  refused(q_c, c, {.q_pe = pe}, "k_cache: expected head_dim 576, that of q and q_pe, got 512");
  refused(q_c, c, {.k_pe = k_pe},
          "k_cache: expected head_dim 512, that of q, got 576, that of k_cache and k_pe");
  refused(q_c, c, {.q_pe = other_pe, .k_pe = k_pe}, "q_pe: ");
  refused(q_c, c, {.q_pe = pe, .k_pe = k_pe, .v_dim = 576},
          "v_dim must be 1 to head_dim, 512, if there is no v_cache: values are the first v_dim "
          "elements of k_cache; got 576");
}

}  // namespace
}  // namespace tensorcraft
