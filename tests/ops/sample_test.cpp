// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/sample/sample.hpp"

#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/sample/weight.cuh"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error, test::normal_tensor, test::values;
using Ids = std::vector<int64_t>;

// Every variant of the host and the emulator that takes the call.
template <class F>
void each_sample_variant(F&& f) {
  const auto places = test::places();
  for (const auto& v : find_operator("sample").description().variants)
    for (const Device place : places)
      if ((v.device == DeviceType::cpu) == (place == Device::cpu())) f(place, v.name);
}

// Rows that are all the same numbers.
TensorView repeated(const Tensor& row, int64_t rows) {
  return row.view().expand_dims(0).broadcast_to({rows, row.shape()[0]});
}

template <class T>
Tensor tensor(const std::vector<T>& numbers, Device place = Device::cpu()) {
  return Tensor::from(numbers, {int64_t(numbers.size())}).to(place);
}

std::vector<double> softmax_of(const std::vector<float>& logits, double temperature) {
  std::vector<double> p;
  const double most = *std::ranges::max_element(logits);
  for (const float x : logits) p.push_back(std::exp((double(x) - most) / temperature));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= total;
  return p;
}

// Compares draws with probabilities, by classes of indices.
double chi_square(const Ids& draws, const std::vector<double>& p, int64_t classes) {
  std::vector<double> seen(size_t(classes), 0.0), wanted(size_t(classes), 0.0);
  const auto class_of = [&](int64_t i) { return size_t(i * classes / int64_t(p.size())); };
  for (const int64_t i : draws) seen[class_of(i)] += 1;
  for (size_t i = 0; i < p.size(); ++i) wanted[class_of(int64_t(i))] += p[i] * double(draws.size());
  double sum = 0;
  for (size_t c = 0; c < seen.size(); ++c)
    sum += (seen[c] - wanted[c]) * (seen[c] - wanted[c]) / wanted[c];
  return sum;
}

TEST(Sample, TheGeneratorIsPhilox) {  // the known answers of its authors
  using kernel::sample::draw_of;
  const auto zeros = draw_of(0, 0, 0), ones = draw_of(~uint64_t(0), ~uint64_t(0), ~uint64_t(0)),
             pi = draw_of(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e);
  EXPECT_EQ(zeros.first, 0xe169c58d6627e8d5);
  EXPECT_EQ(zeros.second, 0x9b00dbd8bc57ac4c);
  EXPECT_EQ(ones.first, 0x41c83b0e408f276d);
  EXPECT_EQ(ones.second, 0x6d5451fda20bc7c6);
  EXPECT_EQ(pi.first, 0x94fdccebd16cfe09);
  EXPECT_EQ(pi.second, 0x24126ea15001e420);
}

TEST(Sample, WeightsAreThePowersOfTwoOfTheirExponents) {
  using namespace kernel::sample;
  uint64_t last = weight_of(0);
  EXPECT_EQ(last, uint64_t(1) << kWeightBits);
  for (float t = 0x1p-24f; t < 40; t += 0x1p-7f) {
    const uint64_t w = weight_of(t), s = scaled(uint64_t(1) << 46, t);
    EXPECT_LE(w, last) << t;
    EXPECT_NEAR(double(w), std::exp2(double(kWeightBits) - double(t)), 2e-7 * double(w) + 1) << t;
    EXPECT_NEAR(double(s), std::exp2(46 - double(t)), 2e-7 * double(s) + 1) << t;
    last = w;
  }
  for (const float t : {37.0f, 1e30f, INFINITY, NAN}) EXPECT_EQ(weight_of(t), 0u) << t;
  EXPECT_EQ(high_of(~uint64_t(0), ~uint64_t(0)), ~uint64_t(1));
  EXPECT_EQ(high_of(uint64_t(1) << 63, uint64_t(6)), 3u);
}

// All variants draw the same, so one draws often and the others show that they agree with it.
void expect_agreement(const Tensor& row, const SampleOptions& options, const Ids& draws) {
  constexpr int64_t kFew = 50;
  const Ids wanted(draws.begin(), draws.begin() + kFew);
  each_sample_variant([&](Device place, std::string_view variant) {
    const Tensor x = row.to(place);
    SampleOptions o = options;
    o.variant = variant;
    EXPECT_EQ(values<int64_t>(sample(repeated(x, kFew), o)), wanted) << variant << " on " << place;
  });
}

