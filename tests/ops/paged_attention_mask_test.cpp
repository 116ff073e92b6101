// SPDX-License-Identifier: Apache-2.0
// Checks which keys over pages a mask, and causal of each request, let queries see.
#include "tensorcraft/ops/attention/attention.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/paged_batch.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using namespace test;

// Draft tokens of a request, each of which has an earlier one as its parent.
class DraftTree {
 public:
  DraftTree(int batch, int queries, unsigned seed)
      : queries_(queries), seen_(size_t(batch) * size_t(queries) * size_t(queries)) {
    std::mt19937 random(seed);
    for (int b = 0; b < batch; ++b)
      for (int i = 0; i < queries; ++i) {
        if (i > 0) {  // the ancestors of its parent
          const int parent = int(random() % unsigned(i));
          for (int j = 0; j < i; ++j) seen_[at(b, i, j)] = seen_[at(b, parent, j)];
        }
        seen_[at(b, i, i)] = 1;
      }
  }
  bool sees(int b, int i, int j) const { return seen_[at(b, i, j)] != 0; }
  Tensor bools() const {
    const int64_t n = queries_;
    return astype(Tensor::from(seen_, {int64_t(seen_.size()) / (n * n), n, n}),
                  {.dtype = DType::bool_});
  }
  Tensor bits() const {
    const int words = (queries_ + 31) / 32;
    const size_t tokens = seen_.size() / size_t(queries_);
    std::vector<int32_t> packed(tokens * size_t(words));
    for (size_t token = 0; token < tokens; ++token)
      for (int j = 0; j < queries_; ++j)
        if (seen_[token * size_t(queries_) + size_t(j)])
          packed[token * size_t(words) + size_t(j / 32)] |= int32_t(1u << j % 32);
    return Tensor::from(packed, {int64_t(tokens), words});
  }

 private:
  size_t at(int b, int i, int j) const { return size_t((b * queries_ + i) * queries_ + j); }
  int queries_;
  std::vector<uint8_t> seen_;
};

// The scores' mask that shows the same keys: [batch, 1, queries, longest].
Tensor dense_mask(const DraftTree& tree, const PagedBatch& batch, int queries) {
  std::vector<uint8_t> seen;
  for (size_t b = 0; b < batch.lengths.size(); ++b)
    for (int i = 0; i < queries; ++i)
      for (int j = 0; j < batch.longest(); ++j) {
        const int newest = j - (batch.lengths[b] - queries);
        seen.push_back(newest < 0 || (newest < queries && tree.sees(int(b), i, newest)));
      }
  return astype(
      Tensor::from(seen, {int64_t(batch.lengths.size()), 1, queries, int64_t(batch.longest())}),
      {.dtype = DType::bool_});
}

TEST(PagedAttentionMask, ATreeEqualsADenseMask) {
  PagedBatch batch{.lengths = {0, 5, 61, 300, 77}};
  batch.fill(1);
  const int64_t requests = int64_t(batch.lengths.size());
  const auto rounded = [&](const Tensor& t) {
    return astype(astype(t, {.dtype = batch.dtype}), {.dtype = DType::float32});
  };
  for (const int queries : {1, 7, 16, 60}) {
    const DraftTree tree(int(requests), queries, unsigned(queries));
    const Tensor q = normal_tensor({requests, queries, 4, 64}, DType::float32, 9),
                 lengths = batch.lengths_tensor(), mask = dense_mask(tree, batch, queries);
    std::vector<int32_t> starts;
    for (int b = 0; b <= requests; ++b) starts.push_back(b * queries);
    const auto want = attention(rounded(q), rounded(batch.keys), rounded(batch.values),
                                {.causal = true,
                                 .key_lengths = lengths.view(),
                                 .window = Dims{200, 0},
                                 .mask = mask.view(),
                                 .layout = AttentionLayout::bshd,
                                 .variant = "reference"});
    each_paged_variant([&](Device place, std::string_view variant) {
      if (takes_few_queries(variant) && queries > 16) return;
      SCOPED_TRACE(join(variant, ' ', queries));
      const Tensor bools = tree.bools().to(place), bits = tree.bits().to(place),
                   begin = Tensor::from(starts, {requests + 1}).to(place);
      const PagedAttentionOptions options{.window = Dims{200, 0}};
      auto of_bools = options, of_bits = options, ragged = options;
      of_bools.mask = bools.view();
      ragged.mask = of_bits.mask = bits.view();
      ragged.cu_seqlens_q = begin.view();
      const auto got = batch.run(q, place, variant, of_bools);
      test::expect_close(got.out, want.out, 0.01, 0.01);
      const auto same = batch.run(q, place, variant, of_bits);
      EXPECT_EQ(doubles(same.out), doubles(got.out));
      EXPECT_EQ(doubles(same.lse), doubles(got.lse));
      if (takes_few_queries(variant)) return;  // refuses ragged tokens
      const auto tokens =
          batch.run(copy(q.view().reshape({requests * queries, 4, 64})), place, variant, ragged);
      EXPECT_EQ(doubles(tokens.out), doubles(got.out));
      EXPECT_EQ(doubles(tokens.lse), doubles(got.lse));
    });
  }
}

