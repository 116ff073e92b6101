// SPDX-License-Identifier: Apache-2.0
// What the launchers check and promise before any GPU is touched; runs without one.
#include "tensorcraft/kernels/all.cuh"
#include "tests/kernels/thrown_text.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace tensorcraft::kernels {
namespace {

std::string invalid(const std::function<void()>& call) {
  return text_of<std::invalid_argument>(call);
}

float* const kArray = reinterpret_cast<float*>(uintptr_t(256));  // never read

static_assert(TC_CPP17 && TC_CPP20 && !TC_CPP23);
static_assert(TC_CUDA_11 && TC_CUDA_12 && TC_HAS_WMMA && TC_HAS_TMA && TC_HAS_WGMMA && TC_HAS_FP8);

TEST(GemmConfig, HasTheDefaultsOfAShippedTile) {
  static constexpr GemmConfig config;
  static_assert(config.tile_m == 128 && config.tile_n == 128 && config.tile_k == 32);
  static_assert(config.warp_m == 64 && config.warp_n == 64 && config.stages == 3);
  static_assert(config.use_tensor_core);
  // It comes first in the interface's choice, and not in the library's.
  namespace g = detail::gemm;
  constexpr auto is_default = [](const auto& tile) {
    return tile.block_m == config.tile_m && tile.block_n == config.tile_n &&
           tile.block_k == config.tile_k;
  };
  static_assert(is_default(g::kInterfaceTensorCoreList<bf16>[0].config));
  static_assert(!is_default(g::kTensorCoreList<bf16>[0].config));
  constexpr auto& another = g::kTensorCoreTiles[3];
  static_assert(g::tiles_from({.tile_m = another.block.m,
                               .tile_n = another.block.n,
                               .tile_k = another.block.k,
                               .warp_m = another.part.m,
                               .warp_n = another.part.n})[0]
                    .block.n == another.block.n);
  // 5 tiles of 128 x 256 take as long as 9 of 128 x 128: whichever comes first is taken.
  const g::Params p = g::contiguous_params(kArray, g::kRows, kArray, g::kRows, nullptr, kArray, 128,
                                           1152, 64, 1, 0);
  const g::Given halves{.operand_bytes = 2, .result_bytes = 2};
  EXPECT_TRUE(is_default(g::tensor_core_start(p, halves, {}, g::kInterfaceTiles).config));
  EXPECT_FALSE(is_default(g::tensor_core_start(p, halves, {}).config));
  EXPECT_EQ(invalid([] { detail::gemm::tiles_from({.tile_m = 48}); }),
            "GemmConfig: there is no such tile");
}

TEST(Arguments, AlignmentHasItsText) {
  const auto* odd = reinterpret_cast<const char*>(kArray) + 1;
  const std::string text = "Pointer not aligned for vectorized access";
  EXPECT_EQ(invalid([&] { validate_alignment<float, 4>(odd); }), text);
  EXPECT_EQ(invalid([&] { validate_alignment<float, 4>(kArray + 1); }), text);
  validate_alignment<float, 4>(kArray);
  validate_alignment<float, 1>(kArray + 1);
}

TEST(Arguments, GemmDimensionsHaveTheirTexts) {
  const std::string positive = "GEMM dimensions must be positive";
  EXPECT_EQ(invalid([] { validate_gemm_dims(-1, 1, 1); }), positive);
  EXPECT_EQ(invalid([] { validate_gemm_dims(1, -1, 1); }), positive);
  EXPECT_EQ(invalid([] { validate_gemm_dims(1, 1, -1); }), positive);
  // Tiles of 32 x 8: 2^20 rows and 2^11 columns of them are 2^31.
  EXPECT_EQ(invalid([] { validate_gemm_dims(int64_t(32) << 20, int64_t(8) << 11, 1); }),
            "GEMM dimensions exceed maximum grid size");
  validate_gemm_dims((int64_t(32) << 20) - 32, int64_t(8) << 11, 1);
  validate_gemm_dims(0, 0, 0);
}

struct Same {
  __device__ float operator()(float x) const { return x; }
};

TEST(Launchers, DoNothingForNoElements) {
  float* const none = nullptr;
  launch_elementwise(none, none, 0, Same{});
  EXPECT_EQ(launch_add(none, none, none, 0), "");
  EXPECT_EQ(launch_fill(none, 0, 1.0f), "");
  EXPECT_EQ(launch_softmax(none, none, 0, 5), "");
  EXPECT_EQ(launch_softmax(none, none, 5, 0), "");
  EXPECT_EQ(launch_log_softmax(none, none, 5, 0), "");
  EXPECT_EQ(launch_cross_entropy(none, (const int64_t*)nullptr, none, none, 0, 5), "");
  EXPECT_EQ(launch_l2_normalize(none, none, 0, 5), "");
  EXPECT_EQ(launch_rms_norm(none, none, none, 0, 5), "");
  EXPECT_EQ(launch_layer_norm(none, none, none, none, 5, 0), "");
  EXPECT_EQ(launch_rms_norm_quantized(none, none, (e4m3*)nullptr, {.scale = 1}, 0, 5), "");
  EXPECT_EQ(launch_batch_norm(none, none, none, none, none, none, 0, 3, 4), "");
  EXPECT_EQ(launch_batch_norm_training(none, none, none, none, BatchStatistics<float>{}, 2, 0, 4),
            "");
  EXPECT_EQ(launch_batch_norm_backward(none, none, none, none, none, none, none, none, 2, 3, 0),
            "");
  EXPECT_EQ(launch_group_norm(none, none, none, none, 0, 4, 3, 2), "");
  EXPECT_EQ(launch_masked_mean(none, (const int32_t*)nullptr, none, 0, 3, 4), "");
  EXPECT_EQ((launch_reduce<Operation::sum>(none, none, 3, 5, 0)), "");
  EXPECT_EQ(launch_cumulative_sum(none, none, 3, 0), "");
  EXPECT_EQ(cumulative_sum_workspace_bytes(none, 0, 5), 0u);
  EXPECT_EQ(launch_topk(none, none, nullptr, 0, 5, 2), "");
  EXPECT_EQ(launch_topk(none, none, nullptr, 5, 0, 0), "");
  EXPECT_EQ(launch_embedding((const int64_t*)nullptr, none, none, 0, 3, 4), "");
  EXPECT_EQ(launch_silu_and_mul(none, none, 0, 5), "");
  EXPECT_EQ(launch_gelu_and_mul(none, none, 5, 0), "");
  EXPECT_EQ(launch_rope(none, none, {0, 1, 2, 8}), "");
  EXPECT_EQ(launch_quantize_tokens(none, (e4m3*)nullptr, none, 0, 5), "");
  EXPECT_EQ(launch_dequantize_blocks((int8_t*)nullptr, none, none, 5, 0), "");
  EXPECT_EQ(launch_take(none, (const int64_t*)nullptr, none, 1, 3, 4, 0), "");
  EXPECT_EQ(launch_transpose(none, none, 0, 3), "");
  EXPECT_EQ(launch_attention(none, none, none, none, {0, 1, 1, 2, 2, 64}), "");
  EXPECT_EQ(execute_attention(none, none, none, none, nullptr, 0, 1, 64), "");
  EXPECT_EQ(launch_gemm(none, none, none, 0, 5, 5), "");
  EXPECT_EQ(launch_gemm(none, none, none, 0, 5, 5, AddBias<float>{none}), "");
  EXPECT_EQ(FP32GEMM::execute(none, none, none, 5, 0, 5), "");
}

TEST(Launchers, RefuseNegativeSizesAndNull) {
  float* const none = nullptr;
  EXPECT_EQ(invalid([&] { launch_softmax(kArray, kArray, -1, 5); }),
            "launch_softmax: rows must not be negative, got -1");
  EXPECT_EQ(invalid([&] { launch_softmax(none, kArray, 1, 5); }), "launch_softmax: in is null");
  EXPECT_EQ(invalid([&] { launch_log_softmax(kArray, none, 1, 5); }),
            "launch_log_softmax: out is null");
  EXPECT_EQ(
      invalid([&] { launch_cross_entropy(kArray, (const int64_t*)nullptr, kArray, none, 1, 5); }),
      "launch_cross_entropy: targets is null");
  EXPECT_EQ(invalid([&] { launch_mean_loss(none, kArray, 3); }),
            "launch_mean_loss: losses is null");
  EXPECT_EQ(invalid([&] { launch_mean_loss(kArray + 1, kArray, 3); }),
            "Pointer not aligned for vectorized access");
  EXPECT_EQ(invalid([&] { launch_rms_norm(kArray, kArray, none, 1, 5); }),
            "launch_rms_norm: out is null");
  EXPECT_EQ(invalid([&] { launch_layer_norm(kArray, none, none, kArray, 1, 5, -1.0f); }),
            "launch_layer_norm: eps must be at least 0");
  const auto codes = [&](CodeScale scale, int64_t rows = 1) {
    return invalid([&] { launch_rms_norm_quantized(kArray, none, (e4m3*)none, scale, rows, 5); });
  };
  const std::string both = "launch_rms_norm_quantized: give either scale, finite and above 0, or ";
  EXPECT_EQ(codes({}), both + "scales");
  EXPECT_EQ(codes({.scale = -1}), both + "scales");
  EXPECT_EQ(codes({.scale = INFINITY}), both + "scales");
  EXPECT_EQ(codes({.scale = 1, .scales = kArray}), both + "scales");
  EXPECT_EQ(codes({.scales = kArray}), "launch_rms_norm_quantized: out is null");
  EXPECT_EQ(codes({.scale = 1}, -1),
            "launch_rms_norm_quantized: rows must not be negative, got -1");
  EXPECT_EQ(invalid([&] { launch_batch_norm(kArray, none, kArray, none, none, kArray, 1, 2, 3); }),
            "launch_batch_norm: running_mean is null");
  EXPECT_EQ(invalid([&] { launch_group_norm(kArray, none, none, kArray, 1, 4, 3, 3); }),
            "launch_group_norm: groups must divide channels");
  EXPECT_EQ(invalid([&] { launch_attention(kArray, kArray, kArray, kArray, {1, 3, 2, 1, 1, 8}); }),
            "launch_attention: heads must be a multiple of heads_k");
  const auto attend = [](const AttentionArguments& arguments) {
    return invalid(
        [&] { launch_attention(kArray, kArray, kArray, kArray, {1, 1, 1, 1, 1, 8}, arguments); });
  };
  const int32_t starts[] = {0, 1};
  const bool seen[] = {true};
  EXPECT_EQ(attend({.window_left = -2}),
            "launch_attention: window_left and window_right must be at least -1, which is "
            "unlimited");
  EXPECT_EQ(attend({.softcap = -1}),
            "launch_attention: softcap must be above 0 and finite, or 0 for none");
  EXPECT_EQ(attend({.seen = seen, .added = kArray}),
            "launch_attention: give seen or added, not both");
  EXPECT_EQ(attend({.cu_seqlens_q = starts}),
            "launch_attention: give cu_seqlens_q and cu_seqlens_k, or neither");
  EXPECT_EQ(attend({.seen = seen, .cu_seqlens_q = starts, .cu_seqlens_k = starts}),
            "launch_attention: a mask is for batches without cu_seqlens_q; causal, a window and "
            "key_lengths serve both");
  EXPECT_EQ(invalid([] { execute_attention(kArray, kArray, kArray, kArray, kArray, 1, 1, 8); }),
            "execute_attention: weights are not stored, pass null; they are exp(score - lse), with "
            "the lse that arguments ask for");
  struct Manager {
    AttentionArguments get_attention_config(const AttentionShape& shape) const {
      return {.variant = shape.seq_q == 1 ? "gemv" : "naive"};
    }
  };
  EXPECT_EQ(invalid([] {
              schedule_attention(Manager{}, kArray, kArray, kArray, kArray, {1, 1, 1, 1, 1, 8});
            }),
            "launch_attention: no variant is named \"gemv\" for this type; there are tiled and "
            "naive");
  EXPECT_EQ(invalid([&] { launch_reduce<Operation::sum>(kArray, kArray, 1, -2, 1); }),
            "launch_reduce: reduced must not be negative, got -2");
  EXPECT_EQ(invalid([&] { launch_reduce<Operation::sum>(none, kArray, 1, 2, 1); }),
            "launch_reduce: in is null");
  EXPECT_EQ(invalid([&] { launch_cumulative_sum(kArray, none, 1, 2); }),
            "launch_cumulative_sum: out is null");
  const auto topk = [](const float* in, int64_t cols, int64_t k) {
    return invalid([=] { launch_topk(in, kArray, nullptr, 1, cols, k); });
  };
  EXPECT_EQ(topk(kArray, 3, 4), "launch_topk: k must be at most 64 and at most cols, got 4 of 3");
  EXPECT_EQ(topk(kArray, 99, 65),
            "launch_topk: k must be at most 64 and at most cols, got 65 of 99");
  EXPECT_EQ(topk(kArray, int64_t(1) << 32, 1),
            "launch_topk: needs fewer than 2^32 elements along the axis");
  EXPECT_EQ(topk(none, 3, 1), "launch_topk: in is null");
  EXPECT_EQ(invalid([&] { launch_rope(kArray, kArray, {1, 1, 1, 7}); }),
            "launch_rope: dim must be even");
  EXPECT_EQ(invalid([&] { launch_rope(kArray, kArray, {1, 1, 1, 8}, {.cos = kArray}); }),
            "launch_rope: give both cos and sin, or neither");
  EXPECT_EQ(invalid([&] { launch_quantize_blocks(kArray, (e4m3*)kArray, none, 1, 5); }),
            "launch_quantize_blocks: scales is null");
  EXPECT_EQ(invalid([&] { launch_transpose(kArray, none, 2, 3); }),
            "launch_transpose: out is null");
  EXPECT_EQ(invalid([&] { launch_add(kArray, none, kArray, 3); }), "launch_elementwise: b is null");
  EXPECT_EQ(invalid([&] { launch_gemm(kArray, kArray, kArray, -1, 1, 1); }),
            "GEMM dimensions must be positive");
  EXPECT_EQ(invalid([&] { launch_gemm(none, kArray, kArray, 1, 1, 1); }), "Null pointer arguments");
}

TEST(GemmInterface, HasTheTextsOfItsFront) {
  float* const none = nullptr;
  EXPECT_EQ(invalid([&] { FP32GEMM::execute(none, kArray, kArray, 1, 1, 1); }),
            "Null pointer arguments");
  EXPECT_EQ(invalid([&] { FP32GEMM::execute(kArray, kArray, none, kArray, 1, 1, 1, 1.0f, 2.0f); }),
            "Null pointer arguments");
  EXPECT_EQ(invalid([&] { FP32GEMM::execute(kArray, kArray, kArray, 1, -1, 1); }),
            "Invalid matrix dimensions");
  static_assert(std::is_same_v<FP8GEMM, GEMMInterface<e4m3>>);
  static_assert(std::is_same_v<BF16GEMM, GEMMInterface<bf16>>);
  static_assert(std::is_same_v<FP16GEMM, GEMMInterface<f16>>);
}

TEST(GemmVersion, NamesARungOrSaysThatThereIsNone) {
  EXPECT_EQ(variant_name(GemmVersion::Naive), "naive");
  EXPECT_EQ(variant_name(GemmVersion::Tiled), "block_tiled");
  EXPECT_EQ(variant_name(GemmVersion::DoubleBuffer), "async");
  EXPECT_EQ(variant_name(GemmVersion::TensorCore), "tensor_core");
  EXPECT_EQ(variant_name(GemmVersion::WGMMA_TMA), "persistent");
  const auto refused = [](GemmVersion version, int64_t offset) {
    return text_of<std::runtime_error>(
        [=] { launch_gemm(kArray + offset, kArray, kArray, 4, 4, 4, 1.0f, 0.0f, version); });
  };
  const auto* half = reinterpret_cast<const bf16*>(kArray);
  EXPECT_EQ(text_of<std::runtime_error>([=] {
              launch_gemm(half, half, const_cast<bf16*>(half), 4, 4, 4, 1.0f, 0.0f,
                          GemmVersion::DoubleBuffer);
            }),
            "launch_gemm: async: needs float: a copy in flight cannot convert");
  EXPECT_EQ(refused(GemmVersion::WGMMA_TMA, 0),
            "launch_gemm: persistent: needs f16 or bf16; float would be rounded");
  EXPECT_EQ(refused(GemmVersion::WGMMA_TMA, 1), "Memory not properly aligned");
  EXPECT_EQ(refused(GemmVersion::TensorCore, 0),
            "launch_gemm: tensor_core: needs f16 or bf16; float would be rounded");
  try {
    launch_gemm(kArray, kArray, kArray, 4, 4, 4, 1.0f, 0.0f, GemmVersion::WGMMA_TMA);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  }
}

}  // namespace
}  // namespace tensorcraft::kernels
