// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/mqa_logits/mqa_logits.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error, test::normal_tensor, test::places, test::tensor_of, test::values;

constexpr float kNone = -std::numeric_limits<float>::infinity();

// Every variant of the host and the emulator.
template <class F>
void each_variant(F&& f) {
  for (const auto& v : find_operator("mqa_logits").description().variants)
    for (const Device place : places())
      if ((v.device == DeviceType::cpu) == (place == Device::cpu())) f(place, v.name);
}

Tensor integers(const std::vector<int32_t>& values, const Dims& shape, Device place) {
  return tensor_of<int32_t>(DType::int32, values, shape, place);
}

// 4 keys, two heads: relu comes before the weight, and the scale behind the sum.
TEST(MqaLogits, AddsUpWeightedHeadsOfTheKeysThatAQuerySees) {
  for (const Device d : places()) {
    const Tensor q = tensor_of<float>(DType::float32, {1, 2, -1, 1}, {1, 2, 2}, d),
                 k = tensor_of<float>(DType::float32, {1, 1, 2, 0, 0, 3, -1, -1}, {4, 2}, d),
                 weights = tensor_of<float>(DType::float32, {10, -1}, {1, 2}, d),
                 scale = tensor_of<float>(DType::float32, {1, 2, 3, -1}, {4}, d);
    EXPECT_EQ(values(mqa_logits(q, k, weights)), (std::vector<float>{30, 20, 57, 0})) << d;
    EXPECT_EQ(
        values(mqa_logits(
            q, k, weights,
            {.k_scale = scale, .k_start = integers({1}, {1}, d), .k_end = integers({3}, {1}, d)})),
        (std::vector<float>{kNone, 40, 171, kNone}))
        << d;
  }
}

Tensor halves(const std::vector<float>& values, const Dims& shape, Device place) {
  return astype(Tensor::from(values, shape), {.dtype = DType::float16}).to(place);
}

TEST(MqaLogits, ARangeIsCutToTheKeysAndAnEmptyOneGivesNothing) {
  each_variant([](Device d, std::string_view variant) {
    std::vector<float> k(16, 1);
    std::fill_n(k.begin() + 8, 8, 2.0f);
    const Tensor out =
        mqa_logits(halves(std::vector<float>(32, 0.125f), {4, 1, 8}, d), halves(k, {2, 8}, d),
                   tensor_of<float>(DType::float32, {1, 1, 1, 1}, {4, 1}, d),
                   {.k_start = integers({-3, 1, 2, 5}, {4}, d),
                    .k_end = integers({9, 0, 2, 9}, {4}, d),
                    .variant = variant});
    EXPECT_EQ(values(out), (std::vector<float>{1, 2, kNone, kNone, kNone, kNone, kNone, kNone}))
        << variant;
  });
}

// Keys of requests in pages that are in disorder; all that no query sees is NaN.
struct Paged {
  static constexpr int kBatch = 3, kQueries = 9, kHeads = 9, kDim = 40, kPage = 16, kTable = 4;
  const std::vector<int32_t> lengths{64, 0, 37}, table{5, 2, 0, 7, -9, 99, -1, 8, 3, 1, 6, -1};
  Tensor q = normal_tensor({kBatch, kQueries, kHeads, kDim}, DType::bfloat16, 3),
         keys = normal_tensor({9, kPage, kDim}, DType::float32, 4),
         weights = normal_tensor({kBatch, kQueries, kHeads}, DType::float32, 5);

  Tensor hidden() const {
    std::vector<float> all(size_t(keys.size()), NAN);
    const std::vector<float> given = values(keys);
    for (size_t b = 0; b < kBatch; ++b)
      for (int j = 0; j < lengths[b]; ++j) {
        const size_t row = size_t(table[b * kTable + size_t(j / kPage)] * kPage + j % kPage);
        std::copy_n(given.begin() + int64_t(row) * kDim, kDim, all.begin() + int64_t(row) * kDim);
      }
    return astype(Tensor::from(all, keys.shape()), {.dtype = DType::bfloat16});
  }
  Tensor run(Device d, std::string_view variant) const {
    return mqa_logits(q.to(d), hidden().to(d), weights.to(d),
                      {.block_tables = integers(table, {kBatch, kTable}, d),
                       .lengths = integers(lengths, {kBatch}, d),
                       .variant = variant});
  }
  // Query i of request b alone, its keys side by side.
  std::vector<float> run_alone(Device d, std::string_view variant, int b, int i) const {
    const std::vector<float> given = values(keys);
    std::vector<float> own;
    for (int j = 0; j < lengths[size_t(b)]; ++j) {
      const int row = table[size_t(b * kTable + j / kPage)] * kPage + j % kPage;
      own.insert(own.end(), given.begin() + row * kDim, given.begin() + (row + 1) * kDim);
    }
    const Tensor k = astype(Tensor::from(own, {lengths[size_t(b)], kDim}), {.dtype = q.dtype()});
    const auto row_of = [&](const Tensor& t) {
      return t.view().slice(0, b, b + 1).reshape({kQueries, kHeads, -1}).slice(0, i, i + 1);
    };
    std::vector<float> out = values(mqa_logits(
        copy(row_of(q)).to(d), k.to(d), copy(row_of(weights).reshape({1, kHeads})).to(d),
        {.k_end = integers({i + lengths[size_t(b)] - kQueries + 1}, {1}, d), .variant = variant}));
    out.resize(kTable * kPage, kNone);
    return out;
  }
};

