// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/float8.cuh"
#include "tests/support/attention_call.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace tensorcraft {
namespace {

using test::bools, test::doubles, test::expect_error, test::ints, test::normal_tensor;

constexpr DType kCodes = DType::float8_e4m3fn;

// Every variant that takes float8, where it runs.
struct Place {
  std::string_view variant;
  Device device;
  bool rounds_weights() const { return device != Device::cpu() && variant != "naive"; }
};
std::ostream& operator<<(std::ostream& out, const Place& p) {
  return out << p.variant << " on " << to_string(p.device);
}
std::vector<Place> all_places() {
  auto devices = test::places();
  if (cuda_device_count() > 0) devices.push_back(Device::cuda(0));
  std::vector<Place> all;
  for (const Device device : devices)
    for (const auto& name :
         device == Device::cpu()
             ? std::vector<std::string_view>{"cpu", "reference"}
             : std::vector<std::string_view>{"naive", "wgmma", "warp_specialized", "persistent"})
      all.push_back({name, device});
  return all;
}

// A call of codes; arrays that are not given are empty.
struct Call {
  Tensor q, k, v;
  AttentionOptions options = {};
  Tensor lengths = {}, q_scale = {}, k_scale = {}, v_scale = {};

  struct Result {
    std::vector<double> out, lse;
  };
  // Null: of its tile the emulator has no kernel, or the GPU has no such instructions.
  std::optional<Result> run(const Place& place, DType out_dtype = DType::bfloat16) const {
    std::vector<Tensor> there;
    there.reserve(8);
    const auto put = [&](const Tensor& t) { return there.emplace_back(t.to(place.device)).view(); };
    AttentionOptions o = options;
    const auto give = [&](std::optional<TensorView>& field, const Tensor& t) {
      if (t.size()) field.emplace(put(t));
    };
    give(o.key_lengths, lengths);
    give(o.q_scale, q_scale);
    give(o.k_scale, k_scale);
    give(o.v_scale, v_scale);
    o.variant = place.variant;
    o.out_dtype = out_dtype;
    o.return_lse = true;
    const TensorView on_q = put(q), on_k = put(k), on_v = put(v);
    try {
      const AttentionResult r = attention(on_q, on_k, on_v, o);
      return Result{doubles(r.out), doubles(r.lse)};
    } catch (const Error& e) {
      if (!place.rounds_weights() || e.kind() != ErrorKind::unsupported) throw;
      return std::nullopt;
    }
  }
};

Tensor codes(const Dims& shape, unsigned seed) { return normal_tensor(shape, kCodes, seed); }
Tensor floats(const std::vector<float>& x) { return Tensor::from(x, {int64_t(x.size())}); }

// Which variants ran at all, on each device.
void expect_all(const std::map<std::string, int>& ran) {
  for (const Place& place : all_places())
    EXPECT_GT(ran.at(join(place.variant, " on ", place.device)), 0) << place;
}
void note(std::map<std::string, int>& ran, const Place& place, bool did) {
  ran[join(place.variant, " on ", place.device)] += did;
}

// A key that equals a query outweighs all others, so the result is its value, with all its bits:
// each value must be where its weight is. Behind the lengths lie NaNs.
TEST(AttentionOfFloat8, AQueryFindsTheValueOfItsKey) {
  std::map<std::string, int> ran;
  for (const int64_t d : {64, 96, 128, 256})
    for (const int64_t queries : {40, 100})
      for (const int32_t length : {1, 64, 127, 129, 300}) {
        const int64_t keys = 301;
        Call c{codes({1, 2, queries, d}, 1), codes({1, 1, keys, d}, 2), codes({1, 1, keys, d}, 3)};
        std::mt19937 random(4);
        auto* k = c.k.data_as<e4m3>();
        for (int64_t i = 0; i < c.k.size(); ++i) k[i] = e4m3(random() % 2 ? 1.f : -1.f);
        std::vector<int64_t> wanted;
        for (int64_t row = 0; row < 2 * queries; ++row) {
          wanted.push_back(int64_t(random() % uint32_t(length)));
          std::copy_n(k + wanted.back() * d, d, c.q.data_as<e4m3>() + row * d);
        }
        const auto v = doubles(c.v);
        std::fill_n(k + length * d, (keys - length) * d, e4m3::from_bits(0x7f));
        std::fill_n(c.v.data_as<e4m3>() + length * d, (keys - length) * d, e4m3::from_bits(0xff));
        c.lengths = ints({length});
        c.q_scale = floats({2, 4});
        c.v_scale = floats({0.5f});
        c.options.scale = 1.0f;
        for (const Place& place : all_places()) {
          const auto got = c.run(place);
          note(ran, place, got.has_value());
          for (int64_t i = 0; got && i < 2 * queries * d; ++i)
            ASSERT_NEAR(got->out[size_t(i)], 0.5 * v[size_t(wanted[size_t(i / d)] * d + i % d)],
                        1e-30)
                << place << ": head_dim " << d << ", keys " << length << ", at " << i;
        }
      }
  expect_all(ran);
}

// Equal weights are exact in float8: what is left is the rounding of the result, and on a GPU that
// of sums of a tile in 14 bits.
TEST(AttentionOfFloat8, EqualScoresGiveTheMeanOfTheValuesThatAreSeen) {
  const int64_t queries = 100, keys = 260;
  for (const int64_t d : {48, 64, 96, 128, 256}) {
    Call c{codes({1, 4, queries, d}, 1), codes({1, 2, keys, d}, 2), codes({1, 2, keys, d}, 3)};
    std::fill_n(c.q.data_as<e4m3>(), c.q.size(), e4m3::from_bits(0));
    c.v_scale = floats({0.5f, 3});
    c.options.causal = true;
    const auto v = doubles(c.v);
    for (const Place& place : all_places()) {
      const auto got = c.run(place);
      for (int64_t h = 0; got && h < 4; ++h) {
        std::vector<double> sum(static_cast<size_t>(d));
        int64_t seen = 0;
        for (int64_t i = 0; i < queries; ++i) {
          for (; seen <= i + keys - queries; ++seen)
            for (int64_t x = 0; x < d; ++x)
              sum[size_t(x)] += v[size_t((h / 2 * keys + seen) * d + x)];
          for (int64_t x = 0; x < d; ++x) {
            const double mean = sum[size_t(x)] / double(seen) * (h < 2 ? 0.5 : 3);
            ASSERT_NEAR(got->out[size_t((h * queries + i) * d + x)], mean,
                        0x1p-8 * std::abs(mean) + (place.device.is_cuda() ? 1e-3 : 1e-4))
                << place << ": head_dim " << d << ", head " << h << ", query " << i;
          }
          ASSERT_NEAR(got->lse[size_t(h * queries + i)], std::log(double(seen)), 1e-5) << place;
        }
      }
    }
  }
}

// A tile's worth of keys: weights are rounded once, relative to the largest of their row; sums and
// lse are not.
TEST(AttentionOfFloat8, WeightsAreRoundedRelativeToTheLargest) {
  for (const int64_t d : {64, 128, 256}) {
    const int64_t queries = d == 128 ? 100 : 40, keys = d == 256 ? 64 : 128;
    Call c{codes({1, 1, queries, d}, 1), codes({1, 1, keys, d}, 2), codes({1, 1, keys, d}, 3)};
    c.q_scale = floats({1.25f});
    c.k_scale = floats({0.75f});
    const auto q = doubles(c.q), k = doubles(c.k), v = doubles(c.v);
    for (const Place& place : all_places()) {
      const auto got = c.run(place, DType::bfloat16);
      if (!got) continue;
      double squares = 0, error = 0;
      for (int64_t i = 0; i < queries; ++i) {
        std::vector<double> s(static_cast<size_t>(keys)), out(static_cast<size_t>(d));
        for (int64_t j = 0; j < keys; ++j)
          for (int64_t x = 0; x < d; ++x)
            s[size_t(j)] +=
                q[size_t(i * d + x)] * k[size_t(j * d + x)] * 1.25 * 0.75 / std::sqrt(double(d));
        const double top = *std::ranges::max_element(s);
        double sum = 0;
        for (int64_t j = 0; j < keys; ++j) {
          const double weight = 256 * std::exp(s[size_t(j)] - top);
          const double used = place.rounds_weights() ? double(float(e4m3(float(weight)))) : weight;
          sum += weight;
          for (int64_t x = 0; x < d; ++x) out[size_t(x)] += used * v[size_t(j * d + x)];
        }
        for (int64_t x = 0; x < d; ++x) {
          const double want = out[size_t(x)] / sum;
          squares += want * want;
          error += std::pow(got->out[size_t(i * d + x)] - want, 2);
        }
        ASSERT_NEAR(got->lse[size_t(i)], top + std::log(sum / 256),
                    place.device.is_cuda() ? 2e-2 : 1e-3)
            << place << ' ' << i;
      }
      // A score that differs in its last bits may round its weight the other way, on a GPU, whose
      // sums have 14 bits, more often. Without rounding, or with two, it is 0.02 and more.
      const double allowed = place.device.is_cuda() ? 0.015 : 0.004;
      EXPECT_LT(std::sqrt(error / squares), allowed) << place << ": head_dim " << d;
    }
  }
}

// `naive` and `cpu` are as exact as with other dtypes, in every dtype of the result.
TEST(AttentionOfFloat8, OthersThanWgmmaRoundTheResultAlone) {
  Call c{codes({2, 4, 33, 64}, 1), codes({2, 2, 70, 64}, 2), codes({2, 2, 70, 64}, 3)};
  c.lengths = ints({70, 11});
  c.q_scale = floats({1.25f, 0.5f, 2, 1});
  c.k_scale = floats({0.75f, 1.5f});
  c.v_scale = floats({3});
  c.options.causal = true;
  const auto want = *c.run({"reference", Device::cpu()}, DType::float32);
  for (const auto& [dtype, relative] :
       {std::pair(DType::float32, 1e-5), {DType::float16, 0x1p-11}, {DType::bfloat16, 0x1p-8}})
    for (const Place& place : all_places()) {
      if (place.rounds_weights()) continue;
      const auto got = *c.run(place, dtype);
      for (size_t i = 0; i < want.out.size(); ++i)
        ASSERT_NEAR(got.out[i], want.out[i], relative * std::abs(want.out[i]) + 2e-5)
            << place << ' ' << dtype << " at " << i;
      for (size_t i = 0; i < want.lse.size(); ++i)
        ASSERT_TRUE(got.lse[i] == want.lse[i] || std::abs(got.lse[i] - want.lse[i]) < 2e-5)
            << place << " lse " << i;
    }
}

// The host cannot see this: a scale that is not positive gives NaN, not other numbers.
TEST(AttentionOfFloat8, AScaleThatIsNotPositiveMakesItsHeadNan) {
  Call c{codes({1, 2, 3, 64}, 1), codes({1, 2, 9, 64}, 2), codes({1, 2, 9, 64}, 3)};
  c.k_scale = floats({1, -1});
  for (const Place& place : all_places()) {
    if (!place.rounds_weights()) continue;
    const auto got = *c.run(place);
    for (size_t i = 0; i < got.out.size(); ++i)
      ASSERT_EQ(std::isnan(got.out[i]), i >= got.out.size() / 2) << place << ' ' << i;
  }
}

op::Explanation explain(int64_t dim, std::map<std::string_view, op::Value> given,
                        DType out = DType::bfloat16, std::string_view arch = "sm_90a") {
  const auto at = [&](int address, int64_t rows, DType dtype) {
    return TensorView(reinterpret_cast<void*>(uintptr_t(1) << address), dtype, {2, 8, rows, dim});
  };
  const TensorView inputs[] = {at(46, 500, kCodes), at(47, 900, kCodes), at(48, 900, kCodes)};
  const TensorView outputs[] = {at(49, 500, out)};
  const auto& op = find_operator("attention");
  std::vector<op::Value> options;
  for (const auto& option : op.description().options) options.push_back(given[option.name]);
  return op.explain(outputs, {.inputs = inputs, .options = options}, device_info_of_arch(arch));
}
std::string refusal(const op::Explanation& e, std::string_view variant) {
  for (const auto& c : e.variants)
    if (c.variant.name == variant) return c.reason;
  return "no such rung";
}

TEST(AttentionOfFloat8, AFirstStepTransposesTheValuesIntoAWorkspace) {
  for (const auto& [dim, block_n] : {std::pair<int64_t, int64_t>(64, 128), {128, 128}, {256, 64}}) {
    const auto e = explain(dim, {});
    EXPECT_EQ(e.variant, "persistent");
    for (const auto& c : e.variants)
      if (c.variant.name == e.variant) {
        ASSERT_EQ(c.plan->steps().size(), 2u);
        EXPECT_EQ(c.plan->main_index(), 1u);
        const int64_t tiles = div_ceil(900, block_n);
        EXPECT_EQ(c.plan->first().launch.grid.x, 2u * 8 * tiles);
        EXPECT_EQ(c.plan->workspace_bytes, size_t(2 * 8 * tiles * block_n * dim));
      }
  }
}

TEST(AttentionOfFloat8, EachRungSaysWhatItDoesNotTake) {
  const op::Value mask =
      TensorView(reinterpret_cast<void*>(uintptr_t(1) << 50), DType::float32, {900});
  const std::string softcap = "takes neither softcap nor a mask with float8";
  EXPECT_EQ(refusal(explain(128, {{"softcap", 5.0}}), "persistent"), softcap);
  EXPECT_EQ(refusal(explain(128, {{"mask", mask}}), "wgmma"), softcap);
  EXPECT_EQ(refusal(explain(272, {}), "warp_specialized"),
            "head_dim, also that of v, must be at most 256");
  EXPECT_EQ(refusal(explain(128, {}, DType::float32), "persistent"),
            "writes float16 or bfloat16 of float8");
  EXPECT_EQ(refusal(explain(128, {}), "tensor_core"), "needs float16 or bfloat16");
  EXPECT_EQ(refusal(explain(128, {}), "tiled"), "takes no float8");
  EXPECT_EQ(refusal(explain(128, {}, DType::bfloat16, "sm_80"), "persistent"), "needs sm_90");
  for (const auto& e : {explain(128, {{"softcap", 5.0}}), explain(272, {}),
                        explain(128, {}, DType::bfloat16, "sm_80")})
    EXPECT_EQ(e.variant, "naive");
  EXPECT_EQ(explain(128, {{"window", Dims{100, 0}}}).variant, "persistent");
}

TEST(AttentionOfFloat8, BadCallsAreNamedWithTheirValues) {
  const Tensor q = codes({2, 4, 3, 64}, 1), k = codes({2, 2, 5, 64}, 2), three = floats({1, 2, 3});
  const Tensor wide = normal_tensor({2, 4, 3, 64}), wide_k = normal_tensor({2, 2, 5, 64});
  const auto refuses = [&](ErrorKind kind, const AttentionOptions& o, const char* text) {
    expect_error(kind, [&] { attention(q, k, k, o); }, text);
  };
  refuses(ErrorKind::value, {.k_scale = three.view()},
          "attention: k_scale: Size mismatch for shape#0('heads_k'): expected 2 but got 3 (heads_k "
          "is k.shape[1]); k is [2, 2, 5, 64], k_scale is [3]");
  const Tensor square = normal_tensor({2, 2});
  refuses(ErrorKind::value, {.q_scale = square.view()},
          "attention: q_scale: expected one number or one a head, (4,), got shape [2, 2]");
  refuses(ErrorKind::type, {.out_dtype = DType::int8},
          "attention: out_dtype must be bfloat16, float16 or float32 for q of float8_e4m3fn, got "
          "int8");
  expect_error(
      ErrorKind::type, [&] { attention(wide, wide_k, wide_k, {.out_dtype = DType::bfloat16}); },
      "attention: out_dtype must be float32, the dtype of q, got bfloat16; of float8_e4m3fn it may "
      "be another");
  expect_error(
      ErrorKind::type, [&] { attention(wide, wide_k, wide_k, {.v_scale = three.view()}); },
      "attention: v_scale needs inputs of float8_e4m3fn, got float32; leave it out, or multiply "
      "`scale` by it");
}

}  // namespace
}  // namespace tensorcraft
