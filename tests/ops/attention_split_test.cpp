// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/key_parts.h"
#include "tests/support/attention_call.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using test::by_definition, test::expect_near, test::ints, test::normal_tensor;
using Call = test::AttentionCall;
using Place = test::AttentionPlace;

// Several parts, more rows than a tile, slices of values, heads of values apart from those of keys.
TEST(AttentionOfFewQueries, FewQueriesAreDividedOverTheKeys) {
  struct Shape {
    int64_t heads, queries, keys, dim, value_dim;
  };
  for (const Shape& s : {Shape{8, 1, 700, 64, 64},
                         {2, 16, 513, 64, 64},
                         {5, 7, 300, 128, 128},
                         {4, 2, 600, 192, 128},
                         {4, 3, 300, 80, 80},
                         {2, 2, 200, 40, 136},
                         {3, 1, 600, 160, 8},
                         {2, 3, 257, 512, 512}})
    for (const bool has_window : {false, true}) {
      Call c{normal_tensor({2, s.heads, s.queries, s.dim}, DType::float32, 1),
             normal_tensor({2, 1, s.keys, s.dim}, DType::float32, 2),
             normal_tensor({2, 1, s.keys, s.value_dim}, DType::float32, 3)};
      c.options.causal = true;
      c.lengths = ints({int32_t(s.keys), 130});
      if (has_window) c.options.window = Dims{150, 0};
      if (has_window) c.sinks = normal_tensor({s.heads});
      for (const DType dtype : {DType::float16, DType::bfloat16}) {
        if (test::places().size() < 2) GTEST_SKIP() << "no emulator in this build";
        const Place place{"split_kv", Device::simt(), dtype};
        const auto got = c.run(place);
        ASSERT_TRUE(got.has_value());
        expect_near(*got, by_definition(c, dtype), place, join("keys ", s.keys));
      }
    }
}

// The bits of a request alone, in a batch, and in a longer buffer are the same by the rung that a
// decode gets.
TEST(AttentionOfFewQueries, NoBitOfADecodeDependsOnTheRestOfTheBatch) {
  if (test::places().size() < 2) GTEST_SKIP() << "no emulator in this build";
  Call all{normal_tensor({3, 4, 2, 64}, DType::float32, 1),
           normal_tensor({3, 2, 900, 64}, DType::float32, 2),
           normal_tensor({3, 2, 900, 64}, DType::float32, 3)};
  all.lengths = ints({5, 530, 900});
  all.options.causal = true;
  const Place place{"", Device::simt(), DType::bfloat16};
  const auto whole = *all.run(place);
  for (const int64_t b : {0, 1, 2})
    for (const int64_t room : {0, 100}) {
      const int64_t keys = std::min<int64_t>(all.lengths.data_as<int32_t>()[b] + room, 900);
      const auto one = [&](const Tensor& t, int64_t rows) {
        return copy(t.view().slice(0, b, b + 1).slice(2, 0, rows));
      };
      Call alone{one(all.q, 2), one(all.k, keys), one(all.v, keys), all.options};
      alone.lengths = ints({all.lengths.data_as<int32_t>()[b]});
      const auto got = *alone.run(place);
      const auto part = [&](const std::vector<double>& from) {
        const auto size = int64_t(from.size()) / 3;
        return std::vector<double>(from.begin() + b * size, from.begin() + (b + 1) * size);
      };
      EXPECT_EQ(got.out, part(whole.out)) << b << ' ' << room;
      EXPECT_EQ(got.lse, part(whole.lse)) << b << ' ' << room;
    }
}

// Checks what a decode gets on an H200, and why it declines other calls.
TEST(AttentionOfFewQueries, TakesAtMost16AndSaysWhyItDeclines) {
  const auto explain = [](int64_t queries, int64_t dim, std::vector<op::Value> options) {
    const auto at = [&](int address, int64_t rows) {
      return TensorView(reinterpret_cast<void*>(uintptr_t(1) << address), DType::bfloat16,
                        {4, 8, rows, dim});
    };
    const TensorView inputs[] = {at(46, queries), at(47, 900), at(48, 900)};
    const TensorView outputs[] = {at(49, queries)};
    return find_operator("attention")
        .explain(outputs, {.inputs = inputs, .options = options}, device_info_of_arch("sm_90a"));
  };
  const auto refusal = [](const op::Explanation& e) {
    for (const auto& c : e.variants)
      if (c.variant.name == "split_kv") return c.reason;
    return std::string("no such rung");
  };
  const auto decode = explain(16, 64, {});
  EXPECT_EQ(decode.variant, "split_kv");
  for (const auto& c : decode.variants)
    if (c.variant.name == "split_kv") {
      ASSERT_EQ(c.plan->steps().size(), 2u);
      const auto parts = size_t(most_parts(900));
      EXPECT_EQ(c.plan->first().launch.grid.x, 4u * 8 * parts);  // requests, heads
      EXPECT_EQ(c.plan->workspace_bytes, 4 * 8 * 16 * parts * (64 + 2) * 4);
    }
  EXPECT_EQ(refusal(explain(17, 64, {})), "needs a batch of requests with at most 16 queries each");
  EXPECT_EQ(refusal(explain(8, 60, {})), "head_dim, also that of v, must be a multiple of 8");
  const op::Value none,
      mask = TensorView(reinterpret_cast<void*>(uintptr_t(1) << 50), DType::float32, {900});
  EXPECT_EQ(refusal(explain(8, 64, {none, none, none, none, none, none, mask})), "takes no mask");
}

}  // namespace
}  // namespace tensorcraft
