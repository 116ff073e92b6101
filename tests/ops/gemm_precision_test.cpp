// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/gemm/gemm.hpp"
#include "tensorcraft/ops/gemm/groups/grouped_gemm.hpp"
#include "tensorcraft/ops/gemm/params.h"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

// float32 products in tf32 and in three products of tf32 parts, and operands that are packed for
// the copy engine: bounds of errors against double, who is chosen when, and what is launched.
namespace tensorcraft {
namespace {

std::vector<Device> devices_with_wgmma() {
  std::vector<Device> found;
  for (const Device device : devices())
    if (device == Device::simt() ||
        (device.is_cuda() && device_info(device).compute_capability == 90))
      found.push_back(device);
  return found;
}

struct Data {
  const char* name;
  std::function<double(std::mt19937&)> value;
};
double cancelling(std::mt19937& random) {
  std::uniform_real_distribution<double> fraction(0, 1);
  // Just below the middle between two neighbours of tf32, with either sign: all that is lost
  // counts.
  return (1 + 0x1p-11 - 0x1p-20 * fraction(random)) * (random() % 2 ? 1 : -1);
}
const Data kData[] = {
    {"random", [](std::mt19937& r) { return std::normal_distribution<double>()(r); }},
    {"positive", [](std::mt19937& r) { return std::uniform_real_distribution<double>(1, 2)(r); }},
    {"cancelling", cancelling},
    // Half just below the next number of tf32: cut off they are off by twice as much as rounded.
    {"next",
     [](std::mt19937& r) {
       const double fraction = std::uniform_real_distribution<double>(0, 0x1p-20)(r);
       return 1 + (r() % 2 ? 0x1p-10 : 0x1p-11) - fraction;
     }},
    {"wide",
     [](std::mt19937& r) { return std::ldexp(1 + r() % 8191 * 0x1p-13, int(r() % 40) - 20); }},
};

Tensor filled(const Dims& shape, const Data& data, unsigned seed, DType dtype = DType::float32) {
  Tensor host(dtype, shape);
  std::mt19937 random(seed);
  const host::Elements elements(host.view());
  for (int64_t i = 0; i < host.size(); ++i) elements.set(i, data.value(random));
  return host;
}

// The largest error of a product of [m, k] by [k, n], as a part of the sum of magnitudes.
double worst_error(const TensorView& got, const TensorView& a, const TensorView& b) {
  const host::Elements d(got), x(a), y(b);
  const int64_t m = a.shape(0), k = a.shape(1), n = b.shape(1);
  double worst = 0;
  for (int64_t row = 0; row < m; ++row)
    for (int64_t col = 0; col < n; ++col) {
      double sum = 0, magnitudes = 0;
      for (int64_t i = 0; i < k; ++i) {
        const double product = x[row * k + i] * y[i * n + col];
        sum += product;
        magnitudes += std::abs(product);
      }
      worst = std::max(worst, std::abs(d[row * n + col] - sum) / magnitudes);
    }
  return worst;
}

// `parts` of the sum of magnitudes, and float32 sums of steps of 8 along k, which may be truncated.
double bound(double parts, int64_t k, int products) {
  return parts + 0x1p-24 + 2 * 0x1p-23 * double(products * div_ceil(k, int64_t(8)));
}

TEST(GemmPrecision, HoldsItsBoundOnEveryKindOfData) {
  const int64_t m = 36, n = 72;
  for (const Device device : devices_with_wgmma())
    for (const Data& data : kData)
      for (const int64_t k : {4, 68, 200}) {
        const Tensor a = filled({m, k}, data, 1), bt = filled({n, k}, data, 2);
        const TensorView b = bt.view().transpose(0, 1);
        const Tensor x = a.to(device), y = bt.to(device);
        const auto error = [&](Precision precision, std::string_view variant) {
          GemmOptions options{.transpose_b = true};
          options.precision = precision;
          options.variant = variant;
          return worst_error(gemm(x, y, options).to(Device::cpu()), a, b);
        };
        const double rounded = error(Precision::tf32, "persistent_tf32");
        EXPECT_LE(rounded, bound(0x1p-10, k, 1)) << data.name << " " << k << " on " << device;
        const double split = error(Precision::three_tf32, "persistent_3xtf32");
        EXPECT_LE(split, bound(0x1p-20, k, 3)) << data.name << " " << k << " on " << device;
        // The test would see a part that is missing.
        EXPECT_GT(rounded, 8 * split) << data.name << " " << k << " on " << device;
      }
}

TEST(GemmPrecision, KeepsTheLargestNumbersFinite) {
  const float most = std::numeric_limits<float>::max();
  const Data largest{"largest", [&](std::mt19937&) { return most; }};
  const Data half{"half", [](std::mt19937&) { return 0.5; }};
  for (const Device device : devices_with_wgmma()) {
    const Tensor a = filled({36, 1}, largest, 1).to(device),
                 b = filled({72, 1}, half, 1).to(device);
    GemmOptions options{.transpose_b = true};
    options.precision = Precision::three_tf32;
    options.variant = "persistent_3xtf32";
    const Tensor d = gemm(a, b, options).to(Device::cpu());
    for (int64_t i = 0; i < d.size(); ++i)
      ASSERT_NEAR(d.data_as<float>()[i], most / 2, most * 0x1p-21) << device;
  }
}

// Rows of a with one number that is not 0 in each, by columns of 1 and, in the second, of
// 1 + 0x1.8p-11, whose rest behind its tf32 is negative; and what comes out.
constexpr float kExtremes[] = {
    std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), NAN,
    std::numeric_limits<float>::max(), -std::numeric_limits<float>::max()};
std::pair<Tensor, Tensor> extreme_operands(int64_t m, int64_t n, int64_t k, bool transposed) {
  Tensor a(DType::float32, {m, k}), b(DType::float32, transposed ? Dims{n, k} : Dims{k, n});
  const host::Elements x(a.view()), y(b.view());
  for (int64_t i = 0; i < a.size(); ++i) x.set(i, 0);
  for (int64_t i = 0; i < b.size(); ++i) y.set(i, 1);
  for (int64_t i = 0; i < k; ++i) y.set(transposed ? k + i : i * n + 1, 1 + 0x1.8p-11);
  for (int64_t i = 0; i < 5; ++i) x.set(i * k + 3, double(kExtremes[i]));
  return {std::move(a), std::move(b)};
}
void expect_extremes(const Tensor& got, bool keeps_largest, const std::string& what) {
  const int64_t n = got.shape(got.rank() - 1);
  const float* d = got.data_as<float>();
  for (int64_t i = 0; i < 5; ++i) {
    const float expected = kExtremes[i];
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(d[i * n]) && std::isnan(d[i * n + 1])) << what;
    } else if (std::isinf(expected)) {
      EXPECT_EQ(d[i * n], expected) << what;
      EXPECT_EQ(d[i * n + 1], expected) << what;
    } else if (keeps_largest) {
      EXPECT_NEAR(d[i * n], expected, std::abs(double(expected)) * 0x1p-10) << what;
    }
  }
  for (int64_t i = 5 * n; i < got.size(); ++i) ASSERT_EQ(d[i], 0) << what;
}