TEST(MqaLogits, ALogitHasTheSameBitsInPagesAndAlone) {
  const Paged paged;
  each_variant([&](Device d, std::string_view variant) {
    const std::vector<float> all = values(paged.run(d, variant));
    constexpr int kRow = Paged::kTable * Paged::kPage;
    for (int b = 0; b < Paged::kBatch; ++b)
      for (const int i : {0, 5, 8}) {
        const auto at = all.begin() + (b * Paged::kQueries + i) * kRow;
        ASSERT_EQ(std::vector<float>(at, at + kRow), paged.run_alone(d, variant, b, i))
            << variant << " query " << i << " of request " << b;
      }
  });
}

TEST(MqaLogits, KeepsNaNOfAKeyAndOfAHeadToTheirLogits) {
  each_variant([](Device d, std::string_view variant) {
    std::vector<float> q(3 * 8, 1), k(40 * 8, 1);
    q[8] = NAN;       // query 1
    k[37 * 8] = NAN;  // key 37
    const std::vector<float> out = values(
        mqa_logits(halves(q, {3, 1, 8}, d), halves(k, {40, 8}, d),
                   tensor_of<float>(DType::float32, {1, 1, 1}, {3, 1}, d), {.variant = variant}));
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 40; ++j)
        ASSERT_EQ(std::isnan(out[size_t(i * 40 + j)]), i == 1 || j == 37)
            << variant << " query " << i << " key " << j;
  });
}

// A head that is not there must not make a NaN of an infinite key.
TEST(MqaLogits, HeadsThatFillUpAnInstructionAddNothing) {
  each_variant([](Device d, std::string_view variant) {
    const float inf = std::numeric_limits<float>::infinity();
    const Tensor out =
        mqa_logits(halves(std::vector<float>(8, -1), {1, 1, 8}, d),
                   halves(std::vector<float>(16, inf), {2, 8}, d),
                   tensor_of<float>(DType::float32, {1}, {1, 1}, d), {.variant = variant});
    EXPECT_EQ(values(out), (std::vector<float>{0, 0})) << variant;
  });
}

// Two queries of a block whose ranges lie apart: nothing between them is read, table included.
TEST(MqaLogits, KeysBetweenTheRangesOfTwoQueriesAreNotRead) {
  constexpr int kPage = 16, kTable = 24, kKeys = kPage * kTable;
  std::vector<int32_t> table(kTable, -7);
  table[0] = 1, table[kTable - 1] = 0, table[12] = 99;
  std::vector<float> k(2 * kPage * 16, 1), expected(2 * kKeys, kNone);
  std::fill_n(k.begin(), 8 * 16, NAN);  // the last block's first 8 keys
  std::fill_n(expected.begin(), 10, 16.f);
  std::fill_n(expected.end() - 8, 8, 16.f);
  each_variant([&](Device d, std::string_view variant) {
    const Tensor out = mqa_logits(halves(std::vector<float>(32, 1), {1, 2, 1, 16}, d),
                                  halves(k, {2, kPage, 16}, d),
                                  tensor_of<float>(DType::float32, {1, 1}, {1, 2, 1}, d),
                                  {.k_start = integers({0, kKeys - 8}, {1, 2}, d),
                                   .k_end = integers({10, kKeys}, {1, 2}, d),
                                   .block_tables = integers(table, {1, kTable}, d),
                                   .lengths = integers({kKeys}, {1}, d),
                                   .variant = variant});
    EXPECT_EQ(values(out), expected) << variant;
  });
}

TEST(MqaLogits, ALengthBeyondTheTableIsAnErrorOfTheHost) {
  const Paged paged;
  each_variant([&](Device d, std::string_view variant) {
    const Tensor keys = astype(paged.keys, {.dtype = DType::bfloat16}).to(d);
    expect_error(
        ErrorKind::value,
        [&] {
          mqa_logits(paged.q.to(d), keys, paged.weights.to(d),
                     {.block_tables = integers(paged.table, {3, 4}, d),
                      .lengths = integers({64, 0, 65}, {3}, d),
                      .variant = variant});
        },
        "mqa_logits: lengths: element 2 is 65, expected [0, 64], the keys that a row of "
        "block_tables has room for");
  });
}

