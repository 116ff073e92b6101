// SPDX-License-Identifier: Apache-2.0
#include "tests/support/attention_call.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using test::all_places, test::bools, test::by_definition, test::doubles, test::expect_error,
    test::expect_near, test::ints, test::normal_tensor;
using Call = test::AttentionCall;
using Place = test::AttentionPlace;

// Every pair of options meets in some row of this table.
struct Options {
  std::optional<Dims> window;
  float softcap;  // 0: none
  bool sinks;
  int mask;    // 0: none, 1: bool, 2: float32, 3: the dtype of q
  int causal;  // 0, 1, 2: of some requests
  bool lengths;
};
const Options kTable[] = {
    {{}, 0, false, 0, 0, true},
    {Dims{20, 0}, 0, false, 0, 1, false},
    {Dims{20, 30}, 0, true, 0, 0, true},
    {Dims{0, 0}, 3, false, 0, 2, false},
    {Dims{-1, 7}, 0, true, 1, 0, false},
    {Dims{70, -1}, 4, true, 2, 1, true},
    {{}, 5, true, 3, 2, false},
    {{}, 2, false, 1, 1, true},
    {Dims{5, 5}, 0, false, 2, 2, true},
    {Dims{500, 500}, 50, true, 0, 0, false},
    {Dims{33, 2}, 1.5f, true, 3, 0, true},
    {{}, 0, true, 2, 1, true},
    {Dims{1, 0}, 0, true, 1, 2, true},
    {Dims{12, 40}, 8, false, 3, 1, false},
};

TEST(AttentionOptions, CombineAsTheirDefinitionsDo) {
  const Tensor sinks = Tensor::from(std::vector<float>{1.5f, -2}, {2});
  for (const int64_t sq : {3, 33}) {
    Tensor mask = normal_tensor({sq, 150}, DType::float32, 4);
    for (int64_t i = 0; i < mask.size(); i += 3)  // also a query that sees none
      mask.data_as<float>()[i] = -std::numeric_limits<float>::infinity();
    Tensor seen = normal_tensor({sq, 150}, DType::float32, 5);
    for (int64_t i = 0; i < seen.size(); ++i)
      seen.data_as<float>()[i] = i / 150 != 1 && seen.data_as<float>()[i] > 0;
    for (const Options& o : kTable) {
      Call c{normal_tensor({2, 2, sq, 64}, DType::float32, 1),
             normal_tensor({2, 1, 150, 64}, DType::float32, 2),
             normal_tensor({2, 1, 150, 64}, DType::float32, 3)};
      c.options.window = o.window;
      if (o.softcap > 0) c.options.softcap = o.softcap;
      c.options.causal = o.causal == 1;
      if (o.causal == 2) c.causal = bools({true, false});
      if (o.sinks) c.sinks = copy(sinks);
      if (o.lengths) c.lengths = ints({2, 131});
      if (o.mask) c.mask = copy(o.mask == 1 ? seen : mask);
      for (const Place& place : all_places()) {
        c.mask_dtype = o.mask == 1 ? DType::bool_ : o.mask == 2 ? DType::float32 : place.dtype;
        const auto got = c.run(place);
        EXPECT_TRUE(got || sq > 16 || o.mask) << place;
        if (got)
          expect_near(*got, by_definition(c, place.dtype), place,
                      join("row ", &o - kTable, " of ", sq));
      }
    }
  }
}

// Tiles of keys before a window and behind it are not read.
TEST(AttentionOptions, KeysFarOutsideOfTheWindowHaveNoEffect) {
  Call c{normal_tensor({1, 1, 5, 64}, DType::float32, 1),
         normal_tensor({1, 1, 900, 64}, DType::float32, 2),
         normal_tensor({1, 1, 900, 64}, DType::float32, 3)};
  c.lengths = ints({650});
  c.options.window = Dims{20, 0};
  for (const Place& place : all_places()) {
    const auto want = *c.run(place);
    Call other{copy(c.q), copy(c.k), copy(c.v), c.options};
    other.lengths = copy(c.lengths);
    for (const Tensor* t : {&other.k, &other.v}) {
      std::fill_n(t->data_as<float>(), 384 * 64, NAN);  // the window begins in the tile of 576
      std::fill_n(t->data_as<float>() + 650 * 64, 250 * 64, NAN);
    }
    const auto got = *other.run(place);
    EXPECT_EQ(got.out, want.out) << place;
    EXPECT_EQ(got.lse, want.lse) << place;
  }
}