// Every variant that rounds. Where the copy engine rounds operands as they lie in memory, the
// largest numbers become infinite.
TEST(GemmPrecision, InfinitiesNanAndTheLargestNumbersSurviveTf32) {
  std::set<std::string_view> tried;
  for (const Device device : devices()) {
    if (device == Device::cpu()) continue;
    for (const auto& v : find_operator("gemm").description().variants)
      for (const bool transposed : {true, false})
        for (const int64_t k : {64, 37}) {
          if (!v.name.ends_with("tf32")) continue;
          const auto [a, b] = extreme_operands(64, 128, k, transposed);
          GemmOptions options{.transpose_b = transposed};
          options.precision = v.name.ends_with("3xtf32") ? Precision::three_tf32 : Precision::tf32;
          options.variant = v.name;
          try {
            const Tensor got = gemm(a.to(device), b.to(device), options).to(Device::cpu());
            expect_extremes(got, v.name != "persistent_tf32" && v.name != "packed_tf32",
                            join(v.name, " on ", device, ", k = ", k));
            tried.insert(v.name);
          } catch (const Error& e) {
            EXPECT_EQ(e.kind(), ErrorKind::unsupported) << e.what();
          }
        }
  }
  if (std::ranges::count(devices(), Device::simt())) {
    EXPECT_EQ(tried.size(), 5u);
  }
}

