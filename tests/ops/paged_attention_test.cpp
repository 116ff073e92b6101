// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/paged_attention/paged_attention.hpp"

#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/append_kv/append_kv.hpp"
#include "tensorcraft/ops/attention/attention.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/ops/merge_attention/merge_attention.hpp"
#include "tensorcraft/ops/permute/permute.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/paged_batch.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace tensorcraft {
namespace {

using namespace test;

TEST(PagedAttention, EqualsAttentionOverTheSameKeysInOrder) {
  for (const int block_size : {16, 32, 64, 256}) {
    const int n = block_size;
    PagedBatch batch{.lengths = {0, 1, n - 1, n, n + 1, 2 * n}, .block_size = block_size};
    batch.fill(1);
    const Tensor q = normal_tensor({6, 2, 4, 64}, DType::float32, 9);
    const auto rounded = [&](const Tensor& t) {
      return astype(astype(t, {.dtype = batch.dtype}), {.dtype = DType::float32});
    };
    const Tensor lengths = batch.lengths_tensor();
    const auto want = attention(rounded(q), rounded(batch.keys), rounded(batch.values),
                                {.causal = true,
                                 .key_lengths = lengths.view(),
                                 .layout = AttentionLayout::bshd,
                                 .return_lse = true,
                                 .variant = "reference"});
    const auto lse = doubles(want.lse);  // [batch, heads, queries]
    each_paged_variant([&](Device place, std::string_view variant) {
      const auto got = batch.run(q, place, variant);
      test::expect_close(got.out, want.out, 0.01, 0.01);
      const auto got_lse = doubles(got.lse);
      for (size_t b = 0; b < 6; ++b)
        for (size_t i = 0; i < 2; ++i)
          for (size_t h = 0; h < 4; ++h) {
            const double x = got_lse[(b * 2 + i) * 4 + h], y = lse[(b * 4 + h) * 2 + i];
            if (std::isinf(y))
              ASSERT_EQ(x, y) << variant;
            else
              ASSERT_NEAR(x, y, 1e-4) << variant << ' ' << block_size << ' ' << b;
          }
    });
  }
}

TEST(PagedAttention, TheOrderOfPagesChangesNoBit) {
  PagedBatch batch{.lengths = {300, 77, 16}};
  batch.fill(1);
  PagedBatch other = batch.twin();
  other.order = 2;
  other.lay_out();
  ASSERT_NE(doubles(batch.tables), doubles(other.tables));
  const Tensor q = normal_tensor({3, 4, 64}, DType::float32, 9);
  each_paged_variant([&](Device place, std::string_view variant) {
    const auto a = batch.run(q, place, variant), b = other.run(q, place, variant);
    EXPECT_EQ(doubles(a.out), doubles(b.out)) << variant;
    EXPECT_EQ(doubles(a.lse), doubles(b.lse)) << variant;
  });
}

// A request alone, among others, and with a table that has room for more.
TEST(PagedAttention, NoBitDependsOnTheRestOfTheBatch) {
  PagedBatch batch{.lengths = {5, 530, 90, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}};
  batch.fill(1);
  const Tensor q = normal_tensor({16, 2, 4, 64}, DType::float32, 9);
  for (const bool has_window : {false, true})
    each_paged_variant([&](Device place, std::string_view variant) {
      PagedAttentionOptions options;
      if (has_window) options.window = Dims{300, 0};
      const auto all = batch.run(q, place, variant, options);
      for (const int64_t b : {1, 2}) {
        options.return_lse = true;
        options.variant = variant;
        const auto one = [&](const Tensor& t) { return t.view().slice(0, b, b + 1); };
        const Tensor rows = astype(q, {.dtype = batch.dtype}).to(place);
        const Tensor tables = batch.tables.to(place), lengths = batch.lengths_tensor().to(place);
        const int64_t width = b == 2 ? 6 : batch.width();  // no wider than this one needs
        const auto alone =
            paged_attention(one(rows), batch.k_cache.to(place), batch.v_cache.to(place).view(),
                            one(tables).slice(1, 0, width), one(lengths), options);
        EXPECT_EQ(doubles(alone.out), rows_of(all.out, b, 1)) << variant;
        EXPECT_EQ(doubles(alone.lse), rows_of(all.lse, b, 1)) << variant;
      }
    });
}

// On the host threads share the parts of few requests, and each takes its own of many.
TEST(PagedAttention, NoBitDependsOnTheNumberOfThreads) {
  PagedBatch batch{.lengths = {128, 1000, 129, 3, 700}, .block_size = 6};
  batch.fill(1);
  const Tensor q = normal_tensor({5, 3, 4, 64}, DType::float32, 9);
  std::vector<double> out, lse;
  for (const int threads : {1, 2, 5}) {
    host::set_num_threads(threads);
    const auto now = batch.run(q, Device::cpu(), "cpu", {.causal = true, .softcap = 5.0f});
    if (out.empty()) {
      out = doubles(now.out);
      lse = doubles(now.lse);
    }
    EXPECT_EQ(doubles(now.out), out) << threads;
    EXPECT_EQ(doubles(now.lse), lse) << threads;
  }
  host::set_num_threads(0);
}

// Then the host computes tiles of scores, as attention does, whatever else is in the batch.
TEST(PagedAttention, ManyQueriesHaveTheBitsOfAttentionOnTheHost) {
  PagedBatch batch{.lengths = {300, 90}, .block_size = 6, .dtype = DType::float32};
  batch.fill(1);
  const Tensor q = normal_tensor({2, 70, 4, 64}, DType::float32, 9);
  const Tensor lengths = batch.lengths_tensor();
  const auto want = attention(q, batch.keys, batch.values,
                              {.causal = true,
                               .key_lengths = lengths.view(),
                               .window = Dims{150, 0},
                               .softcap = 5.0f,
                               .layout = AttentionLayout::bshd,
                               .variant = "cpu"});
  const auto got = batch.run(q, Device::cpu(), "cpu", {.window = Dims{150, 0}, .softcap = 5.0f});
  EXPECT_EQ(doubles(got.out), doubles(want.out));
  // Beside a request of three queries, which goes by lines.
  const auto starts = Tensor::from(std::vector<int32_t>{0, 70, 73}, {3});
  const auto mixed =
      batch.run(copy(q.view().reshape({140, 4, 64}).slice(0, 0, 73)), Device::cpu(), "cpu",
                {.window = Dims{150, 0}, .softcap = 5.0f, .cu_seqlens_q = starts});
  EXPECT_EQ(rows_of(mixed.out, 0, 70),
            rows_of(copy(got.out.view().slice(0, 0, 1).reshape({70, 4, 64})), 0, 70));
}

TEST(PagedAttention, PartsOfTheKeysMergeIntoTheWhole) {
  PagedBatch batch{.lengths = {96}};
  batch.fill(1);
  const Tensor q = normal_tensor({1, 4, 64}, DType::float32, 9);
  each_paged_variant([&](Device place, std::string_view variant) {
    const auto whole = batch.run(q, place, variant);
    PagedBatch first = batch.twin();
    first.lengths = {48};
    const Tensor rows = astype(q, {.dtype = batch.dtype}).to(place), k = batch.k_cache.to(place),
                 v = batch.v_cache.to(place), tables = batch.tables.to(place),
                 lengths = first.lengths_tensor().to(place);
    const PagedAttentionOptions options{.return_lse = true, .variant = variant};
    const auto a = paged_attention(rows, k, v.view(), tables, lengths, options),
               b = paged_attention(rows, k, v.view(), tables.view().slice(1, 3, 7), lengths,
                                   options);
    const auto merged = merge_attention(a.out, a.lse, b.out, b.lse);
    test::expect_close(merged.out, whole.out, 0.02, 0.02);
    test::expect_close(merged.lse, whole.lse, 1e-4, 1e-4);
  });
}

TEST(PagedAttention, ASinkIsOneLogitMoreInTheDenominator) {
  PagedBatch batch{.lengths = {0, 40, 300}};
  batch.fill(1);
  const Tensor q = normal_tensor({3, 4, 64}, DType::float32, 9);
  const auto sinks = Tensor::from(std::vector<float>{-INFINITY, 0.5f, 3, 200}, {4});
  each_paged_variant([&](Device place, std::string_view variant) {
    const auto plain = batch.run(q, place, variant);
    const Tensor there = sinks.to(place);
    const auto got = batch.run(q, place, variant, {.sinks = there});
    const auto out = doubles(plain.out), lse = doubles(plain.lse), with = doubles(got.out),
               lse_with = doubles(got.lse);
    for (size_t row = 0; row < 12; ++row) {
      const double sink = test::at(sinks, int64_t(row % 4));
      const double total =
          std::isinf(sink) ? lse[row]
          : std::isinf(lse[row])
              ? sink
              : std::max(lse[row], sink) + std::log1p(std::exp(-std::abs(lse[row] - sink)));
      if (std::isinf(total))
        EXPECT_EQ(lse_with[row], total) << variant;
      else
        EXPECT_NEAR(lse_with[row], total, 1e-4) << variant << ' ' << row;
      const double share = std::isinf(lse[row]) ? 0 : std::exp(lse[row] - total);
      for (size_t d = row * 64; d < (row + 1) * 64; ++d)
        ASSERT_NEAR(with[d], share * out[d], 0.02) << variant << ' ' << row;
    }
  });
}

// A window's cost and result do not depend on pages before it, whatever the table says of them.
TEST(PagedAttention, PagesBeforeTheWindowAreNotRead) {
  PagedBatch batch{.lengths = {200}};
  batch.fill(1);
  const Tensor q = normal_tensor({1, 4, 64}, DType::float32, 9);
  each_paged_variant([&](Device place, std::string_view variant) {
    const auto want = batch.run(q, place, variant, {.window = Dims{20, 0}});
    PagedBatch gone = batch.twin();
    auto table = test::values<int32_t>(gone.tables);
    for (int page = 0; page < 179 / 16; ++page) table[size_t(page)] = -1;
    gone.tables = Tensor::from(table, {1, batch.width()});
    const auto got = gone.run(q, place, variant, {.window = Dims{20, 0}});
    EXPECT_EQ(doubles(got.out), doubles(want.out)) << variant;
  });
}

TEST(PagedAttention, ABlockOutsideTheCacheIsRefusedByWhatTheHostSees) {
  PagedBatch batch{.lengths = {20, 40}};
  batch.fill(1);
  const Tensor q = normal_tensor({2, 4, 64}, DType::float32, 9);
  auto table = test::values<int32_t>(batch.tables);
  const int64_t blocks = batch.k_cache.shape(0);
  for (const int32_t wrong : {int32_t(blocks), -1}) {
    table[size_t(batch.width()) + 2] = wrong;
    batch.tables = Tensor::from(table, {2, batch.width()});
    each_paged_variant([&](Device place, std::string_view variant) {
      if (place == Device::cuda()) return;  // leaves its keys out
      const std::string text =
          place == Device::cpu()
              ? join("paged_attention: block_tables: entry 2 of request 1 is ", wrong,
                     ", expected [0, ", blocks,
                     "), the blocks of k_cache; entries behind the keys in use may hold anything")
              : join("paged_attention: an entry of block_tables is ", wrong, ", expected [0, ",
                     blocks, ")");
      expect_error(ErrorKind::index, [&] { batch.run(q, place, variant); }, text);
    });
  }
}

TEST(PagedAttention, ALengthBeyondTheTableIsRefusedByWhatTheHostSees) {
  PagedBatch batch{.lengths = {20, 40}};
  batch.fill(1);
  const Tensor q = normal_tensor({2, 4, 64}, DType::float32, 9);
  const int room = batch.width() * batch.block_size;
  for (const int wrong : {room + 1, 1 << 30}) {
    batch.lengths[1] = wrong;
    each_paged_variant([&](Device place, std::string_view variant) {
      if (place == Device::cuda()) return;  // takes it as the room
      expect_error(
          ErrorKind::value, [&] { batch.run(q, place, variant); },
          join("paged_attention: lengths: element 1 is ", wrong, ", expected [0, ", room,
               "], the keys that a row of block_tables has room for"));
    });
  }
}

// Ragged tokens over pages, as chunked prefill has them, are the decodes one after another.
TEST(PagedAttention, AChunkOfTokensEqualsTheirDecodes) {
  PagedBatch batch{.lengths = {137, 21, 150}, .dtype = DType::float16};
  batch.fill(1);
  const std::vector<int32_t> starts = {0, 41, 41, 90};
  const Tensor q = normal_tensor({90, 4, 64}, DType::float32, 9);
  each_paged_variant([&](Device place, std::string_view variant) {
    if (takes_few_queries(variant)) return;  // refuses ragged tokens
    const Tensor begin = Tensor::from(starts, {4}).to(place);
    for (const int left : {-1, 100}) {
      const auto all =
          batch.run(q, place, variant, {.window = Dims{left, 0}, .cu_seqlens_q = begin});
      for (int b = 0; b < 3; ++b)
        for (int i = starts[size_t(b)]; i < starts[size_t(b) + 1]; i += 2) {
          PagedBatch one = batch.twin();
          one.lengths = {batch.lengths[size_t(b)] - (starts[size_t(b) + 1] - 1 - i)};
          one.tables = copy(batch.tables.view().slice(0, b, b + 1));
          const auto single =
              one.run(copy(q.view().slice(0, i, i + 1)), place, variant, {.window = Dims{left, 0}});
          EXPECT_EQ(doubles(single.out), rows_of(all.out, i, 1)) << variant << ' ' << i;
          EXPECT_EQ(doubles(single.lse), rows_of(all.lse, i, 1)) << variant << ' ' << i;
        }
    }
  });
}

// Lengths and tables are read by the kernel: the plan of a call is that of any other lengths.
TEST(PagedAttention, APlanServesOtherLengthsAndTables) {
  if (test::places().size() < 2) GTEST_SKIP() << "no emulator in this build";
  PagedBatch batch{.lengths = {300, 3}};
  batch.fill(1);
  const Tensor q = astype(normal_tensor({2, 4, 64}, DType::float32, 9), {.dtype = batch.dtype})
                       .to(Device::simt());
  const Tensor k = batch.k_cache.to(Device::simt()), v = batch.v_cache.to(Device::simt()),
               tables = batch.tables.to(Device::simt()),
               lengths = batch.lengths_tensor().to(Device::simt());
  Tensor out(batch.dtype, {2, 4, 64}, Device::simt());
  const op::Operator& op = find_operator("paged_attention");
  std::vector<op::Value> options(op.description().options.size());
  options[0] = v.view();
  options[1] = tables.view();
  options[2] = lengths.view();
  const std::vector<TensorView> inputs = {q, k}, outputs = {out};
  const auto rows =
      op.explain(outputs, {.inputs = inputs, .options = options}, device_info(Device::simt()));
  for (const auto& row : rows.variants) {
    if (row.variant.name == "latent_wgmma") continue;  // takes no v_cache
    ASSERT_TRUE(row.plan) << row.variant.name << ": " << row.reason;
    for (const int32_t n : {300, 17, 0}) {
      lengths.data_as<int32_t>()[0] = n;
      op::launch_plan(*row.plan, Device::simt(), {}, "paged_attention");
      const auto fresh =
          paged_attention(q, k, v.view(), tables, lengths, {.variant = row.variant.name});
      EXPECT_EQ(doubles(out), doubles(fresh.out)) << row.variant.name << ' ' << n;
    }
    lengths.data_as<int32_t>()[0] = 300;
  }
}

// paged_attention reads what append_kv writes, codes and latent columns included.
TEST(PagedAttention, ReadsWhatAppendKvWrites) {
  const int tokens = 40;
  std::vector<int32_t> slots(tokens), table = {2, 0, 3};
  for (int t = 0; t < tokens; ++t) slots[size_t(t)] = table[size_t(t / 16)] * 16 + t % 16;
  const Tensor k = normal_tensor({tokens, 1, 64}, DType::bfloat16, 1),
               v = normal_tensor({tokens, 1, 64}, DType::bfloat16, 2),
               q = normal_tensor({1, 4, 64}, DType::bfloat16, 3);
  const auto scale = Tensor::from(std::vector<float>{0.05f}, {});
  const Tensor lengths = Tensor::from(std::vector<int32_t>{tokens}, {1});
  const auto want =
      attention(q.view().expand_dims(0), k.view().expand_dims(0), v.view().expand_dims(0),
                {.layout = AttentionLayout::bshd, .variant = "reference"});
  for (const auto& [dtype, error] : {std::pair(DType::bfloat16, 0.01),
                                     {DType::float8_e4m3fn, 0.1},
                                     {DType::float8_e5m2, 0.2},
                                     {DType::int8, 0.1}})
    each_paged_variant([&](Device place, std::string_view variant) {
      const bool is_code = dtype != DType::bfloat16;
      if (is_code && variant == "split_wgmma") return;  // refuses codes
      const Tensor k_cache(dtype, {4, 16, 1, 64}, place), v_cache(dtype, {4, 16, 1, 64}, place);
      const Tensor s = scale.to(place);
      const auto given = is_code ? std::optional<TensorView>(s) : std::nullopt;
      append_kv(k_cache, v_cache, k.to(place), v.to(place), Tensor::from(slots, {tokens}).to(place),
                {.k_scale = given, .v_scale = given});
      const auto got = paged_attention(q.to(place), k_cache, v_cache.view(),
                                       Tensor::from(table, {1, 3}).to(place), lengths.to(place),
                                       {.k_scale = given, .v_scale = given, .variant = variant});
      const auto x = doubles(got.out), y = doubles(want.out);
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(x[i], y[i], error) << variant << ' ' << dtype;
    });
}

// Heads with a scale each give what each gives alone with its number.
TEST(PagedAttention, AHeadTakesTheScalesOfItsOwnKeysAndValues) {
  PagedBatch batch{.lengths = {5, 150, 40}, .heads_k = 3};
  batch.fill(1);
  const Tensor q = normal_tensor({3, 2, 6, 64}, DType::bfloat16, 9);
  const auto of_keys = Tensor::from(std::vector<float>{0.5f, -0.75f, 0}, {3}),
             of_values = Tensor::from(std::vector<float>{-2, 0.25f, 3}, {3});
  for (const DType dtype : {DType::bfloat16, DType::float8_e5m2}) {
    const Tensor k_cache = astype(batch.k_cache, {.dtype = dtype}),
                 v_cache = astype(batch.v_cache, {.dtype = dtype});
    each_paged_variant([&](Device place, std::string_view variant) {
      if (variant == "split_wgmma") return;  // refuses scales
      SCOPED_TRACE(join(variant, ' ', dtype));
      const Tensor rows = q.to(place), k = k_cache.to(place), v = v_cache.to(place),
                   k_scale = of_keys.to(place), v_scale = of_values.to(place),
                   tables = batch.tables.to(place), lengths = batch.lengths_tensor().to(place);
      const auto attend = [&](int64_t first, int64_t end) {  // of these heads of keys
        return paged_attention(rows.view().slice(2, 2 * first, 2 * end),
                               k.view().slice(2, first, end), v.view().slice(2, first, end), tables,
                               lengths,
                               {.k_scale = k_scale.view().slice(0, first, end),
                                .v_scale = v_scale.view().slice(0, first, end),
                                .variant = variant})
            .out.to(Device::cpu());
      };
      const Tensor all = attend(0, 3);
      for (int64_t h = 0; h < 3; ++h)
        test::expect_close(attend(h, h + 1), copy(all.view().slice(2, 2 * h, 2 * h + 2)), 0.01,
                           0.01);
    });
  }
}

TEST(PagedAttention, SaysWhatItTakes) {
  const Tensor q(DType::float32, {2, 4, 8}), cache(DType::float32, {3, 16, 2, 8}),
      codes(DType::int8, {3, 16, 2, 8}), tables(DType::int32, {2, 1}), lengths(DType::int32, {2}),
      scales(DType::float32, {3, 16});
  const auto call = [&](const PagedAttentionOptions& o, const Tensor& k) {
    return [&q, &k, &tables, &lengths, o] { paged_attention(q, k, k.view(), tables, lengths, o); };
  };
  expect_error(ErrorKind::value, call({}, codes),
               "paged_attention: k_scale: int8 codes are multiplied by it; give a number, or one "
               "for each head, or one for each key and head");
  expect_error(ErrorKind::value, call({.k_scale = scales}, cache),
               "paged_attention: k_scale: expected a number, or shape [2], one for each head, or "
               "[3, 16, 2], that of the cache without head_dim, got [3, 16]");
  expect_error(
      ErrorKind::value, call({.window = Dims{3}}, cache),
      "paged_attention: window must be two numbers, left and right, of at least -1, which "
      "is unlimited; got [3]; a window of w keys, the query's own included, is (w - 1, 0)");
  expect_error(ErrorKind::value, call({.softcap = 0.0f}, cache),
               "paged_attention: softcap must be above 0 and finite, got 0; leave it out for none");
  expect_error(
      ErrorKind::value, [&] { paged_attention(q, cache, std::nullopt, tables, lengths); },
      "paged_attention: v_dim must be 1 to head_dim, 8, if there is no v_cache: values are the "
      "first v_dim elements of keys; got 512");
  const Tensor three(DType::float32, {2, 3, 8});
  expect_error(
      ErrorKind::value, [&] { paged_attention(three, cache, cache.view(), tables, lengths); },
      "paged_attention: the heads of q must be a multiple of those of k_cache, got 3 and 2");
}

}  // namespace
}  // namespace tensorcraft
