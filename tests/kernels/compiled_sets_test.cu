// SPDX-License-Identifier: Apache-2.0
// The Configs that launchers compile hold those that choices give; runs without a GPU.
#include "tensorcraft/kernels/all.cuh"

#include <gtest/gtest.h>

#include <algorithm>

namespace tensorcraft::kernels {
namespace {

float* const kArray = reinterpret_cast<float*>(uintptr_t(256));  // never read

// Is the start's Config in the list, looked for as a launch looks for it?
template <class List, class Config>
bool is_in(const List& list, const op::Start<Config>& start) {
  return std::any_of(list.begin(), list.end(), [&](const auto& instance) {
    return is_same_config(start.config, instance.config) && instance.min_blocks == start.min_blocks;
  });
}

TEST(CompiledSets, HoldEveryAlignedSoftmaxThatFitsRegisters) {
  namespace s = detail::softmax;
  int in_registers = 0;
  for (int64_t cols = 4; cols <= 8192; cols += 4) {
    constexpr auto kSoftmax = s::Form::softmax, kLog = s::Form::log_softmax;
    const s::Given given{.element_bytes = 4}, log{.element_bytes = 4, .form = kLog};
    const auto p = s::contiguous_params(kArray, kArray, 5, cols);
    if (const s::Choice held = s::in_registers(p, given, {}); held.refusal.empty()) {
      ++in_registers;
      EXPECT_TRUE(is_in(s::Whole<float>::list, held.start)) << cols;
    }
    EXPECT_TRUE(is_in(s::Walked<float, kSoftmax>::list, s::online(p, given, {}).start)) << cols;
    EXPECT_TRUE(
        is_in(s::Ragged<float, kLog>::list, s::ragged(s::in_registers(p, log, {}).start, p)))
        << cols;
  }
  EXPECT_EQ(in_registers, 2048);
}

TEST(CompiledSets, HoldEveryRowOfClasses) {
  namespace e = detail::cross_entropy;
  for (const int64_t classes : {0, 1, 512, 513, 2048, 2049, 262144}) {
    const auto p = e::contiguous_params(kArray, kArray, kArray, nullptr, 5, classes);
    EXPECT_TRUE(is_in(e::kOnlineInstances<float>, e::online(p, {4, false}, {}).start)) << classes;
  }
}

TEST(CompiledSets, HoldEveryTranspose) {
  namespace p = detail::permute;
  for (const int64_t rows : {16, 17, 64, 4096})
    for (const int64_t cols : {16, 33, 4096}) {
      const auto m = p::contiguous_params(kArray, kArray, 2, rows, cols);
      const p::Choice tiled = p::tiled(m, {4}, {.num_sms = 132});
      EXPECT_TRUE(is_in(p::Tiles<int32_t>::list, tiled.start)) << rows << " " << cols;
      EXPECT_TRUE(is_in(p::kElements, p::naive(m, {4}, {}).start));
    }
}

TEST(CompiledSets, HoldEveryMarginAndEveryScatter) {
  namespace d = detail::pad;
  namespace s = detail::scatter;
  for (const int64_t n : {1, 16, 17, 4096})
    for (const int64_t m : {16, 64, 100000}) {
      const int64_t shape[] = {m, n}, width[] = {1, 2};
      const auto p = d::contiguous_params(kArray, kArray, 0, 2, width, width, shape);
      const op::Gpu gpu{.num_sms = 132};
      EXPECT_TRUE(is_in(d::kUnits, d::vectorized(p, {4}, gpu).start));
      EXPECT_TRUE(is_in(d::kElements, d::naive(p, {4}, gpu).start));
      for (const int64_t inner : {1, 64}) {
        const auto q = s::contiguous_params(kArray, kArray, kArray, kArray, 4, s::Operation::none,
                                            m, n, inner, 3);
        EXPECT_TRUE(is_in(s::Placed<4>::list, s::claimed(q, {4}, gpu).start));
        EXPECT_TRUE(is_in(s::kElements, s::naive(q, {4}, gpu).start));
        auto sum = q;
        sum.operation = s::Operation::add;
        EXPECT_TRUE(is_in(s::kCombined, s::claimed(sum, {4}, gpu).start));
      }
    }
}

// Rows, columns and what is between them, short and long, for GPUs of any size.
TEST(CompiledSets, HoldEveryReduction) {
  namespace r = detail::reduce;
  constexpr auto kSum = Operation::sum, kArgmax = Operation::argmax;
  const auto expect = [&]<class T, r::Operation operation>(const r::CallParams& whole,
                                                           int num_sms) {
    const auto [variant, start, p] = r::taken<operation, T>(whole, {.num_sms = num_sms});
    const bool is_listed = variant == "row"      ? is_in(r::kRows<T, operation>, start)
                           : variant == "column" ? is_in(r::kColumns<T, operation>, start)
                                                 : is_in(r::kSingle<operation>, start);
    EXPECT_TRUE(is_listed) << variant;
    if (p.splits > 1) EXPECT_TRUE(is_in(r::kParts<operation>, r::combine_start(p, operation)));
    return p.splits > 1;
  };
  int shared = 0;
  for (const int64_t outer : {1, 7, 512, 100000})
    for (const int64_t reduced : {1, 8, 1000, 1024, 1 << 22})
      for (const int64_t inner : {1, 3, 8, 64, 4096})
        for (const int num_sms : {0, 1, 20, 132, 188})
          for (const ptrdiff_t offset : {0, 1}) {
            SCOPED_TRACE(testing::Message() << outer << " " << reduced << " " << inner << " on "
                                            << num_sms << " from " << offset);
            const float* in = kArray + offset;
            const auto p = r::contiguous_params(in, kArray, outer, reduced, inner);
            shared += expect.operator()<float, kSum>(p, num_sms);
            shared += expect.operator()<bf16, kArgmax>(p, num_sms);
          }
  EXPECT_GT(shared, 0);
}

// A call of a norm of which everything is given.
auto norm_call(detail::norm::Config fused, int element_bytes, int weight_bytes, int64_t cols,
               bool is_quantized = false) {
  namespace n = detail::norm;
  const auto p = n::contiguous_params({.x = kArray,
                                       .residual = fused.has_residual ? kArray : nullptr,
                                       .weight = kArray,
                                       .bias = fused.has_bias ? kArray : nullptr,
                                       .out = kArray},
                                      5, cols, 0);
  return std::pair(p, n::Given{fused, element_bytes, weight_bytes, is_quantized});
}

TEST(CompiledSets, HoldTheWidthsOfTheNorms) {
  namespace n = detail::norm;
  constexpr n::Config kRms = n::kFused<n::Form::rms, false>,
                      kLayer = n::kFused<n::Form::layer, false>,
                      kResidual = n::kFused<n::Form::layer, true>;
  for (const int64_t cols : kRegisterRows) {
    SCOPED_TRACE(cols);
    const auto [p, given] = norm_call(kRms, 2, 2, cols);
    EXPECT_TRUE(is_in(n::Widths<bf16, bf16, kRms>::list, n::in_registers(p, given, {}).start));
    const auto [q, wide] = norm_call(kRms, 2, 4, cols);
    EXPECT_TRUE(is_in(n::Widths<bf16, float, kRms>::list, n::in_registers(q, wide, {}).start));
    const auto [r, residual] = norm_call(kResidual, 4, 4, cols);
    EXPECT_TRUE(
        is_in(n::Widths<float, float, kResidual>::list, n::in_registers(r, residual, {}).start));
    const auto [l, layer] = norm_call(kLayer, 4, 4, cols);
    EXPECT_TRUE(is_in(n::General<kLayer, 4>::list, n::vectorized(l, layer, {}).start));
    EXPECT_TRUE(is_in(n::General<kLayer, 1>::list, n::block(l, layer, {}).start));
  }
}

// A plan of either norm that gives codes is in a set of its own.
TEST(CompiledSets, HoldTheWidthsOfTheNormsOfCodes) {
  namespace n = detail::norm;
  constexpr n::Config kRms = n::kFused<n::Form::rms, false>,
                      kLayer = n::kFused<n::Form::layer, true, Activation::silu>;
  for (const int64_t cols : kRegisterRows) {
    SCOPED_TRACE(cols);
    const auto [p, rms] = norm_call(kRms, 4, 4, cols, true);
    EXPECT_TRUE(
        is_in(n::Widths<float, float, kRms, true>::list, n::in_registers(p, rms, {}).start));
    EXPECT_TRUE(is_in(n::kCodes<n::Form::rms>, n::block(p, rms, {}).start));
    const auto [q, layer] = norm_call(kLayer, 2, 2, cols, true);
    EXPECT_TRUE(
        is_in(n::Widths<bf16, bf16, kLayer, true>::list, n::in_registers(q, layer, {}).start));
    EXPECT_TRUE(is_in(n::kCodes<n::Form::layer>, n::block(q, layer, {}).start));
  }
}

TEST(CompiledSets, HoldEverySumAlongARow) {
  namespace s = detail::cumulative_sum;
  const op::Gpu gpu{.num_sms = 132};
  for (const int64_t offset : {0, 1})
    for (const int64_t rows : {1, 5, 100000})
      for (const int64_t cols : {1, 33, 512, 513, 1024, 1025, 100003}) {
        const auto p = s::contiguous_params(kArray + offset, kArray, rows, cols);
        EXPECT_TRUE(is_in(s::kRows<float>, s::row(p, {true, 4}, gpu).start)) << cols;
        EXPECT_TRUE(is_in(s::kRows<bf16>, s::row(p, {true, 2}, gpu).start)) << cols;
        EXPECT_TRUE(is_in(s::kRows<int64_t>, s::row(p, {false, 8}, gpu).start)) << cols;
        EXPECT_TRUE(is_in(s::kSingle, s::naive(p, {false, 1}, gpu).start)) << cols;
      }
  // The order of preference of the ladder.
  const auto variant = [](int64_t cols) {
    return s::taken<float>(s::contiguous_params(kArray, kArray, 5, cols), {}).variant;
  };
  EXPECT_EQ(variant(32), "naive");
  EXPECT_EQ(variant(33), "row");
}

TEST(CompiledSets, HoldEveryRowOfWhichTheLargestAreWanted) {
  namespace t = detail::topk;
  for (int64_t cols = 1; cols <= 512; ++cols) {
    const auto p = t::contiguous_params(kArray, kArray, nullptr, 5, cols, 1);
    const t::Choice warp = t::warp(p, {}, {});
    EXPECT_TRUE(warp.refusal.empty() && is_in(t::kWarps, warp.start)) << cols;
  }
  const auto p = t::contiguous_params(kArray, kArray, nullptr, 5, 513, 1);
  EXPECT_FALSE(t::warp(p, {}, {}).refusal.empty());
  EXPECT_TRUE(is_in(t::kBlocks, t::block(p, {}, {}).start));
}

TEST(CompiledSets, HoldTheWidthsOfTokensAndBlocks) {
  namespace q = detail::quantize;
  for (const int64_t cols : kRegisterRows)
    for (const bool blocks : {false, true}) {
      const auto p = q::contiguous_params(kArray, kArray, kArray,
                                          q::checked_tiles("", 5, cols, blocks, false));
      EXPECT_TRUE(is_in(q::kTiles<bf16>, q::in_registers(p, {.wide_bytes = 2}, {}).start)) << cols;
      EXPECT_TRUE(is_in(q::kTiles<float>, q::in_registers(p, {.wide_bytes = 4}, {}).start)) << cols;
      const q::Given back{.wide_bytes = 2, .dequantizes = true};
      EXPECT_TRUE(is_in(q::kVectors<bf16>, q::dequantize_vectorized(p, back, {}).start)) << cols;
    }
}

TEST(CompiledSets, HoldTheWidthsOfGates) {
  namespace g = detail::gated_activation;
  for (const int64_t rows : {1, 100000})
    for (int64_t cols = 128; cols <= 32768; cols += 8) {
      const auto p = g::contiguous_params(kArray, kArray, rows, cols);
      const auto choice = g::vectorized(p, {Activation::silu, 2}, {.num_sms = 132});
      EXPECT_TRUE(is_in(g::kVectorized<Activation::silu>, choice.start)) << cols;
    }
}

TEST(CompiledSets, HoldEveryProduct) {
  namespace g = detail::gemm;
  const op::Gpu gpu{.architecture = 90, .num_sms = 132};
  const g::Given two{.operand_bytes = 2, .result_bytes = 2};
  const g::Given four{.operand_bytes = 4, .result_bytes = 4};
  for (const int64_t m : {1, 3, 64, 4096})
    for (const int64_t n : {1, 8, 100, 4096})
      for (const int64_t k : {0, 1, 7, 64, 4096})
        for (const float beta : {0.0f, 1.0f})
          for (const auto a : {g::Layout::row_major, g::Layout::column_major})
            for (const auto b : {g::Layout::row_major, g::Layout::column_major}) {
              const auto p =
                  g::contiguous_params(kArray, a, kArray, b, kArray, kArray, m, n, k, 1, beta);
              const auto halves = [&](const g::Start& s) { return g::compiled_for<bf16>(s, a, b); };
              EXPECT_TRUE(is_in(g::kInterfaceTensorCoreList<bf16>,
                                halves(g::tensor_core_start(p, two, gpu, g::kInterfaceTiles))));
              if (a != b || a != g::kRows) continue;
              const auto hopper = g::compiled_persistent(p, two, gpu);
              EXPECT_TRUE(!hopper.refusal.empty() || is_in(g::kPersistentList, hopper.start));
              if (k > 1 && k % 8 == 0 && n % 8 == 0) EXPECT_EQ(hopper.refusal, "");
              EXPECT_TRUE(
                  is_in(g::kTensorCoreList<bf16>, halves(g::tensor_core(p, two, gpu).start)));
              EXPECT_TRUE(is_in(g::kBlockTiledList, halves(g::block_tiled(p, two, gpu).start)));
              EXPECT_TRUE(
                  is_in(g::kAsyncList, g::compiled_for<float>(g::async(p, four, gpu).start, a, b)));
            }
}

}  // namespace
}  // namespace tensorcraft::kernels
