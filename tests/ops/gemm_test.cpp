// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/gemm.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/ops/gemm/params.h"
#include "tensorcraft/ops/permute/permute.hpp"
#include "tests/support/gemm_plans.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

// Checks what the conformance test cannot say: exact messages, C that must not be read, fused
// against sequential, variants against each other, and which variant and tile each architecture
// gets.
namespace tensorcraft {
namespace {

using test::doubles;
using test::expect_close;
using test::explain_on, test::row_of;

Device device_under_test() { return cuda_device_count() > 0 ? Device::cuda(0) : Device::cpu(); }

Tensor random_tensor(const Dims& shape, DType dtype = DType::float32, unsigned seed = 1) {
  return test::normal_tensor(shape, dtype, seed).to(device_under_test());
}

Tensor constant(const Dims& shape, double value, DType dtype = DType::float32) {
  Tensor host(dtype, shape);
  const host::Elements elements(host.view());
  for (int64_t i = 0; i < host.size(); ++i) elements.set(i, value);
  return host.to(device_under_test());
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

// Names the variants that accept a product with C at beta = 0.
std::set<std::string_view> variants_with_c(const Tensor& a, const Tensor& b, const Tensor& c) {
  const Tensor out(c.dtype(), c.shape(), c.device());
  const std::vector<TensorView> inputs{a, b}, outputs{out};
  const op::Operator& op = find_operator("gemm");
  const auto& options = op.description().options;
  std::vector<op::Value> values(options.size());
  for (size_t i = 0; i < options.size(); ++i) {
    if (options[i].name == "c") values[i] = c.view();
    if (options[i].name == "beta") values[i] = 0.0;
  }
  std::set<std::string_view> accepted;
  for (const auto& row : op.explain(outputs, {inputs, values}, device_info(a.device())).variants)
    if (row.accepted) accepted.insert(row.variant.name);
  return accepted;
}

// Every variant that accepts, on the CPU and on the other devices that are there.
TEST(Gemm, NeverReadsCWhereBetaIsZero) {
  const Tensor a = random_tensor({33, 40}), b = random_tensor({40, 24}, DType::float32, 2);
  const Tensor c = constant({33, 24}, std::numeric_limits<double>::quiet_NaN());
  for (const Device device : devices()) {
    const Tensor x = a.to(device), y = b.to(device), nan = c.to(device);
    const auto variants = variants_with_c(x, y, nan);
    for (const auto variant : variants)
      EXPECT_EQ(doubles(gemm(x, y, {.c = nan, .beta = 0, .variant = variant})),
                doubles(gemm(x, y, {.variant = variant})))
          << variant << " on " << device;
    const std::set<std::string_view> host{"cpu", "reference"},
        rungs{"naive", "coalesced", "block_tiled", "thread_tiled", "vectorized"};
    for (const auto variant : device == Device::cpu() ? host : rungs)
      EXPECT_TRUE(variants.contains(variant)) << variant << " on " << device;
    for (const double value : doubles(gemm(x, y, {.c = nan}))) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(Gemm, ReadsCOnceWithBetaOneWhenNoBetaIsGiven) {
  const Tensor a = constant({3, 2}, 1), b = constant({2, 4}, 1), c = constant({3, 4}, 10);
  for (const double x : doubles(gemm(a, b, {.c = c}))) EXPECT_EQ(x, 12);
  for (const double x : doubles(gemm(a, b, {.c = c, .beta = -1}))) EXPECT_EQ(x, -8);
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

template <class T>
void fill_with_integers(const Tensor& t, int64_t period) {
  for (int64_t i = 0; i < t.size(); ++i) t.data_as<T>()[i] = T(float(i % period % 5 - 2));
}

// Whether a variant that takes part below runs operands of a dtype.
bool takes(std::string_view variant, DType dtype) {
  if (variant == "thread_tiled" || variant == "vectorized") return true;
  return (variant == "async" || variant.ends_with("tf32")) == (dtype == DType::float32);
}

// Sums of small integers are exact in any order, so one wrong index in a large tile shows. With one
// entry of the batch for each multiprocessor, the tile of an entry's size is chosen; eight less
// than it crosses its edges, and 200 steps along k go round every ring of stages.
class GemmTilesOnGpu : public ::testing::TestWithParam<MemoryLayout> {};
TEST_P(GemmTilesOnGpu, GiveExactIntegers) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const int64_t batch = device_info(device_under_test()).num_sms, k = 200;
  GemmOptions options = with_layout(GetParam(), {.out_dtype = DType::float32});
  const auto integers = [&](int64_t rows, int64_t cols, bool transposed, DType dtype, int64_t p) {
    Tensor host(dtype, transposed ? Dims{batch, cols, rows} : Dims{batch, rows, cols});
    if (dtype == DType::float32) fill_with_integers<float>(host, p);
    if (dtype == DType::float16) fill_with_integers<f16>(host, p);
    if (dtype == DType::bfloat16) fill_with_integers<bf16>(host, p);
    return host.to(device_under_test());
  };
  for (const int64_t m : {24, 56, 120, 256})
    for (const int64_t n : {56, 128, 248})
      for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
        const Tensor a = integers(m, k, options.transpose_a, dtype, 7919);
        const Tensor b = integers(k, n, options.transpose_b, dtype, 6151);
        options.variant = "naive";
        options.allow_tf32 = false;
        const Tensor expected = gemm(a, b, options).to(Device::cpu());
        for (const char* variant : {"thread_tiled", "vectorized", "async", "tensor_core",
                                    "tensor_core_tf32", "swizzled", "swizzled_tf32", "tma"}) {
          const bool has_engine = device_info(device_under_test()).has_tma();
          if (variant == std::string_view("tma") && !has_engine) continue;
          if (!takes(variant, dtype)) continue;
          options.variant = variant;
          options.allow_tf32 = true;
          const Tensor got = gemm(a, b, options).to(Device::cpu());
          EXPECT_EQ(std::memcmp(got.data(), expected.data(), size_t(got.size()) * sizeof(float)), 0)
              << variant << " " << dtype << " " << m << " x " << n;
        }
      }
}
INSTANTIATE_TEST_SUITE_P(Layouts, GemmTilesOnGpu,
                         ::testing::Values(MemoryLayout::ROW_ROW, MemoryLayout::ROW_COL,
                                           MemoryLayout::COL_ROW, MemoryLayout::COL_COL));

double norm_error(const Tensor& got, const Tensor& expected) {
  const auto x = doubles(got), y = doubles(expected);
  double difference = 0, norm = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    difference += (x[i] - y[i]) * (x[i] - y[i]);
    norm += y[i] * y[i];
  }
  return std::sqrt(difference / norm);
}

TEST(GemmOnGpu, RoundsFloatsOnlyWhereTf32IsAllowed) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Tensor a = random_tensor({300, 512}), b = random_tensor({512, 260}, DType::float32, 2);
  const Tensor expected = gemm(a.to(Device::cpu()), b.to(Device::cpu()), {.variant = "reference"});
  EXPECT_LT(norm_error(gemm(a, b), expected), 1e-5);
  for (const char* variant : {"", "swizzled_tf32", "tensor_core_tf32"}) {
    const double error = norm_error(gemm(a, b, {.allow_tf32 = true, .variant = variant}), expected);
    EXPECT_LT(error, 1e-3) << variant;
    EXPECT_GT(error, 1e-5) << variant << " did not round";
  }
}

// A warm call has its plan from an earlier one, with other addresses: also those that the driver
// has encoded into tensor maps.
TEST(GemmOnGpu, RepeatsACallWithOtherMemory) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  for (const std::string_view variant : {"tma", "swizzled", "tensor_core"}) {
    std::vector<Tensor> kept;  // so that each call has memory of its own
    for (unsigned call = 0; call < 4; ++call) {
      kept.push_back(random_tensor({256, 256}, DType::bfloat16, call));
      kept.push_back(random_tensor({256, 256}, DType::bfloat16, call + 100));
      const Tensor &a = kept[2 * call], &b = kept[2 * call + 1];
      expect_close(gemm(a, b, {.variant = variant}), gemm(a, b, {.variant = "naive"}), 0x1p-7,
                   0x1p-7);
    }
  }
}

TEST(Gemm, IsBitwiseRepeatable) {
  const Tensor a = random_tensor({70, 130}), b = random_tensor({130, 50}, DType::float32, 2);
  const auto first = doubles(gemm(a, b));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(doubles(gemm(a, b)), first);
}

TEST(Gemm, NamesTheArgumentThatDoesNotFit) {
  const Tensor a = random_tensor({5, 64}), b = random_tensor({63, 7});
  EXPECT_EQ(message_of(ErrorKind::value, [&] { gemm(a, b); }),
            "gemm: b: Size mismatch for shape#0('k'): expected 64 but got 63 (k is a.shape[1])"
            "; a is [5, 64], b is [63, 7]");
  const Tensor ids = Tensor(DType::int32, {5, 64}, device_under_test());
  EXPECT_EQ(message_of(ErrorKind::type, [&] { gemm(ids, ids); }),
            "gemm: a: Dtype value [int32] not in the allowed options: [float32, float16, bfloat16, "
            "float8_e4m3fn, float8_e5m2, int8]; tc.astype(a, tc.float32) converts it");
  const Tensor row = random_tensor({64});
  EXPECT_EQ(message_of(ErrorKind::value, [&] { gemm(row, a); }),
            "gemm: a: expected at least 2 dimensions, got shape [64]; add one with expand_dims");
  const Tensor p = random_tensor({2, 5, 4}), q = random_tensor({3, 4, 5});
  EXPECT_EQ(
      message_of(ErrorKind::value, [&] { gemm(p, q); }),
      "gemm: a and b: the leading dimensions do not broadcast: a has shape [2, 5, 4], b [3, 4, 5]");
  const Tensor square = random_tensor({64, 64});
  EXPECT_EQ(message_of(ErrorKind::value, [&] { gemm(a, square, {.beta = 2}); }),
            "gemm: beta is 2 but there is no c to scale; give c");
  const Tensor deep = random_tensor({1, 5, 64});
  EXPECT_EQ(message_of(ErrorKind::value, [&] { gemm(a, square, {.c = deep}); }),
            "gemm: c: expected a shape that broadcasts to [5, 64], got [1, 5, 64]");
  EXPECT_EQ(message_of(ErrorKind::type, [&] { gemm(a, square, {.out_dtype = DType::float16}); }),
            "gemm: out_dtype of float32 operands must be float32, float8_e4m3fn, float8_e5m2 or "
            "int8, got float16");
}

TEST(Gemm, RefusesAnOutputThatOverlapsAnInput) {
  const Tensor a = random_tensor({8, 8}), b = random_tensor({8, 8});
  EXPECT_EQ(message_of(ErrorKind::value, [&] { gemm(a.view(), a, b); }),
            "gemm: out overlaps the memory of a; give it memory of its own");
}

TEST(Gemm, ListsTheVariantsWhenANameIsUnknown) {
  const Tensor a = random_tensor({8, 8});
  EXPECT_EQ(
      message_of(ErrorKind::value, [&] { gemm(a, a, {.variant = "wgma"}); }),
      "gemm: no variant is named \"wgma\"; there are persistent, split_k, gemv, persistent_tf32, "
      "packed, packed_tf32, persistent_3xtf32, warp_specialized, wgmma, tma, swizzled, "
      "tensor_core, "
      "swizzled_tf32, tensor_core_tf32, async, vectorized, thread_tiled, block_tiled, coalesced, "
      "naive, "
      "onednn, cpu, reference; did you mean wgmma?");
}

TEST(Gemm, SaysWhyAForcedVariantDeclines) {
  const auto exact = explain_on("sm_80", DType::float32, {64, 64}, {64, 64}, {64, 64});
  for (const char* variant : {"swizzled_tf32", "tensor_core_tf32"})
    EXPECT_EQ(row_of(exact, variant).reason,
              "float32 would be rounded to tf32, which allow_tf32 is not set for");
  for (const char* variant : {"swizzled", "tensor_core"})
    EXPECT_EQ(row_of(exact, variant).reason,
              "takes 16-bit operands; for float32 there are the tf32 variants");
  const auto odd = explain_on("sm_80", DType::bfloat16, {64, 63}, {63, 64}, {64, 64});
  EXPECT_EQ(row_of(odd, "swizzled").reason, "a line of a does not start at a multiple of 16 bytes");
  EXPECT_EQ(row_of(odd, "async").variant.alias, "double_buffer");
  EXPECT_EQ(row_of(odd, "async").reason, "takes float32 operands: a copy in flight cannot convert");
}

// The copy engine takes one batch axis, and strides that go forwards.
TEST(Gemm, SaysWhyTheCopyEngineDeclines) {
  const auto reason = [](const char* arch, const Dims& a, const Dims& b, const Dims& d) {
    return row_of(explain_on(arch, DType::bfloat16, a, b, d), "tma").reason;
  };
  EXPECT_EQ(reason("sm_90", {8192, 64}, {64, 8192}, {8192, 8192}), "");
  EXPECT_EQ(reason("sm_90", {3, 4096, 64}, {64, 4096}, {3, 4096, 4096}), "");
  EXPECT_EQ(reason("sm_89", {64, 64}, {64, 64}, {64, 64}), "needs sm_90 or newer");
  EXPECT_EQ(reason("sm_120", {64, 64}, {64, 64}, {64, 64}),
            "sm_120 copies no tile into two blocks at once");
  EXPECT_EQ(reason("sm_90", {64, 63}, {63, 64}, {64, 64}),
            "a line of a does not start at a multiple of 16 bytes");
  EXPECT_EQ(reason("sm_90", {2, 1, 64, 64}, {1, 3, 64, 64}, {2, 3, 64, 64}),
            "takes one batch axis, or several that merge into one");
  EXPECT_EQ(reason("sm_90", {64, 64}, {64, int64_t(1) << 31}, {64, int64_t(1) << 31}),
            "b has a stride or a size that the copy engine cannot take");
}

// A small result takes it by name only. sm_90 has wgmma.
TEST(Gemm, LeavesSmallResultsToSmallTiles) {
  const auto small = explain_on("sm_100", DType::bfloat16, {64, 64}, {64, 64}, {64, 64});
  EXPECT_EQ(small.variant, "swizzled");
  EXPECT_TRUE(row_of(small, "tma").accepted);
  EXPECT_EQ(row_of(small, "tma").reason, "swizzled has smaller tiles for so small a result");
  EXPECT_NE(op::to_string(small).find("accepts by name: swizzled has smaller tiles"),
            std::string::npos);
  EXPECT_EQ(explain_on("sm_100", DType::float16, {8192, 64}, {64, 8192}, {8192, 8192}).variant,
            "tma");
}

// A pair of blocks has the column tiles of one pair, even if the last of them is outside.
TEST(Gemm, LaunchesThePairsOfTmaWhole) {
  for (const int64_t n : {8, 128, 136, 8200}) {
    const auto e = explain_on("sm_90", DType::bfloat16, {300, 64}, {64, n}, {300, n});
    const op::Plan& plan = *row_of(e, "tma").plan;
    kernel::gemm::Config c;
    std::memcpy(&c, plan.first().kernel.config.data(), sizeof(c));
    EXPECT_EQ(plan.first().launch.cluster.count(), 2u);
    const int64_t pairs = div_ceil(n, 2 * c.block_n);
    EXPECT_EQ(plan.first().launch.grid.count(), uint64_t(div_ceil(300, c.block_m) * pairs * 2))
        << n;
  }
}

// The best rung that an architecture has, for operands on 16-byte boundaries and for others.
TEST(Gemm, ChoosesTheRungByArchitectureDtypeAndAlignment) {
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}) {
    const auto chosen = [&](DType dtype, int64_t k, bool tf32) {
      return explain_on(arch, dtype, {256, k}, {k, 256}, {256, 256}, tf32).variant;
    };
    const bool has_wgmma = std::string_view(arch) == "sm_90";
    for (const DType dtype : {DType::float16, DType::bfloat16}) {
      EXPECT_EQ(chosen(dtype, 64, false), has_wgmma ? "persistent" : "swizzled") << arch;
      EXPECT_EQ(chosen(dtype, 63, false), "tensor_core") << arch;
    }
    EXPECT_EQ(chosen(DType::float32, 64, false), "async") << arch;
    EXPECT_EQ(chosen(DType::float32, 64, true), has_wgmma ? "persistent_tf32" : "swizzled_tf32")
        << arch;
    EXPECT_EQ(chosen(DType::float32, 63, true), "tensor_core_tf32") << arch;
  }
}

