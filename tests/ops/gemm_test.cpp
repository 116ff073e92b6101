// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/gemm.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

// What the conformance test cannot say: exact messages, C that must not be read, fused against
// sequential, variants against each other, and which variant and tile each architecture gets.
namespace tensorcraft {
namespace {

Device device_under_test() { return cuda_device_count() > 0 ? Device::cuda(0) : Device::cpu(); }

Tensor random_tensor(const Dims& shape, DType dtype = DType::float32, unsigned seed = 1) {
  Tensor host(dtype, shape);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  const host::Elements elements(host.view());
  for (int64_t i = 0; i < host.size(); ++i) elements.set(i, normal(random));
  return host.to(device_under_test());
}

Tensor constant(const Dims& shape, double value, DType dtype = DType::float32) {
  Tensor host(dtype, shape);
  const host::Elements elements(host.view());
  for (int64_t i = 0; i < host.size(); ++i) elements.set(i, value);
  return host.to(device_under_test());
}

std::vector<double> values(const Tensor& t) {
  const Tensor host = t.to(Device::cpu());
  const host::Elements elements(host.view());
  std::vector<double> all;
  for (int64_t i = 0; i < host.size(); ++i) all.push_back(elements[i]);
  return all;
}

void expect_close(const Tensor& x, const Tensor& y, double relative, double absolute) {
  const auto got = values(x), want = values(y);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_LE(std::abs(got[i] - want[i]), absolute + relative * std::abs(want[i])) << "at " << i;
}

template <class F>
std::string message_of(ErrorKind kind, F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  return "nothing was thrown";
}

op::Explanation explain_on(const char* arch, DType dtype, const Dims& a, const Dims& b,
                           const Dims& d) {
  alignas(16) static std::byte memory[16];
  const std::vector<TensorView> inputs{{memory, dtype, a}, {memory, dtype, b}};
  // Explaining reads no memory, so the output may lie anywhere apart.
  const std::vector<TensorView> outputs{{reinterpret_cast<void*>(uintptr_t(1) << 46), dtype, d}};
  return find_operator("gemm").explain(outputs, {inputs, {}}, device_info_of_arch(arch));
}

TEST(Gemm, NeverReadsCWhereBetaIsZero) {
  const Tensor a = random_tensor({33, 40}), b = random_tensor({40, 24}, DType::float32, 2);
  const Tensor nan = constant({33, 24}, std::numeric_limits<double>::quiet_NaN());
  const Tensor plain = gemm(a, b);
  for (const char* variant : {"", "naive", "coalesced", "block_tiled", "thread_tiled", "vectorized",
                              "onednn", "cpu", "reference"}) {
    try {
      EXPECT_EQ(values(gemm(a, b, {.c = nan, .beta = 0, .variant = variant})),
                values(gemm(a, b, {.variant = variant})))
          << variant;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::unsupported) << e.what();
    }
  }
  for (const double x : values(gemm(a, b, {.c = nan}))) EXPECT_TRUE(std::isnan(x));
}

TEST(Gemm, ReadsCOnceWithBetaOneWhenNoBetaIsGiven) {
  const Tensor a = constant({3, 2}, 1), b = constant({2, 4}, 1), c = constant({3, 4}, 10);
  for (const double x : values(gemm(a, b, {.c = c}))) EXPECT_EQ(x, 12);
  for (const double x : values(gemm(a, b, {.c = c, .beta = -1}))) EXPECT_EQ(x, -8);
}

TEST(Gemm, FusedEqualsSequential) {
  const DType dtype = DType::float32;
  const Tensor a = random_tensor({33, 40}), b = random_tensor({40, 24}, dtype, 2);
  const Tensor c = random_tensor({33, 24}, dtype, 3), bias = random_tensor({24}, dtype, 4);
  const Tensor one = constant({33, 1}, 1), identity = [] {
    Tensor host(DType::float32, {24, 24});
    const host::Elements elements(host.view());
    for (int64_t i = 0; i < host.size(); ++i) elements.set(i, i % 25 == 0);
    return host.to(device_under_test());
  }();
  const Tensor product = gemm(a, b, {.alpha = 0.5f});
  const Tensor with_bias = gemm(one, bias.view().reshape({1, 24}), {.c = product});
  expect_close(gemm(a, b, {.alpha = 0.5f, .bias = bias}), with_bias, 1e-5, 1e-5);
  for (const Activation activation :
       {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
    const Tensor sequential = gemm(with_bias, identity, {.c = c, .activation = activation});
    const Tensor fused =
        gemm(a, b, {.c = c, .alpha = 0.5f, .bias = bias, .activation = activation});
    expect_close(fused, sequential, 1e-5, 1e-5);
  }
}

TEST(Gemm, AllPairsOfVariantsAgree) {
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    const Tensor a = random_tensor({65, 96}, dtype), b = random_tensor({96, 72}, dtype, 2);
    Tensor out(dtype, {65, 72}, device_under_test());
    std::vector<Tensor> results;
    const std::vector<TensorView> inputs{a, b}, outputs{out};
    const op::Operator& op = find_operator("gemm");
    for (const auto& row :
         op.explain(outputs, {inputs, {}}, device_info(device_under_test())).variants)
      if (row.accepted) results.push_back(gemm(a, b, {.variant = row.variant.name}));
    ASSERT_GE(results.size(), 2u);
    const bool wide = dtype == DType::float32;
    for (const Tensor& x : results)
      for (const Tensor& y : results) expect_close(x, y, wide ? 1e-3 : 1e-2, wide ? 1e-5 : 1e-3);
  }
}

// Sums of small integers are exact in any order, so one wrong index in a large tile shows. The
// sizes make a GPU with 132 multiprocessors pick each tile of tensor_core and of the float rungs.
TEST(GemmOnGpu, EveryTileGivesExactIntegers) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    for (const int64_t size : {120, 1000, 1400, 1500}) {
      const auto integers = [&](const Dims& shape, int64_t period) {
        Tensor host(dtype, shape);
        const host::Elements elements(host.view());
        for (int64_t i = 0; i < host.size(); ++i) elements.set(i, double(i % period % 5 - 2));
        return host.to(device_under_test());
      };
      const Tensor a = integers({size, 72}, 7919), b = integers({72, size}, 6151);
      const DType wide = DType::float32;
      const auto expected = values(gemm(a, b, {.out_dtype = wide, .variant = "naive"}));
      for (const char* variant : {"block_tiled", "thread_tiled", "vectorized", ""})
        EXPECT_EQ(values(gemm(a, b, {.out_dtype = wide, .variant = variant})), expected)
            << variant << " " << dtype << " " << size;
    }
  }
}