TEST(PagedAttentionMask, RequestsMayBeCausalOrNot) {
  PagedBatch batch{.lengths = {20, 150, 40}};
  batch.fill(1);
  for (const int queries : {3, 40}) {
    const Tensor q = normal_tensor({3, queries, 4, 64}, DType::float32, 9);
    const auto each = Tensor::from({true, false, true}, {3});
    each_paged_variant([&](Device place, std::string_view variant) {
      if (takes_few_queries(variant) && queries > 16) return;
      const Tensor causal = each.to(place);
      const auto mixed = batch.run(q, place, variant, {.causal = causal.view()});
      for (const bool is_causal : {true, false}) {
        const auto all = batch.run(q, place, variant, {.causal = is_causal});
        for (int64_t b = 0; b < 3; ++b) {
          if ((b != 1) != is_causal) continue;
          EXPECT_EQ(rows_of(mixed.out, b, 1), rows_of(all.out, b, 1)) << variant << ' ' << b;
          EXPECT_EQ(rows_of(mixed.lse, b, 1), rows_of(all.lse, b, 1)) << variant << ' ' << b;
        }
      }
    });
  }
}

TEST(PagedAttentionMask, SaysWhatItTakes) {
  const Tensor q(DType::float32, {2, 4, 8}), cache(DType::float32, {3, 16, 2, 8}),
      tables(DType::int32, {2, 1});
  const auto lengths = Tensor::from(std::vector<int32_t>{4, 4}, {2});
  const auto call = [&](const PagedAttentionOptions& o) {
    return [&, o] { paged_attention(q, cache, cache.view(), tables, lengths, o); };
  };
  const Tensor bools(DType::bool_, {2, 1, 2}), bits(DType::int32, {2, 0}),
      starts(DType::int32, {3}), each(DType::bool_, {3});
  expect_error(
      ErrorKind::value, call({.mask = bools.view()}),
      "paged_attention: mask: Size mismatch for shape#2: expected 1 but got 2; mask is [2, 1, 2], "
      "expected [2, 1, 1]");
  expect_error(ErrorKind::value, call({.mask = bits.view()}),
               "paged_attention: mask: a bit for each query of a request needs 1 words of 32 bits "
               "a token, and "
               "there may be 2^25, got shape [2, 0]");
  expect_error(
      ErrorKind::value, call({.mask = bools.view(), .cu_seqlens_q = starts.view()}),
      "paged_attention: mask: with cu_seqlens_q give packed bits, int32 (tokens, words), as "
      "requests have different numbers of queries; got bool of shape [2, 1, 2]");
  expect_error(
      ErrorKind::value, call({.causal = each.view()}),
      "paged_attention: causal: Size mismatch for shape#0: expected 2 but got 3; causal is [3], "
      "expected [2]");
  // Bits for a request that has more queries than they are.
  const Tensor tokens(DType::float32, {40, 4, 8}), few(DType::int32, {40, 1});
  const auto begin = Tensor::from(std::vector<int32_t>{0, 40, 40}, {3});
  expect_error(
      ErrorKind::value,
      [&] {
        paged_attention(tokens, cache, cache.view(), tables, lengths,
                        {.mask = few.view(), .cu_seqlens_q = begin.view()});
      },
      "paged_attention: mask: request 0 has 40 queries, which need 2 words of 32 bits a token, "
      "got 1");
}

}  // namespace
}  // namespace tensorcraft