TEST(AttentionOptions, ARowWithoutKeysHasTheSinkAsItsLse) {
  Call c{normal_tensor({2, 2, 40, 64}, DType::float32, 1),
         normal_tensor({2, 2, 30, 64}, DType::float32, 2),
         normal_tensor({2, 2, 30, 64}, DType::float32, 3)};
  c.lengths = ints({0, 30});
  c.options.causal = true;
  for (const float sink : {-INFINITY, 3.25f, 200.0f}) {
    c.sinks = Tensor::from(std::vector<float>{sink, sink}, {2});
    for (const Place& place : all_places()) {
      if (place.variant == "split_kv" && c.q.shape(2) > 16) continue;
      const auto r = *c.run(place);
      for (size_t row = 0; row < 160; ++row) {
        const bool sees_none = row < 80 || row % 40 < 10;
        EXPECT_EQ(r.lse[row] == sink, sees_none || sink == 200) << place << ' ' << row;
        for (size_t d = row * 64; d < row * 64 + 64; ++d) {
          const double largest = sees_none ? 0 : sink == 200 ? 1e-30 : 10;
          ASSERT_LE(std::abs(r.out[d]), largest) << place << ' ' << row;
        }
      }
    }
  }
}

TEST(AttentionOptions, AMaskIsReadByItsStrides) {
  Call c{normal_tensor({2, 2, 5, 64}, DType::float32, 1),
         normal_tensor({2, 2, 70, 64}, DType::float32, 2),
         normal_tensor({2, 2, 70, 64}, DType::float32, 3)};
  const Tensor one = normal_tensor({2, 1, 5, 70}, DType::float32, 4);
  for (const Place& place : all_places()) {
    if (place.variant == "split_kv") continue;  // takes no mask
    const auto run = [&](const TensorView& mask) {
      const auto moved = [&](const Tensor& t) {
        return astype(t, {.dtype = place.dtype}).to(place.device);
      };
      return doubles(
          attention(moved(c.q), moved(c.k), moved(c.v), {.mask = mask, .variant = place.variant})
              .out);
    };
    const Tensor there = one.to(place.device);
    Tensor whole(DType::float32, {2, 2, 5, 70});
    for (int64_t i = 0; i < whole.size(); ++i)
      whole.data_as<float>()[i] = one.data_as<float>()[i / 700 * 350 + i % 350];
    const auto want = run(whole.to(place.device));
    EXPECT_EQ(run(there), want) << place;
    EXPECT_EQ(run(there.view().broadcast_to({2, 2, 5, 70})), want) << place;
    // Keys in front of queries, in memory.
    const Tensor turned = copy(one.view().transpose(2, 3)).to(place.device);
    EXPECT_EQ(run(turned.view().transpose(2, 3)), want) << place;
  }
}

TEST(AttentionOptions, BadOnesAreNamedWithTheirValues) {
  const Tensor q = normal_tensor({2, 4, 3, 8}), k = normal_tensor({2, 2, 5, 8}),
               flat = normal_tensor({6, 4, 8}), flat_k = normal_tensor({6, 2, 8});
  const auto refuses = [&](ErrorKind kind, const AttentionOptions& o, const char* text) {
    expect_error(kind, [&] { attention(q, k, k, o); }, text);
  };
  refuses(ErrorKind::value, {.window = Dims{3}},
          "attention: window must be two numbers, left and right, of at least -1, which is "
          "unlimited; got [3]; a window of w keys, the query's own included, is (w - 1, 0)");
  refuses(ErrorKind::value, {.softcap = 0.0f},
          "attention: softcap must be above 0 and finite, got 0; leave it out for none");
  const Tensor three = normal_tensor({3}), five = normal_tensor({2, 4, 4, 5});
  refuses(ErrorKind::value, {.sinks = three.view()},
          "attention: sinks: Size mismatch for shape#0('heads'): expected 4 but got 3 (heads is "
          "q.shape[1]); q is [2, 4, 3, 8], sinks is [3]");
  refuses(
      ErrorKind::value, {.mask = five.view()},
      "attention: mask: expected a shape that broadcasts to [2, 4, 3, 5], (batch, heads, seq_q, "
      "seq_k), got [2, 4, 4, 5]");
  const Tensor starts = ints({0, 2, 6});
  refuses(ErrorKind::value, {.cu_seqlens_q = starts.view(), .cu_seqlens_k = starts.view()},
          "attention: q: expected 3 dimensions (tokens, heads, head_dim) with cu_seqlens_q, got "
          "shape [2, 4, 3, 8]");
  const auto refuses_ragged = [&](const AttentionOptions& o, const char* text) {
    expect_error(ErrorKind::value, [&] { attention(flat, flat_k, flat_k, o); }, text);
  };
  refuses_ragged({.cu_seqlens_q = starts.view()},
                 "attention: give cu_seqlens_q and cu_seqlens_k, or neither: where the tokens of "
                 "each request begin in q, and in k and v");
  refuses_ragged(
      {.mask = three.view(), .cu_seqlens_q = starts.view(), .cu_seqlens_k = starts.view()},
      "attention: mask is for batches without cu_seqlens_q; causal, window and "
      "key_lengths serve both");
  const Tensor each = bools({true});
  expect_error(
      ErrorKind::value, [&] { attention(q, k, k, {.causal = each.view()}); },
      "attention: causal: Size mismatch for shape#0('batch'): expected 2 but got 1 (batch is "
      "q.shape[0]); q is [2, 4, 3, 8], causal is [1]");
}

}  // namespace
}  // namespace tensorcraft