TEST(GemmPrecision, TheSameInGroups) {
  const auto [a, b] = extreme_operands(64, 128, 64, true);
  const Tensor offsets = test::integers({0, 64});
  std::set<std::string_view> tried;
  for (const Device device : devices()) {
    if (device == Device::cpu()) continue;
    for (const auto& v : find_operator("grouped_gemm").description().variants) {
      if (!v.name.ends_with("tf32")) continue;
      const Tensor there = offsets.to(device), matrices = b.to(device);
      GroupedGemmOptions options{.offsets = there.view(), .transpose_b = true, .allow_tf32 = true};
      options.variant = v.name;
      try {
        const TensorView y = matrices.view().reshape({1, 128, 64});
        const Tensor got = grouped_gemm(a.to(device), y, options).to(Device::cpu());
        expect_extremes(got, v.name != "persistent_tf32", join(v.name, " on ", device));
        tried.insert(v.name);
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::unsupported) << e.what();
      }
    }
  }
  if (std::ranges::count(devices(), Device::simt())) {
    EXPECT_EQ(tried.size(), 3u);
  }
}

// Operands that are copied for the copy engine are rounded as they are copied.
TEST(GemmPrecision, ACopyKeepsTheLargestNumbersOfTf32) {
  for (const Device device : devices_with_wgmma()) {
    Tensor a(DType::float32, {64, 37}), b(DType::float32, {128, 37});
    const host::Elements x(a.view()), y(b.view());
    for (int64_t i = 0; i < a.size(); ++i) x.set(i, i % 37 ? 0 : double(kExtremes[3 + i / 37 % 2]));
    for (int64_t i = 0; i < b.size(); ++i) y.set(i, 1);
    GemmOptions options{.transpose_b = true};
    options.precision = Precision::tf32;
    options.variant = "packed_tf32";
    const Tensor d = gemm(a.to(device), b.to(device), options).to(Device::cpu());
    for (int64_t i = 0; i < d.size(); ++i)
      ASSERT_NEAR(d.data_as<float>()[i], kExtremes[3 + i / 128 % 2], double(kExtremes[3]) * 0x1p-10)
          << device;
  }
}

TEST(GemmPrecision, InfinitiesMeetEachOtherInThreeProducts) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const Device device : devices_with_wgmma()) {
    Tensor a(DType::float32, {36, 4}), b(DType::float32, {72, 4});
    const host::Elements x(a.view()), y(b.view());
    for (int64_t i = 0; i < a.size(); ++i) x.set(i, 0);
    for (int64_t i = 0; i < b.size(); ++i) y.set(i, 0);
    x.set(0, double(kInfinity));
    y.set(0, -double(kInfinity));
    y.set(4, -0x1p-100);
    GemmOptions options{.transpose_b = true};
    options.precision = Precision::three_tf32;
    options.variant = "persistent_3xtf32";
    const Tensor d = gemm(a.to(device), b.to(device), options).to(Device::cpu());
    EXPECT_EQ(d.data_as<float>()[0], -kInfinity) << device;
    EXPECT_EQ(d.data_as<float>()[1], -kInfinity) << device;
    EXPECT_TRUE(std::isnan(d.data_as<float>()[2])) << device << ": infinity times 0";
  }
}

// Row by row of 16 x 16, and the largest errors that the documents of a rung on tf32 have of it.
TEST(GemmPrecision, ErrorsOf16By16AreThoseOfTheTableOfTf32) {
  constexpr std::pair<int64_t, double> kTable[] = {{8, .0055},  {16, .0089},  {32, .0094},
                                                   {64, .0205}, {128, .0247}, {256, .0373}};
  for (const Device device : devices())
    for (const auto& [k, largest] : kTable) {
      if (device == Device::cpu()) continue;  // its products are never rounded to tf32
      double worst = 0;
      for (unsigned seed = 1; seed < 5; ++seed) {
        const Tensor a = filled({16, k}, kData[0], seed), b = filled({k, 16}, kData[0], seed + 9);
        GemmOptions options{.allow_tf32 = true};
        options.variant = "tensor_core_tf32";
        const Tensor got = gemm(a.to(device), b.to(device), options).to(Device::cpu());
        const host::Elements d(got.view()), x(a.view()), y(b.view());
        for (int64_t row = 0; row < 16; ++row)
          for (int64_t col = 0; col < 16; ++col) {
            double sum = 0;
            for (int64_t i = 0; i < k; ++i) sum += x[row * k + i] * y[i * 16 + col];
            worst = std::max(worst, std::abs(d[row * 16 + col] - sum));
          }
      }
      EXPECT_LT(worst, 2 * largest) << k << " on " << device;
      EXPECT_GT(worst, largest / 8) << k << " on " << device << ": nothing was rounded";
    }
}

