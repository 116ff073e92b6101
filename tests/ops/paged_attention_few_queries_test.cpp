// SPDX-License-Identifier: Apache-2.0
// Checks the parts of few queries on wgmma: folded beside the ring if a batch is large, else
// written and folded by a second step.
#include "tensorcraft/ops/attention/attention.hpp"
#include "tensorcraft/device/key_parts.h"
#include "tensorcraft/op/operator.hpp"
#include "tests/support/paged_batch.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using namespace test;

// `v_dim` above 0: values are the first elements of keys.
struct FewQueries {
  int dim, queries, heads;
  PagedAttentionOptions options;
  int v_dim = 0;
  std::string_view variant() const { return v_dim > 0 ? "latent_wgmma" : "split_wgmma"; }
};

PagedBatch batch_of(const FewQueries& c) {
  PagedBatch batch{.lengths = {c.v_dim > 0 && c.heads == 8 ? 4500 : 1500, 640, 129, 0, 1, 127, 512,
                               513, 1024, 1025},
                   .heads_k = c.v_dim > 0 ? 1 : 2,
                   .dim = c.dim,
                   .v_dim = c.v_dim};
  while (batch.lengths.size() < 66) batch.lengths.push_back(int(batch.lengths.size()) * 3 % 70);
  batch.fill(1);
  return batch;
}

// Some of the requests, their tables as wide.
PagedBatch requests_of(const PagedBatch& batch, int64_t first, int64_t end) {
  PagedBatch some = batch.twin();
  some.lengths = {batch.lengths.begin() + first, batch.lengths.begin() + end};
  some.tables = copy(batch.tables.view().slice(0, first, end));
  return some;
}

size_t steps(const FewQueries& c, const PagedBatch& batch, const Tensor& q) {
  const Tensor lengths = batch.lengths_tensor(), like = astype(q, {.dtype = batch.dtype});
  Dims shape = q.shape();
  if (c.v_dim > 0) shape[3] = c.v_dim;
  const Tensor out(batch.dtype, shape);
  std::vector<op::Value> options(find_operator("paged_attention").description().options.size());
  if (c.v_dim == 0) options[0] = batch.v_cache.view();
  if (c.v_dim > 0) {
    const auto& all = find_operator("paged_attention").description().options;
    const auto at = std::ranges::find(all, "v_dim", [](const auto& o) { return o.name; });
    options[size_t(at - all.begin())] = int64_t(c.v_dim);
  }
  options[1] = batch.tables.view();
  options[2] = lengths.view();
  const std::vector<TensorView> inputs = {like, batch.k_cache}, outputs = {out};
  const auto rows =
      find_operator("paged_attention")
          .explain(outputs, {.inputs = inputs, .options = options}, device_info_of_arch("sm_90a"));
  for (const auto& row : rows.variants)
    if (row.variant.name == c.variant() && row.plan) return row.plan->steps().size();
  return 0;
}

std::vector<FewQueries> cases() {
  static const Tensor sinks =
      Tensor::from({0.5f, -1.0f, 2.0f, 0.0f, 1.0f, 3.0f, -2.0f, 0.25f}, {8});
  return {{64, 5, 8, {.causal = true}},
          {128, 1, 2, {}},
          {128, 16, 8, {.window = Dims{700, 0}, .softcap = 8}},
          {128, 3, 8, {.causal = true, .sinks = sinks.view()}},
          {40, 2, 4, {.causal = false}},
          {576, 1, 128, {.causal = true}, 512},
          {576, 5, 16, {.window = Dims{700, 0}, .softcap = 8}, 512},
          {576, 9, 8, {.causal = true, .sinks = sinks.view()}, 512},
          {320, 5, 16, {.causal = false}, 264}};
}

template <class F>
void each_case(F&& f) {
  for (const Device place : kernel_places())
    for (const FewQueries& c : cases()) {
      SCOPED_TRACE(join(place, ' ', c.dim, ' ', c.queries, ' ', c.heads));
      PagedAttentionOptions options = c.options;
      const Tensor sinks = c.options.sinks ? copy(*c.options.sinks).to(place) : Tensor();
      if (c.options.sinks) options.sinks = sinks.view();
      f(place, c, options);
    }
}

TEST(PagedAttentionFewQueries, FoldedByTheirBlockOrByASecondStepTheyHaveTheSameBits) {
  each_case([](Device place, const FewQueries& c, const PagedAttentionOptions& options) {
    const PagedBatch batch = batch_of(c);
    const auto requests = int64_t(batch.lengths.size());
    const Tensor q = normal_tensor({requests, c.queries, c.heads, c.dim}, DType::float32, 9);
    EXPECT_EQ(steps(c, batch, q), 1u);
    const auto all = batch.run(q, place, c.variant(), options);
    // 33 requests have runs of several parts, one alone has parts for a block each.
    for (int64_t b = -1; b < 11; ++b) {
      const int64_t first = std::max<int64_t>(b, 0), count = b < 0 ? 33 : 1;
      const PagedBatch one = requests_of(batch, first, first + count);
      const Tensor own = copy(q.view().slice(0, first, first + count));
      EXPECT_EQ(steps(c, one, own), 2u);
      const auto single = one.run(own, place, c.variant(), options);
      EXPECT_EQ(doubles(single.out), rows_of(all.out, first, count)) << b;
      EXPECT_EQ(doubles(single.lse), rows_of(all.lse, first, count)) << b;
    }
  });
}

TEST(PagedAttentionFewQueries, AreThoseOfTheReference) {
  each_case([](Device place, const FewQueries& c, const PagedAttentionOptions& options) {
    PagedBatch batch = batch_of(c);
    batch.lengths.resize(11);
    batch.fill(2);
    const Tensor q = normal_tensor({11, c.queries, c.heads, c.dim}, DType::float32, 9);
    const auto want = batch.run(q, Device::cpu(), "reference", c.options);
    const auto got = batch.run(q, place, c.variant(), options);
    test::expect_close(got.out, want.out, 0.01, 0.01);
    const auto lse = doubles(got.lse), of_reference = doubles(want.lse);
    for (size_t i = 0; i < lse.size(); ++i) {
      if (lse[i] == of_reference[i]) continue;  // -inf
      EXPECT_NEAR(lse[i], of_reference[i], 0.01) << i;
    }
  });
}

// 32 parts of 512 keys do not cover the keys of a request: its parts are longer.
TEST(PagedAttentionFewQueries, OfLongRequestsHaveLongerParts) {
  EXPECT_EQ(folded_part_keys(1024), 128);
  EXPECT_EQ(folded_part_keys(1025), 512);
  EXPECT_EQ(folded_part_keys(16384), 512);
  EXPECT_EQ(folded_part_keys(16385), 640);
  for (const int keys : {1, 128, 129, 1024, 1025, 5000, 16384, 16385, 100000, 1 << 30}) {
    EXPECT_EQ(folded_part_keys(keys) % kShortPartKeys, 0);
    EXPECT_LE(div_ceil(keys, folded_part_keys(keys)), most_folded_parts(keys)) << keys;
    EXPECT_LE(most_folded_parts(keys), kMostFolded);
  }
  for (const int long_part : {1024, 2048})
    for (int keys = 1, most = 0; keys < 80000; keys += 1 + keys / 97) {
      const int length = folded_part_keys(keys, long_part);
      EXPECT_EQ(length % 64, 0);
      most = std::max(most, div_ceil(keys, length));
      EXPECT_LE(most, most_folded_parts(keys, long_part)) << keys;
    }
}

}  // namespace
}  // namespace tensorcraft
