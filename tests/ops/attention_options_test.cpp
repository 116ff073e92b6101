// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/attention/attention.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/ops/permute/permute.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace tensorcraft {
namespace {

using test::doubles, test::expect_error, test::normal_tensor;

constexpr double kInf = std::numeric_limits<double>::infinity();

// Every variant of the host and the SIMT device, with a dtype that it takes.
struct Place {
  std::string_view variant;
  Device device;
  DType dtype;
};
std::vector<Place> all_places(std::vector<DType> dtypes = {DType::float32, DType::bfloat16}) {
  const auto devices = test::places();
  std::vector<Place> all;
  for (const auto& v : find_operator("attention").description().variants)
    for (const Device device : devices)
      for (const DType dtype : dtypes) {
        if ((v.device == DeviceType::cpu) != (device == Device::cpu())) continue;
        const bool takes_floats = device == Device::cpu() || v.name == "naive" || v.name == "tiled";
        if (dtype == DType::float32 && !takes_floats) continue;
        all.push_back({v.name, device, dtype});
      }
  return all;
}
std::ostream& operator<<(std::ostream& out, const Place& p) {
  return out << p.variant << ' ' << to_string(p.dtype);
}

// A call on the host; arrays that are not given are empty.
struct Call {
  Tensor q, k, v;
  AttentionOptions options = {};
  Tensor lengths, causal, sinks, mask, q_starts, k_starts;
  DType mask_dtype = DType::float32;

  struct Result {
    std::vector<double> out, lse;
  };
  // Into outputs that held NaN. Null: split_kv, which takes few queries, declines.
  std::optional<Result> run(const Place& place) const {
    std::vector<Tensor> there;
    there.reserve(12);
    const auto put = [&](const Tensor& t) { return there.emplace_back(t.to(place.device)).view(); };
    const auto rounded = [&](const Tensor& t) { return put(astype(t, {.dtype = place.dtype})); };
    AttentionOptions o = options;
    const auto give = [&](std::optional<TensorView>& field, const Tensor& t) {
      if (t.size()) field.emplace(put(t));
    };
    give(o.key_lengths, lengths);
    give(o.causal_each, causal);
    give(o.sinks, sinks);
    if (mask.size()) o.mask.emplace(put(astype(mask, {.dtype = mask_dtype})));
    give(o.cu_seqlens_q, q_starts);
    give(o.cu_seqlens_k, k_starts);
    o.variant = place.variant;
    Dims shape = q.shape();
    shape[shape.rank() - 1] = v.shape(v.rank() - 1);
    const Dims rows =
        shape.rank() == 4 ? Dims{shape[0], shape[1], shape[2]} : Dims{shape[1], shape[0]};
    const auto poisoned = [&](DType dtype, const Dims& of) {
      Tensor t(DType::float32, of);
      std::fill_n(t.data_as<float>(), t.size(), std::numeric_limits<float>::quiet_NaN());
      return astype(t, {.dtype = dtype}).to(place.device);
    };
    const Tensor out = poisoned(place.dtype, shape), lse = poisoned(DType::float32, rows);
    o.lse.emplace(lse.view());
    try {
      attention(out, rounded(q), rounded(k), rounded(v), o);
    } catch (const Error& e) {
      if (place.variant != "split_kv" || e.kind() != ErrorKind::unsupported) throw;
      return std::nullopt;
    }
    return Result{doubles(out), doubles(lse)};
  }
};

Tensor ints(const std::vector<int32_t>& values) {
  return Tensor::from(values, {int64_t(values.size())});
}
Tensor bools(const std::vector<bool>& values) {
  Tensor t(DType::bool_, {int64_t(values.size())});
  for (size_t i = 0; i < values.size(); ++i) t.data_as<bool>()[i] = values[i];
  return t;
}

// What the documentation says, key by key, of a batch that is not ragged.
Call::Result by_definition(const Call& c, DType dtype) {
  const auto rounded = [&](const Tensor& t) { return doubles(astype(t, {.dtype = dtype})); };
  const auto q = rounded(c.q), k = rounded(c.k), v = rounded(c.v);
  const int64_t batch = c.q.shape(0), heads = c.q.shape(1), sq = c.q.shape(2), d = c.q.shape(3),
                heads_k = c.k.shape(1), sk = c.k.shape(2), e = c.v.shape(3);
  const auto mask = c.mask.size()
                        ? doubles(astype(astype(c.mask, {.dtype = c.mask_dtype}), {DType::float32}))
                        : std::vector<double>();
  const double scale = c.options.scale.value_or(float(1 / std::sqrt(double(d))));
  Call::Result r;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < sq; ++i) {
        const int64_t keys = c.lengths.size() ? c.lengths.data_as<int32_t>()[b] : sk;
        const bool causal = c.causal.size() ? c.causal.data_as<bool>()[b] : c.options.causal;
        const int64_t at = i + keys - sq, kv = b * heads_k + h / (heads / heads_k);
        double sum = c.sinks.size() ? std::exp(double(c.sinks.data_as<float>()[h])) : 0;
        std::vector<double> out(static_cast<size_t>(e));
        for (int64_t j = 0; j < keys; ++j) {
          if (causal && j > at) continue;
          if (c.options.window) {
            const auto [left, right] = std::pair((*c.options.window)[0], (*c.options.window)[1]);
            if ((left >= 0 && j < at - left) || (right >= 0 && j > at + right)) continue;
          }
          double s = 0;
          for (int64_t x = 0; x < d; ++x)
            s += q[size_t(((b * heads + h) * sq + i) * d + x)] * k[size_t((kv * sk + j) * d + x)];
          s *= scale;
          if (c.options.softcap) s = *c.options.softcap * std::tanh(s / *c.options.softcap);
          if (!mask.empty()) {  // [sq, sk]
            const double m = mask[size_t(i * sk + j)];
            if (c.mask_dtype == DType::bool_ && m == 0) continue;
            if (c.mask_dtype != DType::bool_) s += m;
          }
          const double weight = std::exp(s);
          sum += weight;
          for (int64_t x = 0; x < e; ++x)
            out[size_t(x)] += weight * v[size_t((kv * sk + j) * e + x)];
        }
        for (const double x : out) r.out.push_back(sum == 0 ? 0 : x / sum);
        r.lse.push_back(std::log(sum));
      }
  return r;
}

