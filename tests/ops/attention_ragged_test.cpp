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

constexpr double kInf = std::numeric_limits<double>::infinity();

// The rows [first, first + count) of a ragged tensor as a batch of one.
Tensor part(const Tensor& t, int64_t first, int64_t count) {
  return copy(t.view().slice(0, first, first + count).transpose(0, 1).expand_dims(0));
}

struct Ragged {
  std::vector<int32_t> q_starts, k_starts;
};
const Ragged kRagged[] = {
    {{0, 3, 3, 40, 110, 110}, {0, 70, 90, 90, 140, 150}},  // without queries, without keys
    {{0, 64, 128, 129}, {0, 128, 129, 400}},               // whole tiles
    {{2, 110, 120}, {5, 5, 190}},                          // tokens of no request around
    {{0, 0, 0, 1}, {0, 0, 2, 3}},
    {{0, 130, 200, 500}, {0, 140, 180, 700}},  // tiles for several warpgroups
};

TEST(AttentionOfRaggedBatches, ARaggedBatchIsItsRequestsOneByOne) {
  for (const Ragged& ragged : kRagged)
    for (const bool has_window : {false, true}) {
      const int64_t tokens = ragged.q_starts.back() + 3, tokens_k = ragged.k_starts.back() + 1;
      const auto requests = int64_t(ragged.q_starts.size()) - 1;
      Call c{normal_tensor({tokens, 2, 64}, DType::float32, 1),
             normal_tensor({tokens_k, 1, 64}, DType::float32, 2),
             normal_tensor({tokens_k, 1, 64}, DType::float32, 3)};
      c.q_starts =
          has_window ? astype(ints(ragged.q_starts), {DType::int64}) : ints(ragged.q_starts);
      c.k_starts =
          has_window ? ints(ragged.k_starts) : astype(ints(ragged.k_starts), {DType::int64});
      std::vector<bool> causal;
      for (int64_t b = 0; b < requests; ++b) causal.push_back(b % 2 == 0);
      c.causal = bools(causal);
      c.sinks = Tensor::from(std::vector<float>{0.5f, 2}, {2});
      if (has_window) c.options.window = Dims{40, 3};
      for (const Place& place : all_places()) {
        // The emulator has tiles for several warpgroups of one rung on wgmma only.
        const bool is_one = place.variant == "wgmma" || place.variant == "warp_specialized";
        if (is_one && tokens > 64 * requests) continue;
        if (place.variant == "split_kv") continue;  // takes no ragged batch
        const auto all = *c.run(place);
        const auto row_of = [&](int64_t token, int64_t h) { return token * 2 + h; };
        const auto is_of_none = [&](int64_t t) {
          return t < ragged.q_starts.front() || t >= ragged.q_starts.back();
        };
        for (int64_t t = 0; t < tokens; ++t)
          for (int64_t h = 0; h < 2; ++h) {
            if (!is_of_none(t)) continue;
            EXPECT_EQ(all.lse[size_t(h * tokens + t)], -kInf) << place << ' ' << t;
            for (int64_t d = 0; d < 64; ++d)
              ASSERT_EQ(all.out[size_t(row_of(t, h) * 64 + d)], 0) << place << ' ' << t;
          }
        for (int64_t b = 0; b < requests; ++b) {
          const int64_t first = ragged.q_starts[size_t(b)], key = ragged.k_starts[size_t(b)];
          const int64_t n = ragged.q_starts[size_t(b) + 1] - first,
                        keys = ragged.k_starts[size_t(b) + 1] - key;
          if (n == 0) continue;
          Call one{part(c.q, first, n), part(c.k, key, keys), part(c.v, key, keys), c.options};
          one.options.causal = bool(causal[size_t(b)]);
          one.sinks = copy(c.sinks);
          const auto want = by_definition(one, place.dtype);
          Call::Result got;
          for (int64_t h = 0; h < 2; ++h)
            for (int64_t i = 0; i < n; ++i) {
              got.lse.push_back(all.lse[size_t(h * tokens + first + i)]);
              const auto from = all.out.begin() + row_of(first + i, h) * 64;
              got.out.insert(got.out.end(), from, from + 64);
            }
          expect_near(got, want, place, join("request ", b, " of ", requests));
        }
      }
    }
}