TEST(Sample, DrawsWithTheProbabilitiesOfSoftmax) {
  // With 50 classes, 49 degrees of freedom, 1e-4 of all samples lie beyond 95.
  constexpr double kBound = 95;
  constexpr int64_t kDraws = 20000;
  for (const auto& [cols, spread] : {std::pair(50, 1.5f), std::pair(2500, 0.4f)}) {
    std::mt19937 random(7);
    const Tensor row = normal_tensor({cols}, random, 0, spread);
    const SampleOptions options{.temperature = 0.7, .seed = 11};
    const auto draws = values<int64_t>(sample(repeated(row, kDraws), options));
    EXPECT_LT(chi_square(draws, softmax_of(values(row), 0.7), 50), kBound) << cols;
    if (cols == 50) {
      EXPECT_GT(chi_square(draws, softmax_of(values(row), 0.66), 50), kBound)
          << "the bound sees another temperature";
    }
    expect_agreement(row, options, draws);
  }
}

TEST(Sample, OffsetsDrawAnewAndSeedsDrawAnew) {
  std::mt19937 random(3);
  const Tensor row = normal_tensor({64}, random);
  const auto p = softmax_of(values(row), 1);
  Ids by_offset, by_seed;
  for (int64_t i = 0; i < 2000; ++i) {
    by_offset.push_back(values<int64_t>(sample(row, {.seed = 5, .offset = i}))[0]);
    by_seed.push_back(values<int64_t>(sample(row, {.seed = i, .offset = 5}))[0]);
  }
  // With 63 degrees of freedom, 1e-4 of all samples lie beyond 114.
  EXPECT_LT(chi_square(by_offset, p, 64), 114);
  EXPECT_LT(chi_square(by_seed, p, 64), 114);
  EXPECT_NE(by_offset, by_seed);
}

// The indices that stay, in double.
std::set<int64_t> kept(const std::vector<float>& logits, double temperature, int64_t top_k,
                       double top_p, double min_p) {
  const auto p = softmax_of(logits, temperature);
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), int64_t(0));
  std::ranges::stable_sort(order, std::greater<>(), [&](int64_t i) { return logits[size_t(i)]; });
  order.resize(std::min(order.size(), size_t(top_k)));
  double total = 0, up_to = 0;
  for (const int64_t i : order) total += p[size_t(i)];
  std::set<int64_t> all;
  for (const int64_t i : order) {
    if (!all.empty() && up_to >= top_p * total) break;
    up_to += p[size_t(i)];
    all.insert(i);
  }
  std::erase_if(all, [&](int64_t i) { return p[size_t(i)] < min_p * p[size_t(order[0])]; });
  return all;
}

TEST(Sample, DrawsEachOfThoseThatStayAndNoOther) {
  struct Filters {
    int64_t top_k;
    double top_p, min_p;
  };
  const Tensor rows = normal_tensor({3, 90}, DType::bfloat16, 4);
  for (const Filters f : {Filters{90, 1, 0},
                          {5, 1, 0},
                          {90, 0.6, 0},
                          {90, 1, 0.3},
                          {20, 0.8, 0},
                          {30, 0.9, 0.25},
                          {90, 1e-9, 0},
                          {90, 1, 1},
                          {1, 0.5, 0.5}})
    for (int64_t r = 0; r < rows.shape()[0]; ++r) {
      const Tensor row = copy(rows.view().slice(0, r, r + 1).squeeze(0));
      std::vector<float> logits;
      for (const double x : test::doubles(row)) logits.push_back(float(x));
      const auto wanted = kept(logits, 1.2, f.top_k, f.top_p, f.min_p);
      const SampleOptions options{
          .temperature = 1.2, .top_k = f.top_k, .top_p = f.top_p, .min_p = f.min_p, .seed = 1};
      const auto ids = values<int64_t>(sample(repeated(row, 8000), options));
      EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()), wanted)
          << f.top_k << ' ' << f.top_p << ' ' << f.min_p;
      expect_agreement(row, options, ids);
    }
}

TEST(Sample, TheFirstOfEqualsStays) {
  const std::vector<float> numbers = {1, 2, 2, 1, 2, 2};
  each_sample_variant([&](Device place, std::string_view variant) {
    const Tensor x = tensor(numbers, place);
    const auto drawn = [&](const SampleOptions& o) {
      const auto ids = values<int64_t>(sample(repeated(x, 300), o));
      return std::set<int64_t>(ids.begin(), ids.end());
    };
    EXPECT_EQ(drawn({.top_k = 2, .variant = variant}), (std::set<int64_t>{1, 2})) << variant;
    EXPECT_EQ(drawn({.top_p = 0.4, .variant = variant}), (std::set<int64_t>{1, 2})) << variant;
    EXPECT_EQ(drawn({.top_k = 4, .top_p = 0.5, .variant = variant}), (std::set<int64_t>{1, 2}))
        << "half of four equals is two, " << variant;
  });
}