// Operands of every layout and address, a batch with two axes, and calls that repeat with other
// memory: the copies are new in each.
TEST(GemmPrecision, PacksWhatTheCopyEngineCannotWalk) {
  const Data integers{"integers", [](std::mt19937& r) { return double(r() % 5) - 2; }};
  const int64_t m = 36, n = 72, k = 37;
  for (const Device device : devices_with_wgmma())
    for (const DType dtype : {DType::bfloat16, DType::float32})
      for (const bool ta : {false, true})
        for (const bool tb : {false, true})
          for (unsigned seed = 1; seed < 4; ++seed) {
            const Tensor a =
                filled(ta ? Dims{2, 1, k, m} : Dims{2, 1, m, k}, integers, seed, dtype);
            const Tensor b = filled(tb ? Dims{3, n, k} : Dims{3, k, n}, integers, seed + 9, dtype);
            GemmOptions options{.transpose_a = ta, .transpose_b = tb};
            options.out_dtype = DType::float32;
            const Tensor want = gemm(a, b, options);
            if (dtype == DType::float32) options.precision = Precision::tf32;
            options.variant = device == Device::simt()  ? ""
                              : dtype == DType::float32 ? "packed_tf32"
                                                        : "packed";
            const Tensor got = gemm(a.to(device), b.to(device), options).to(Device::cpu());
            for (int64_t i = 0; i < want.size(); ++i)
              ASSERT_EQ(got.data_as<float>()[i], want.data_as<float>()[i])
                  << dtype << ta << tb << " at " << i << " on " << device;
          }
}

std::string refusal_of(ErrorKind kind, const GemmOptions& options, DType dtype) {
  const Tensor a(dtype, {8, 8});
  try {
    gemm(a, a, options);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind);
    return e.what();
  }
  return "nothing was thrown";
}

TEST(GemmPrecision, RefusesContradictionsAndNarrowOperands) {
  GemmOptions options{.allow_tf32 = false};
  options.precision = Precision::tf32;
  EXPECT_EQ(refusal_of(ErrorKind::value, options, DType::float32),
            "gemm: allow_tf32 is False and precision is tf32; give one of them");
  options = {.allow_tf32 = true};
  options.precision = Precision::three_tf32;
  EXPECT_EQ(refusal_of(ErrorKind::value, options, DType::float32),
            "gemm: allow_tf32 is True and precision is 3xtf32; give one of them");
  options.allow_tf32.reset();
  EXPECT_EQ(refusal_of(ErrorKind::type, options, DType::bfloat16),
            "gemm: precision: \"3xtf32\" takes float32 operands, and a is bfloat16; leave "
            "precision out, or convert a and b with astype");
  EXPECT_EQ(refusal_of(ErrorKind::value, options, DType::float32), "nothing was thrown");
  options = {.allow_tf32 = true};
  options.precision = Precision::tf32;
  EXPECT_EQ(refusal_of(ErrorKind::value, options, DType::float32), "nothing was thrown");
  EXPECT_EQ(refusal_of(ErrorKind::value, options, DType::float16), "nothing was thrown");
}

op::Explanation explained(const char* arch, DType dtype, const TensorView& a, const TensorView& b,
                          std::string_view precision) {
  const Dims d{a.shape(0), b.shape(1)};
  const std::vector<TensorView> inputs{a, b};
  const std::vector<TensorView> outputs{{reinterpret_cast<void*>(uintptr_t(1) << 46), dtype, d}};
  const op::Operator& op = find_operator("gemm");
  const auto& options = op.description().options;
  std::vector<op::Value> values(options.size());
  for (size_t i = 0; i < options.size(); ++i)
    if (options[i].name == "precision") values[i] = precision;
  return op.explain(outputs, {inputs, values}, device_info_of_arch(arch));
}
op::Explanation explained(const char* arch, DType dtype, int64_t m, int64_t n, int64_t k,
                          bool transpose_b, std::string_view precision = "default") {
  alignas(16) static std::byte memory[16];
  const TensorView a(memory, dtype, Dims{m, k});
  const TensorView b(memory, dtype, transpose_b ? Dims{n, k} : Dims{k, n});
  return explained(arch, dtype, a, transpose_b ? b.transpose(0, 1) : b, precision);
}
const op::Considered& variant_row(const op::Explanation& e, std::string_view variant) {
  return *std::ranges::find(e.variants, variant, [](const auto& v) { return v.variant.name; });
}