TEST(MqaLogits, ABlockThatKLacksIsAnErrorOfTheHost) {
  Paged paged;
  paged.keys = normal_tensor({7, Paged::kPage, Paged::kDim}, DType::bfloat16, 4);
  const auto run = [&](Device d, std::string_view variant) {
    return mqa_logits(paged.q.to(d), paged.keys.to(d), paged.weights.to(d),
                      {.block_tables = integers(paged.table, {3, 4}, d),
                       .lengths = integers(paged.lengths, {3}, d),
                       .variant = variant});
  };
  each_variant([&](Device d, std::string_view variant) {
    expect_error(
        ErrorKind::index, [&] { run(d, variant); },
        d == Device::cpu()
            ? "mqa_logits: block_tables: entry 3 of request 0 is 7, expected [0, 7), the blocks of "
              "k; entries behind the keys that queries see may hold anything"
            : "mqa_logits: an entry of block_tables is 7, expected [0, 7)");
  });
}

// Why wgmma does not take 2 queries of `heads` heads, or what takes them if it does.
struct Asked {
  int64_t heads = 64, dim = 128, page = 0;
  DType dtype = DType::float8_e4m3fn;
  std::string_view arch = "sm_90a";

  std::string answer() const {
    const auto at = [](int address, DType type, const Dims& shape) {
      return TensorView(reinterpret_cast<void*>(uintptr_t(1) << address), type, shape);
    };
    const TensorView inputs[] = {at(46, dtype, {2, heads, dim}),
                                 page ? at(47, dtype, {9, page, dim}) : at(47, dtype, {4096, dim}),
                                 at(48, DType::float32, {2, heads})};
    const TensorView outputs[] = {at(49, DType::float32, {2, page ? 8 * page : 4096})};
    const auto& op = find_operator("mqa_logits");
    std::vector<op::Value> options;
    for (const auto& option : op.description().options) {
      if (page && option.name == "block_tables")
        options.emplace_back(at(50, DType::int32, {2, 8}));
      else if (page && option.name == "lengths")
        options.emplace_back(at(51, DType::int32, {2}));
      else
        options.emplace_back();
    }
    const auto e =
        op.explain(outputs, {.inputs = inputs, .options = options}, device_info_of_arch(arch));
    for (const auto& c : e.variants)
      if (c.variant.name == "wgmma" && !c.accepted) return c.reason;
    return std::string(e.variant);
  }
};

TEST(MqaLogits, WgmmaSaysWhatItDoesNotTake) {
  for (const DType dtype : {DType::float8_e4m3fn, DType::float16, DType::bfloat16})
    for (const int64_t page : {0, 8, 64})
      EXPECT_EQ((Asked{.page = page, .dtype = dtype}.answer()), "wgmma") << dtype << ' ' << page;
  const std::string sizes = "needs 1 to 128 heads and a head_dim of 1 to 256";
  EXPECT_EQ(Asked{.heads = 129}.answer(), sizes);
  EXPECT_EQ(Asked{.dim = 272}.answer(), sizes);
  EXPECT_EQ(
      Asked{.dim = 40}.answer(),
      "rows of q and k must have stride 1 and begin at 16-byte boundaries, and share no memory");
  EXPECT_EQ(Asked{.page = 20}.answer(), "block_size must be a multiple of 8");
  EXPECT_EQ(Asked{.dtype = DType::float32}.answer(), "needs float8_e4m3fn, float16 or bfloat16");
  EXPECT_EQ(Asked{.arch = "sm_89"}.answer(), "needs sm_90");
  EXPECT_EQ(Asked{.arch = "sm_100a"}.answer(), "wgmma exists on sm_90 alone");
}

TEST(MqaLogits, SaysWhatItTakes) {
  const Tensor q(DType::float16, {2, 3, 8}), k(DType::float16, {4, 8}),
      pages(DType::float16, {4, 2, 8}), weights(DType::float32, {2, 3}),
      table(DType::int32, {2, 1}), lengths(DType::int32, {2});
  expect_error(
      ErrorKind::value, [&] { mqa_logits(q, pages, weights, {.block_tables = table}); },
      "mqa_logits: give both block_tables and lengths, if keys lie in pages, or neither");
  expect_error(
      ErrorKind::value, [&] { mqa_logits(q, pages, weights); },
      "mqa_logits: k: expected (keys, head_dim), as block_tables is not given, got shape [4, 2, "
      "8]");
  expect_error(
      ErrorKind::value,
      [&] { mqa_logits(q, k, weights, {.block_tables = table, .lengths = lengths}); },
      "mqa_logits: k: expected (blocks, block_size, head_dim), as block_tables is given, got shape "
      "[4, 8]");
  expect_error(
      ErrorKind::value, [&] { mqa_logits(Tensor(DType::float16, {2, 8}), k, weights); },
      "mqa_logits: q: expected (queries, heads, head_dim), got shape [2, 8]");
  EXPECT_THROW(mqa_logits(q, astype(k, {.dtype = DType::float32}), weights), Error);
  EXPECT_THROW(mqa_logits(q, k, weights, {.k_start = weights}), Error);
}

}  // namespace
}  // namespace tensorcraft