TEST(Sample, OneLogitOrNoTemperatureIsArgmax) {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const Tensor x = normal_tensor({9, 3000}, dtype, 5);  // of bfloat16 many are equal
    const auto wanted = values<int64_t>(argmax(x, {.axis = -1}));
    each_sample_variant([&](Device place, std::string_view variant) {
      const Tensor there = x.to(place);
      EXPECT_EQ(values<int64_t>(sample(there, {.top_k = 1, .seed = 9, .variant = variant})), wanted)
          << variant;
      EXPECT_EQ(values<int64_t>(sample(there, {.temperature = 0, .min_p = 0, .variant = variant})),
                wanted)
          << variant;
    });
    each_sample_variant([&](Device place, std::string_view variant) {
      EXPECT_EQ(values<int64_t>(sample(x.to(place), {.temperature = 0, .variant = variant})),
                wanted)
          << variant;
    });
  }
}

TEST(Sample, WhatHasNoFiniteLargestGivesItsIndex) {
  constexpr float kNaN = NAN, kInf = INFINITY;
  const std::vector<float> numbers = {1,     kNaN,  kInf,  kNaN,   //
                                      -kInf, kInf,  2,     kInf,   //
                                      -kInf, -kInf, -kInf, -kInf,  //
                                      -kInf, -kInf, 7,     -kInf};
  for (const bool filters : {false, true})
    each_sample_variant([&](Device place, std::string_view variant) {
      const Tensor x = Tensor::from(numbers, {4, 4}).to(place);
      SampleOptions o{.variant = variant};
      if (filters) o = {.top_k = 3, .top_p = 0.9, .min_p = 0.1, .variant = variant};
      for (int64_t seed = 0; seed < 20; ++seed) {
        o.seed = seed;
        EXPECT_EQ(values<int64_t>(sample(x, o)), (Ids{1, 1, 0, 2})) << variant << filters;
      }
    });
}

TEST(Sample, EachRowHasItsOwnSettings) {
  const Tensor x = normal_tensor({6, 2100}, DType::float32, 6);
  const std::vector<float> temperatures = {1, 0.5f, 0, 2, 1, 0.25f},
                           top_ps = {1, 0.5f, 1, 0.9f, 2, 0}, min_ps = {0, 0, 0.1f, 0.02f, -1, 0};
  const std::vector<int32_t> top_ks = {0, 3, 9, 100, 5000, 7}, offsets = {4, 1, 5, 9, 2, 6};
  const std::vector<int64_t> seeds = {int64_t(1) << 40, -3, 3, 0, 77, 5};
  Ids wanted;
  for (size_t r = 0; r < 6; ++r) {
    SampleOptions o{.temperature = temperatures[r], .seed = seeds[r], .offset = offsets[r]};
    if (top_ks[r] > 0) o.top_k = top_ks[r];
    if (top_ps[r] < 1) o.top_p = std::max(top_ps[r], 1e-30f);
    if (min_ps[r] > 0) o.min_p = min_ps[r];
    wanted.push_back(
        values<int64_t>(sample(copy(x.view().slice(0, int64_t(r), int64_t(r) + 1)), o))[0]);
  }
  each_sample_variant([&](Device place, std::string_view variant) {
    const Tensor t = tensor(temperatures, place), k = tensor(top_ks, place),
                 p = tensor(top_ps, place), m = tensor(min_ps, place), s = tensor(seeds, place),
                 o = tensor(offsets, place);
    EXPECT_EQ(values<int64_t>(sample(x.to(place), {.temperature = t,
                                                   .top_k = k,
                                                   .top_p = p,
                                                   .min_p = m,
                                                   .seed = s,
                                                   .offset = o,
                                                   .variant = variant})),
              wanted)
        << variant;
  });
}

TEST(Sample, ANumberAndATensorOfItAreTheSame) {
  const Tensor x = normal_tensor({4, 300}, DType::float32, 8);
  const auto wanted = values<int64_t>(sample(x, {.temperature = 0.75, .seed = 21, .offset = 34}));
  each_sample_variant([&](Device place, std::string_view variant) {
    const Tensor t = Tensor::from(std::vector<float>{0.75f}, {}).to(place),
                 s = Tensor::from(std::vector<int64_t>{21}, {}).to(place),
                 o = Tensor::from(std::vector<int32_t>{34}, {}).to(place);
    EXPECT_EQ(values<int64_t>(sample(
                  x.to(place), {.temperature = t, .seed = s, .offset = o, .variant = variant})),
              wanted)
        << variant;
  });
}