TEST(Gemm, IsBitwiseRepeatable) {
  const Tensor a = random_tensor({70, 130}), b = random_tensor({130, 50}, DType::float32, 2);
  const auto first = values(gemm(a, b));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(values(gemm(a, b)), first);
}

TEST(Gemm, NamesTheArgumentThatDoesNotFit) {
  const Tensor a = random_tensor({5, 64}), b = random_tensor({63, 7});
  EXPECT_EQ(message_of(ErrorKind::value, [&] { gemm(a, b); }),
            "gemm: b: Size mismatch for shape#0('k'): expected 64 but got 63 (k is a.shape[1])");
  const Tensor ids = Tensor(DType::int8, {5, 64}, device_under_test());
  EXPECT_EQ(message_of(ErrorKind::type, [&] { gemm(ids, ids); }),
            "gemm: a: Dtype value [int8] not in the allowed options: [float32, float16, bfloat16]");
  const Tensor row = random_tensor({64});
  EXPECT_EQ(message_of(ErrorKind::value, [&] { gemm(row, a); }),
            "gemm: a must have at least 2 axes, got shape [64]; add one with expand_dims");
  const Tensor p = random_tensor({2, 5, 4}), q = random_tensor({3, 4, 5});
  EXPECT_EQ(
      message_of(ErrorKind::value, [&] { gemm(p, q); }),
      "gemm: the leading axes of a and b do not broadcast: a has shape [2, 5, 4], b [3, 4, 5]");
  const Tensor square = random_tensor({64, 64});
  EXPECT_EQ(message_of(ErrorKind::value, [&] { gemm(a, square, {.beta = 2}); }),
            "gemm: beta is 2 but there is no c to scale; give c");
  EXPECT_EQ(message_of(ErrorKind::type, [&] { gemm(a, square, {.out_dtype = DType::float16}); }),
            "gemm: out_dtype must be float32 (the dtype of a) or float32, got float16");
}