TEST(GemmPrecision, ChoosesByLayoutAndSize) {
  const auto f32 = [](const char* arch, int64_t size, bool transpose_b,
                      std::string_view precision) {
    return explained(arch, DType::float32, size, size, size, transpose_b, precision).variant;
  };
  EXPECT_EQ(f32("sm_90a", 4096, true, "tf32"), "persistent_tf32");
  EXPECT_EQ(f32("sm_90a", 4096, false, "tf32"), "persistent_tf32");
  EXPECT_EQ(f32("sm_90a", 4096, true, "3xtf32"), "persistent_3xtf32");
  EXPECT_EQ(f32("sm_90a", 256, true, "3xtf32"), "async");
  EXPECT_EQ(f32("sm_90a", 4096, true, "default"), "async");
  EXPECT_EQ(f32("sm_80", 4096, true, "default"), "async");
  for (const char* arch : {"sm_80", "sm_100a"}) {
    EXPECT_EQ(f32(arch, 4096, true, "tf32"), "swizzled_tf32");
    EXPECT_EQ(f32(arch, 4096, true, "3xtf32"), "async");
  }
  EXPECT_EQ(explained("sm_90a", DType::bfloat16, 333, 4097, 1023, false).variant, "packed");
  EXPECT_EQ(explained("sm_90a", DType::bfloat16, 4096, 4096, 4096, false).variant, "persistent");
  const auto small = explained("sm_90a", DType::bfloat16, 65, 63, 61, false);
  EXPECT_EQ(small.variant, "tensor_core");
  EXPECT_EQ(variant_row(small, "packed").reason,
            "copies of a or b would take longer than they save");
}

TEST(GemmPrecision, SaysWhyARungDeclines) {
  const auto nn = explained("sm_90a", DType::float32, 512, 512, 512, false, "tf32");
  EXPECT_EQ(variant_row(nn, "persistent_tf32").reason, "");
  EXPECT_EQ(variant_row(nn, "persistent_3xtf32").reason,
            "takes float32 operands with precision 3xtf32");
  const auto nt = explained("sm_90a", DType::float32, 512, 512, 512, true, "tf32");
  EXPECT_EQ(variant_row(nt, "packed_tf32").reason, "the copy engine takes a and b as they are");
  EXPECT_EQ(variant_row(nt, "packed").reason,
            "takes 16-bit operands; for float32 there are the tf32 variants");
  const auto plain = explained("sm_90a", DType::float32, 512, 512, 512, false);
  EXPECT_EQ(variant_row(plain, "packed_tf32").reason,
            "float32 would be rounded to tf32, which allow_tf32 is not set for");
  EXPECT_EQ(variant_row(explained("sm_80", DType::bfloat16, 63, 63, 63, false), "packed").reason,
            "needs sm_90");
}

// Only what needs it is copied, and the last kernel is the product.
TEST(GemmPrecision, PlansACopyForEachOperandThatNeedsOne) {
  const auto plan = [](const op::Explanation& e, std::string_view variant) {
    return *variant_row(e, variant).plan;
  };
  const auto names = [](const op::Plan& p) {
    std::string all;
    for (const op::Step& s : p.steps()) all += s.kernel.rung->name + " ";
    return all;
  };
  const op::Plan nn =
      plan(explained("sm_90a", DType::float32, 512, 512, 300, false, "tf32"), "packed_tf32");
  EXPECT_EQ(names(nn), "pack persistent_tf32 ");
  EXPECT_EQ(nn.workspace_bytes, 512u * 300 * 4);
  EXPECT_EQ(nn.main().kernel.rung->name, "persistent_tf32");
  EXPECT_EQ(nn.main().workspace_maps[0].at, -1);
  EXPECT_GE(nn.main().workspace_maps[1].at, 0);
  const op::Considered tn = variant_row(
      [] {
        alignas(16) static std::byte memory[16];
        const TensorView at(memory, DType::float32, Dims{300, 512}),
            b(memory, DType::float32, {300, 256});
        return explained("sm_90a", DType::float32, at.transpose(0, 1), b, "tf32");
      }(),
      "packed_tf32");
  EXPECT_EQ(names(*tn.plan), "pack persistent_tf32 ") << "a comes in registers";
  EXPECT_EQ(tn.plan->workspace_bytes, 256u * 300 * 4);
  const op::Plan split =
      plan(explained("sm_90a", DType::float32, 64, 32, 33, true, "3xtf32"), "persistent_3xtf32");
  EXPECT_EQ(names(split), "pack pack persistent_3xtf32 ");
  EXPECT_EQ(split.workspace_bytes, (64u + 32) * 2 * 64 * 4);
  EXPECT_EQ(split.main().workspace_maps[1].offset, 64 * 2 * 64 * 4);
  const op::Plan odd = plan(explained("sm_90a", DType::bfloat16, 64, 32, 33, false), "packed");
  EXPECT_EQ(names(odd), "pack persistent ");
}

}  // namespace
}  // namespace tensorcraft