// With a seed of its own a request draws the same in any row of any batch; a seed of the batch
// makes rows of equal logits draw apart.
TEST(Sample, WhatElseIsInTheBatchChangesNothing) {
  const Tensor x = normal_tensor({40, 5000}, DType::float32, 9);
  std::vector<int64_t> seeds(40);
  std::iota(seeds.begin(), seeds.end(), int64_t(100));
  for (const bool filters : {false, true})
    each_sample_variant([&](Device place, std::string_view variant) {
      if (variant == "reference" || (filters && variant == "naive")) return;  // they are slow
      const Tensor there = x.to(place), all_seeds = tensor(seeds, place);
      const auto draw = [&](int64_t first, int64_t end, std::string_view by) {
        const TensorView s = all_seeds.view().slice(0, first, end);
        SampleOptions o{.seed = s, .variant = by};
        if (filters) o.top_p = 0.9;
        return values<int64_t>(sample(there.view().slice(0, first, end), o));
      };
      const auto whole = draw(0, 40, variant);
      for (const int64_t size : {1, 3, 17})
        for (int64_t first = 0; first + size <= 40; first += 13) {
          const auto part = draw(first, first + size, variant);
          EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first)) << variant;
          EXPECT_EQ(part, draw(first, first + size, {})) << variant;
        }
    });
}

TEST(Sample, LongRowsAreTheSameEverywhere) {
  for (const int64_t cols : {49152, 151936}) {
    const Tensor x = normal_tensor({2, cols}, DType::bfloat16, unsigned(cols));
    for (const SampleOptions& o : {SampleOptions{.seed = 2},
                                   {.temperature = 0.9, .top_k = 5000, .top_p = 0.95},
                                   {.top_p = 1 - 0x1p-24, .seed = 3},
                                   {.temperature = 0.1, .top_p = 0.99, .min_p = 0.01}}) {
      const auto wanted = values<int64_t>(sample(x, [&] {
        SampleOptions by = o;
        by.variant = "reference";
        return by;
      }()));
      for (const Device place : test::places())
        EXPECT_EQ(values<int64_t>(sample(x.to(place), o)), wanted) << place << ' ' << cols;
    }
  }
}

TEST(Sample, TakesNumbersOfARow) {
  const Tensor x = normal_tensor({7}, DType::float32, 1);
  EXPECT_EQ(sample(x).shape(), Dims{});
  const Tensor none(DType::float32, {0, 5});
  EXPECT_EQ(sample(none).shape(), (Dims{0}));
}

TEST(Sample, RefusesWhatIsOutOfRange) {
  const Tensor x(DType::float32, {2, 3}), number(DType::float32, {}), empty(DType::float32, {2, 0});
  const auto refuses = [&](ErrorKind kind, const SampleOptions& o, const std::string& text) {
    expect_error(kind, [&] { sample(x, o); }, "sample: " + text);
  };
  refuses(ErrorKind::value, {.temperature = -1},
          "temperature must be a finite number, at least 0, got -1");
  refuses(ErrorKind::value, {.temperature = INFINITY},
          "temperature must be a finite number, at least 0, got inf");
  refuses(ErrorKind::value, {.top_k = 0},
          "top_k must be at least 1; leave it out to keep all, got 0");
  refuses(ErrorKind::type, {.top_k = 2.5},
          "top_k must be a whole number or a tensor of int32 or int64, got 2.5");
  refuses(ErrorKind::value, {.top_p = 0},
          "top_p must be above 0 and at most 1; leave it out to keep all, got 0");
  refuses(ErrorKind::value, {.top_p = NAN},
          "top_p must be above 0 and at most 1; leave it out to keep all, got nan");
  refuses(ErrorKind::value, {.min_p = 1.5}, "min_p must be from 0 to 1, got 1.5");
  refuses(ErrorKind::type, {.seed = 0.5},
          "seed must be a whole number or a tensor of int32 or int64, got 0.5");
  refuses(ErrorKind::type, {.temperature = {}}, "temperature must be a number or a tensor");
  const Tensor three(DType::float32, {3});
  refuses(ErrorKind::value, {.temperature = three},
          "temperature: expected a number, or a tensor of shape () or [2], one for each row of "
          "logits, got shape [3]");
  refuses(
      ErrorKind::type, {.offset = three},
      "offset: Dtype value [float32] not in the allowed options: [int32, int64]; tc.astype(offset, "
      "tc.int32) converts it");
  expect_error(
      ErrorKind::value, [&] { sample(number); },
      "sample: logits: expected (..., vocabulary), got a single number");
  expect_error(
      ErrorKind::value, [&] { sample(empty); },
      "sample: logits: the last axis of shape [2, 0] must have at least one element: of none there "
      "is nothing to draw");
}

}  // namespace
}  // namespace tensorcraft