TEST(Gemm, RefusesAnOutputThatOverlapsAnInput) {
  const Tensor a = random_tensor({8, 8}), b = random_tensor({8, 8});
  EXPECT_EQ(message_of(ErrorKind::value, [&] { gemm(a.view(), a, b); }),
            "gemm: out overlaps the memory of a; give it memory of its own");
}

TEST(Gemm, ListsTheVariantsWhenANameIsUnknown) {
  const Tensor a = random_tensor({8, 8});
  EXPECT_EQ(message_of(ErrorKind::value, [&] { gemm(a, a, {.variant = "wgma"}); }),
            "gemm: no variant is named \"wgma\"; there are tensor_core, vectorized, thread_tiled, "
            "block_tiled, coalesced, naive, onednn, cpu, reference");
}

TEST(Gemm, SaysWhyAForcedVariantDeclines) {
  const auto on_ampere = explain_on("sm_80", DType::float32, {64, 64}, {64, 64}, {64, 64});
  EXPECT_EQ(on_ampere.variant, "vectorized");
  EXPECT_EQ(on_ampere.variants[0].reason, "float32 would be rounded to tf32");
}

TEST(Gemm, ChoosesTensorCoresForHalfPrecisionOnEveryArchitecture) {
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"})
    EXPECT_EQ(explain_on(arch, DType::bfloat16, {256, 64}, {64, 256}, {256, 256}).variant,
              "tensor_core")
        << arch;
}

TEST(Gemm, IsFoundAsMatmul) { EXPECT_EQ(&find_operator("matmul"), &find_operator("gemm")); }

TEST(Gemm, TakesBothOperandsInEveryLayout) {
  for (const int64_t size : {1, 7, 33, 64}) {
    const Tensor a = random_tensor({size, size + 3}), b = random_tensor({size + 3, 2 * size});
    const Tensor expected = gemm(a, b);
    for (const MemoryLayout layout : {MemoryLayout::ROW_ROW, MemoryLayout::ROW_COL,
                                      MemoryLayout::COL_ROW, MemoryLayout::COL_COL}) {
      const GemmOptions options = with_layout(layout);
      const Tensor at = copy(a.view().transpose(0, 1)), bt = copy(b.view().transpose(0, 1));
      const Tensor got = gemm(options.transpose_a ? at : a, options.transpose_b ? bt : b, options);
      expect_close(got, expected, 1e-5, 1e-5);
    }
  }
}

TEST(Gemm, SizesStayOutOfTheKernelsKey) {
  const auto small = explain_on("sm_90", DType::bfloat16, {256, 64}, {64, 256}, {256, 256});
  const auto large = explain_on("sm_90", DType::bfloat16, {264, 72}, {72, 264}, {264, 264});
  ASSERT_EQ(small.variants.size(), large.variants.size());
  int planned = 0;
  for (size_t i = 0; i < small.variants.size(); ++i) {
    if (!small.variants[i].plan || !large.variants[i].plan) continue;
    EXPECT_TRUE(small.variants[i].plan->kernel == large.variants[i].plan->kernel)
        << small.variants[i].variant.name;
    ++planned;
  }
  EXPECT_GE(planned, 5);
}

TEST(Gemm, MergesBatchAxesAndNumbersEveryTile) {
  const auto e =
      explain_on("sm_90", DType::float32, {2, 3, 100, 8}, {2, 3, 8, 50}, {2, 3, 100, 50});
  for (const auto& row : e.variants) {
    if (row.variant.name != "naive") continue;
    ASSERT_TRUE(row.plan);
    EXPECT_EQ(row.plan->launch.grid.x, 6u * 4 * 7);  // tiles of 32 x 8
  }
}

}  // namespace
}  // namespace tensorcraft