// Neither the queries nor the keys of a neighbour matter, whatever they are.
TEST(AttentionOfRaggedBatches, ARequestOfNansLeavesTheOthersAsTheyAre) {
  Call c{normal_tensor({150, 1, 64}, DType::float32, 1),
         normal_tensor({210, 1, 64}, DType::float32, 2),
         normal_tensor({210, 1, 64}, DType::float32, 3)};
  c.q_starts = ints({0, 50, 70, 150});
  c.k_starts = ints({0, 100, 130, 210});
  for (const Place& place : all_places()) {
    if (place.variant == "split_kv") continue;  // takes no ragged batch
    const auto want = *c.run(place);
    Call other{copy(c.q), copy(c.k), copy(c.v), c.options};
    other.q_starts = copy(c.q_starts);
    other.k_starts = copy(c.k_starts);
    std::fill(other.q.data_as<float>() + 50 * 64, other.q.data_as<float>() + 70 * 64, NAN);
    for (const Tensor* t : {&other.k, &other.v})
      std::fill(t->data_as<float>() + 100 * 64, t->data_as<float>() + 130 * 64, NAN);
    const auto got = *other.run(place);
    for (size_t i = 0; i < want.out.size(); ++i) {
      const bool is_theirs = i / 64 >= 50 && i / 64 < 70;
      ASSERT_EQ(std::isnan(got.out[i]), is_theirs) << place << ' ' << i;
      if (is_theirs) continue;
      ASSERT_EQ(got.out[i], want.out[i]) << place << ' ' << i;
    }
  }
}

TEST(AttentionOfRaggedBatches, TheCpuRefusesStartsThatAreNotInOrder) {
  const Tensor x = normal_tensor({8, 2, 16});
  for (const std::string_view variant : {"cpu", "reference"}) {
    const auto run = [&](const std::vector<int32_t>& q, const std::vector<int32_t>& k) {
      const Tensor starts = ints(q), keys = ints(k);
      attention(x, x, x,
                {.cu_seqlens_q = starts.view(), .cu_seqlens_k = keys.view(), .variant = variant});
    };
    run({0, 8, 8}, {0, 0, 8});
    expect_error(
        ErrorKind::index, [&] { run({0, 6, 5}, {0, 2, 8}); },
        "attention: cu_seqlens_q: request 1 has tokens [6, 5); they must not decrease and lie in "
        "[0, 8], the rows of q");
    expect_error(
        ErrorKind::index, [&] { run({0, 6, 8}, {0, 2, 9}); },
        "attention: cu_seqlens_k: request 1 has tokens [2, 9); they must not decrease and lie in "
        "[0, 8], the rows of k");
    expect_error(
        ErrorKind::index, [&] { run({-1, 6, 8}, {0, 2, 8}); },
        "attention: cu_seqlens_q: request 0 has tokens [-1, 6); they must not decrease and lie in "
        "[0, 8], the rows of q");
  }
}

// A kernel takes such starts too, and stays in its tensors.
TEST(AttentionOfRaggedBatches, StartsThatAreNotInOrderReadNothingOutside) {
  if (test::places().size() < 2) GTEST_SKIP() << "no emulator in this build";
  const Tensor x =
      astype(normal_tensor({70, 2, 64}), {.dtype = DType::bfloat16}).to(Device::simt());
  for (const auto& v : find_operator("attention").description().variants) {
    if (v.device == DeviceType::cpu || v.name == "split_kv") continue;
    for (const std::vector<int32_t>& starts :
         {std::vector<int32_t>{0, 900, 5, 70}, {-7, 1 << 30, -(1 << 30), 3}, {70, 40, 20, 0}}) {
      const Tensor there = ints(starts).to(Device::simt());
      attention(x, x, x,
                {.causal = true,
                 .cu_seqlens_q = there.view(),
                 .cu_seqlens_k = there.view(),
                 .variant = v.name});
    }
  }
}

}  // namespace
}  // namespace tensorcraft