TEST(Gemm, KernelsThatRoundSayTf32InTheirNames) {
  const auto e = explain_on("sm_90", DType::float32, {256, 64}, {64, 256}, {256, 256}, true);
  for (const auto& row : e.variants) {
    if (!row.plan) continue;
    const bool rounds = row.variant.name.ends_with("tf32");
    const auto& kernel = row.plan->main().kernel;
    EXPECT_EQ(jit::entry_name(*kernel.rung).ends_with("tf32"), rounds) << row.variant.name;
    EXPECT_EQ(jit::readable_name(kernel).find("tf32") != std::string::npos, rounds);
  }
}

// One entry of the batch for each multiprocessor: every tile is the best for its own size.
TEST(Gemm, HasATileForEachSizeAndFitsItIntoSharedMemory) {
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}) {
    const DeviceInfo device = device_info_of_arch(arch);
    std::set<std::pair<uint32_t, uint32_t>> tiles;
    for (const DType dtype : {DType::float32, DType::bfloat16})
      for (const int64_t m : {32, 64, 128, 256})
        for (const int64_t n : {64, 128, 256}) {
          const int64_t batch = device.num_sms;
          const auto e =
              explain_on(device, dtype, {batch, m, 64}, {batch, 64, n}, {batch, m, n}, true);
          for (const auto& row : e.variants) {
            if (!row.plan) continue;
            EXPECT_LE(row.plan->first().launch.shared_bytes, device.shared_bytes_per_block)
                << arch << " " << row.variant.name << " " << m << " x " << n;
          }
          const auto& config = *reinterpret_cast<const kernel::gemm::Config*>(
              row_of(e, dtype == DType::float32 ? "async" : "swizzled")
                  .plan->first()
                  .kernel.config.data());
          if (dtype == DType::bfloat16) tiles.emplace(config.block_m, config.block_n);
          EXPECT_GE(config.stages, 2);
        }
    EXPECT_GE(tiles.size(), 6u) << arch;
  }
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
    EXPECT_TRUE(small.variants[i].plan->first().kernel == large.variants[i].plan->first().kernel)
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
    EXPECT_EQ(row.plan->first().launch.grid.x, 6u * 4 * 7);  // tiles of 32 x 8
  }
}

}  // namespace
}  // namespace tensorcraft