void expect_near(const Call::Result& got, const Call::Result& want, const Place& place,
                 const std::string& what) {
  ASSERT_EQ(got.out.size(), want.out.size());
  ASSERT_EQ(got.lse.size(), want.lse.size());
  const double tolerance = place.dtype == DType::float32 ? 2e-5 : 0.02;
  for (size_t i = 0; i < want.out.size(); ++i)
    ASSERT_NEAR(got.out[i], want.out[i], tolerance) << place << ": " << what << " out " << i;
  for (size_t i = 0; i < want.lse.size(); ++i)
    if (std::isinf(want.lse[i]))
      ASSERT_EQ(got.lse[i], want.lse[i]) << place << ": " << what << " lse " << i;
    else
      ASSERT_NEAR(got.lse[i], want.lse[i], 1e-4) << place << ": " << what << " lse " << i;
}

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

TEST(AttentionOptions, ARaggedBatchIsItsRequestsOneByOne) {
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
        // The SIMT device has tiles for several warpgroups of one rung on wgmma only.
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
          one.options.causal = causal[size_t(b)];
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
TEST(AttentionOptions, ARequestOfNansLeavesTheOthersAsTheyAre) {
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

TEST(AttentionOptions, TheCpuRefusesStartsThatAreNotInOrder) {
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
TEST(AttentionOptions, StartsThatAreNotInOrderReadNothingOutside) {
  if (test::places().size() < 2) GTEST_SKIP() << "no SIMT device in this build";
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

// Several parts, more rows than a tile, slices of values, heads of values apart from those of keys.
TEST(AttentionOptions, FewQueriesAreDividedOverTheKeys) {
  struct Shape {
    int64_t heads, queries, keys, dim, value_dim;
  };
  for (const Shape& s : {Shape{8, 1, 700, 64, 64},
                         {2, 16, 513, 64, 64},
                         {5, 7, 300, 128, 128},
                         {4, 2, 600, 192, 128},
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
        if (test::places().size() < 2) GTEST_SKIP() << "no SIMT device in this build";
        const Place place{"split_kv", Device::simt(), dtype};
        const auto got = c.run(place);
        ASSERT_TRUE(got.has_value());
        expect_near(*got, by_definition(c, dtype), place, join("keys ", s.keys));
      }
    }
}

// The bits of a request alone, in a batch, and in a longer buffer are the same by the rung that a
// decode gets.
TEST(AttentionOptions, NoBitOfADecodeDependsOnTheRestOfTheBatch) {
  if (test::places().size() < 2) GTEST_SKIP() << "no SIMT device in this build";
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
  refuses(ErrorKind::value, {.mask = five.view()},
          "attention: mask: shape [2, 4, 4, 5] does not broadcast to [2, 4, 3, 5], (batch, heads, "
          "seq_q, seq_k)");
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
      ErrorKind::value, [&] { attention(q, k, k, {.causal_each = each.view()}); },
      "attention: causal: Size mismatch for shape#0('batch'): expected 2 but got 1 (batch is "
      "q.shape[0]); q is [2, 4, 3, 8], causal is [1]");
}

}  // namespace
}  // namespace tensorcraft
