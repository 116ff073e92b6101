// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/attention/attention.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

// The answers of attention's rungs to calls on GPUs that need not be here, and their plans.
namespace tensorcraft {
namespace {

TEST(Attention, ExplainSaysHowItReadsTheShapes) {
  const Tensor q(DType::float32, {2, 24, 4, 16}), k(DType::float32, {2, 8, 6, 16});
  const TensorView inputs[] = {q, k, k}, outputs[] = {q};
  const auto e = find_operator("attention").explain(outputs, {inputs, {}}, device_info(q.device()));
  EXPECT_EQ(e.sizes, "batch 2, heads 24, seq_q 4, heads_k 8, seq_k 6, head_dim 16");
  EXPECT_NE(op::to_string(e).find("sizes: " + e.sizes + "\n"), std::string::npos);
}

// The verdict of a row for a problem on an H200, without one.
op::Explanation explain_on_gpu(DType dtype, int64_t seq, int64_t head_dim, float scale) {
  alignas(64) static char aligned[64];
  const TensorView t(aligned, dtype, {32, 12, seq, head_dim});
  const op::Value options[] = {double(scale)};
  // Explaining reads no memory, so the output may be anywhere apart.
  const TensorView out(reinterpret_cast<void*>(uintptr_t(1) << 46), dtype, t.shape());
  const TensorView inputs[] = {t, t, t}, outputs[] = {out};
  return find_operator("flash_attention")
      .explain(outputs, {.inputs = inputs, .options = options}, device_info_of_arch("sm_90a"));
}

std::string reason(const op::Explanation& e, std::string_view variant) {
  for (const auto& c : e.variants)
    if (c.variant.name == variant) return c.accepted ? "accepted" : c.reason;
  return "no such row";
}

TEST(Attention, EachGpuRowSaysWhyItDeclines) {
  EXPECT_EQ(explain_on_gpu(DType::bfloat16, 256, 64, 1).variant, "persistent");
  EXPECT_EQ(explain_on_gpu(DType::bfloat16, 256, 32, 1).variant, "tensor_core");  // few keys
  EXPECT_EQ(explain_on_gpu(DType::bfloat16, 64, 128, 1).variant, "tensor_core");
  for (const char* variant : {"persistent", "warp_specialized", "wgmma"}) {
    EXPECT_EQ(reason(explain_on_gpu(DType::float32, 8, 64, 1), variant),
              "needs float16, bfloat16 or float8_e4m3fn");
    EXPECT_EQ(reason(explain_on_gpu(DType::float16, 8, 264, 1), variant),
              "head_dim, also that of v, must be at most 256");
    EXPECT_EQ(reason(explain_on_gpu(DType::float16, 8, 64, -1), variant), "scale must be positive");
  }
  EXPECT_EQ(explain_on_gpu(DType::bfloat16, 16, 64, 1).variant, "split_kv");
  EXPECT_EQ(explain_on_gpu(DType::float32, 256, 32, 1).variant, "tiled");
  for (const int64_t head_dim : {8, 40, 72, 80, 112, 160, 200})
    EXPECT_EQ(explain_on_gpu(DType::float16, 2048, head_dim, 1).variant, "persistent") << head_dim;
  for (const int64_t head_dim : {264, 320, 512})
    EXPECT_EQ(explain_on_gpu(DType::float16, 2048, head_dim, 1).variant, "tensor_core") << head_dim;
  for (const int64_t head_dim : {33, 80, 512})
    EXPECT_EQ(explain_on_gpu(DType::float32, 2048, head_dim, 1).variant, "tiled") << head_dim;
  EXPECT_EQ(reason(explain_on_gpu(DType::float32, 8, 64, 1), "tensor_core"),
            "needs float16 or bfloat16");
  EXPECT_EQ(reason(explain_on_gpu(DType::float16, 8, 84, 1), "tensor_core"),
            "head_dim, also that of v, must be a multiple of 8");
  EXPECT_EQ(reason(explain_on_gpu(DType::float16, 8, 64, 0), "tensor_core"),
            "scale must be positive");
}

TEST(Attention, APlanCoversEveryQueryOfEveryHead) {
  const auto e = explain_on_gpu(DType::bfloat16, 130, 64, 1);
  for (const auto& c : e.variants) {
    if (c.variant.name == "split_kv") continue;  // takes few queries
    ASSERT_TRUE(c.plan.has_value()) << c.variant.name;
    const uint32_t heads = 32 * 12;
    const std::map<std::string_view, uint32_t> blocks{{"persistent", 132},
                                                      {"warp_specialized", heads},  // 192 queries
                                                      {"wgmma", heads},
                                                      {"naive", heads * 130 / 4}};
    const auto found = blocks.find(c.variant.name);
    const bool is_wgmma = found != blocks.end() && c.variant.name != "naive";
    EXPECT_EQ(c.plan->first().launch.grid.x, found == blocks.end() ? heads * 3 : found->second);
    EXPECT_LE(c.plan->first().launch.shared_bytes, (is_wgmma ? 227u : 99u) * 1024);
  }
}

// The copy engine takes any outer strides that are multiples of 16 bytes.
TEST(Attention, TheRungsOnWgmmaDeclineStridesThatTheCopyEngineDoesNotTake) {
  const auto declines = [](const Dims& strides) {
    const auto at = [](uintptr_t address, const Dims& s) {
      return TensorView(reinterpret_cast<void*>(address), DType::bfloat16, {2, 4, 70, 64}, s,
                        Device::cpu());
    };
    const TensorView q = at(uintptr_t(1) << 50, strides),
                     out = at(uintptr_t(1) << 52, {17920, 4480, 64, 1});
    const TensorView inputs[] = {q, q, q}, outputs[] = {out};
    const auto e =
        find_operator("attention").explain(outputs, {inputs, {}}, device_info_of_arch("sm_90a"));
    return reason(e, "persistent") ==
           "rows of q, k, v and out must start at 16-byte boundaries, at strides of 0 to 2^40 "
           "bytes";
  };
  EXPECT_FALSE(declines({17920, 4480, 64, 1}));
  EXPECT_FALSE(declines({17920, 64, 256, 1}));
  EXPECT_FALSE(declines({0, 0, 72, 1}));
  EXPECT_TRUE(declines({17920, 4480, 0, 1}));
  EXPECT_TRUE(declines({17920, 4480, 68, 1}));
  EXPECT_TRUE(declines({int64_t(1) << 40, 4480, 64, 1}));
}

TEST(Attention, HasNoLimitOfBatchTimesHeads) {
  const Dims shape{8192, 12, 3, 64};
  const auto gpu = [&](uintptr_t address) {  // explain() reads no memory
    return TensorView(reinterpret_cast<void*>(address), DType::bfloat16, shape);
  };
  const TensorView t = gpu(uintptr_t(1) << 40), out = gpu(uintptr_t(1) << 41);
  const TensorView inputs[] = {t, t, t}, outputs[] = {out};
  const auto e =
      find_operator("attention").explain(outputs, {inputs, {}}, device_info_of_arch("sm_90a"));
  for (const auto& c : e.variants) {
    ASSERT_TRUE(c.plan.has_value()) << c.variant.name;
    const uint32_t heads = 8192 * 12;  // more than 65,535, the most blocks along y or z
    EXPECT_EQ(c.plan->first().launch.grid.x, c.variant.name == "naive"        ? heads * 3 / 4
                                             : c.variant.name == "persistent" ? 132
                                                                              : heads);
    EXPECT_EQ(c.plan->first().launch.grid.y * c.plan->first().launch.grid.z, 1u);
  }
}

}  // namespace
}  // namespace tensorcraft
