// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/kernel_text.hpp"
#include "tests/support/passed_before.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft {
namespace {

// ptxas says so if it waits after each product because it cannot follow the registers.
TEST(WgmmaTile, CompilesForHopperWithItsProductsInFlight) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const auto result = test::compile_wgmma_tile();
  ASSERT_TRUE(result.ok) << result.log;
  EXPECT_FALSE(result.image.empty());
  EXPECT_EQ(result.log.find("wgmma.mma_async instructions are serialized"), std::string::npos)
      << result.log;
  EXPECT_NE(result.log.find("0 bytes spill stores"), std::string::npos) << result.log;
}

// The PTX of a kernel for an architecture as "90a".
std::string ptx_of(const jit::KernelKey& key, const std::string& arch) {
  std::vector<std::pair<const char*, const char*>> headers;
  const auto closure = jit::include_closure(key.rung->header);
  for (const auto& header : *closure)
    headers.emplace_back(header->name.c_str(), header->text.c_str());
  const std::string flags[] = {"--gpu-architecture=compute_" + arch, "--std=c++20"};
  const auto made = cuda::nvrtc_compile(jit::entry_text(key, "sm_" + arch), "k.cu", headers, flags);
  EXPECT_TRUE(made.ok) << made.log;
  return made.image;
}

// G6: the rungs on wgmma have its instructions, and the copy engine brings their operands and takes
// their results.
TEST(GemmRungs, HaveTheInstructionsOfHopper) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const op::Operator& gemm = find_operator("gemm");
  alignas(16) static std::byte memory[16];
  const TensorView operand(memory, DType::bfloat16, {512, 512});
  const TensorView out(reinterpret_cast<void*>(uintptr_t(1) << 46), DType::bfloat16, {512, 512});
  const std::vector<TensorView> inputs{operand, operand};
  const std::vector<op::Value> options(gemm.description().options.size());
  const auto e = gemm.explain({&out, 1}, {inputs, options}, device_info_of_arch("sm_90a"));
  for (const op::Considered& c : e.variants) {
    const bool stores = c.variant.name == "persistent";
    if (!stores && c.variant.name != "warp_specialized" && c.variant.name != "wgmma") continue;
    ASSERT_TRUE(c.plan.has_value()) << c.reason;
    const std::string ptx = ptx_of(c.plan->main().kernel, "90a");
    const auto has = [&](const char* text) { return ptx.find(text) != std::string::npos; };
    EXPECT_TRUE(has("wgmma.mma_async.sync.aligned.m64n")) << c.variant.name;
    EXPECT_TRUE(has("cp.async.bulk.tensor.3d.shared::c")) << c.variant.name;
    EXPECT_EQ(has("cp.async.bulk.tensor.3d.global.shared::cta"), stores) << c.variant.name;
    EXPECT_EQ(has("setmaxnreg"), c.plan->main().launch.block.x >= 384);
    EXPECT_FALSE(has("mma.sync.aligned.m16n8k16")) << c.variant.name;
  }
}

op::Explanation explain_attention(const char* arch, int64_t head_dim, int64_t value_dim,
                                  int64_t rows, DType dtype,
                                  const std::vector<op::Value>& options) {
  alignas(16) static std::byte memory[16];
  const TensorView q(memory, dtype, {1, 2, rows, head_dim});
  const TensorView v(memory, q.dtype(), {1, 2, rows, value_dim});
  const TensorView out(reinterpret_cast<void*>(uintptr_t(1) << 46), DType::bfloat16, v.shape());
  const std::vector<TensorView> inputs{q, q, v};
  return find_operator("attention")
      .explain({&out, 1}, {inputs, options}, device_info_of_arch(arch));
}

int count_of(std::string_view part, std::string_view text) {
  int count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// I4: both products, of queries with keys and of weights with values.
TEST(AttentionRungs, MultiplyOnTensorCores) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const struct {
    const char *number, *variant, *instruction;
  } cases[] = {{"80", "tensor_core", "mma.sync.aligned.m16n8k16"},
               {"90a", "wgmma", "wgmma.mma_async.sync.aligned.m64n"},
               {"90a", "persistent", "wgmma.mma_async.sync.aligned.m64n"}};
  const std::vector<op::Value> none(find_operator("attention").description().options.size());
  for (const auto& c : cases) {
    const auto e = explain_attention((std::string("sm_") + c.number).c_str(), 64, 64, 512,
                                     DType::bfloat16, none);
    const auto row = std::ranges::find(e.variants, c.variant,
                                       [](const op::Considered& r) { return r.variant.name; });
    ASSERT_TRUE(row != e.variants.end() && row->plan) << c.variant;
    const std::string ptx = ptx_of(row->plan->main().kernel, c.number);
    EXPECT_GE(count_of(c.instruction, ptx), 2) << c.variant;
    EXPECT_EQ(count_of("fma.rn.bf16", ptx), 0) << c.variant;
  }
}

// The kernel compiles for Hopper, no value leaves its register, and no product waits for the one
// before it. A text that has shown that is not compiled again.
void expect_products_in_flight(const jit::KernelKey& key) {
  static test::PassedBefore passed("products_in_flight");
  const std::string hash = test::program_hash(key, "sm_90a");
  if (passed.contains(hash)) return;
  const std::string name = jit::readable_name(key);
  const jit::CompileReport report = jit::compile(key, "sm_90a", true);
  const bool waits = report.log.find("serialized") != std::string::npos;
  EXPECT_EQ(report.spill_bytes, 0u) << name;
  EXPECT_FALSE(waits) << name << report.log;
  if (report.spill_bytes == 0 && !waits) passed.add(hash);
}

// Compiles those rungs of attention for a call, each Config once.
void compile_attention(int64_t head_dim, int64_t rows, const std::vector<op::Value>& options,
                       std::set<std::string>& compiled, int64_t value_dim = 0,
                       DType dtype = DType::bfloat16) {
  const auto e =
      explain_attention("sm_90a", head_dim, value_dim ? value_dim : head_dim, rows, dtype, options);
  for (const op::Considered& c : e.variants) {
    if (c.variant.name != "persistent" && c.variant.name != "wgmma") continue;
    ASSERT_TRUE(c.plan.has_value()) << c.reason;
    const jit::KernelKey& key = c.plan->main().kernel;
    if (compiled.insert(jit::readable_name(key)).second) expect_products_in_flight(key);
  }
}

// Square windows of `taps` rows, images channels last, float32 in tf32: the kernel of the variant
// that is chosen, which has this name.
jit::KernelKey convolution_key(std::string_view variant, const Dims& x_shape, int64_t filters,
                               std::string_view activation, DType dtype = DType::bfloat16,
                               int64_t taps = 3, int64_t stride = 1) {
  alignas(16) static std::byte memory[16];
  const bool is_tf32 = dtype == DType::float32;
  const TensorView x(memory, dtype, x_shape);
  const TensorView w(memory, dtype, {filters, taps, taps, x_shape[3]});
  const auto along = [&](int64_t in) { return (in - taps) / stride + 1; };
  const TensorView out(reinterpret_cast<void*>(uintptr_t(1) << 46), dtype,
                       {x_shape[0], along(x_shape[1]), along(x_shape[2]), filters});
  const std::vector<TensorView> inputs{x, w};
  const op::Operator& conv2d = find_operator("conv2d");
  std::vector<op::Value> options;
  for (const auto& option : conv2d.description().options) {
    options.emplace_back();
    if (option.name == "layout") options.back() = std::string_view("nhwc");
    if (option.name == "activation") options.back() = activation;
    if (option.name == "allow_tf32") options.back() = is_tf32;
    if (option.name == "stride") options.back() = Dims{stride};
  }
  const auto e = conv2d.explain({&out, 1}, {inputs, options}, device_info_of_arch("sm_90a"));
  EXPECT_EQ(e.variant, variant);
  for (const op::Considered& c : e.variants)
    if (c.variant.name == e.variant) return c.plan->main().kernel;
  return {};
}

// Every tile of convolution keeps its sums in registers while products run.
TEST(ConvolutionRungs, CompileForHopperWithTheirProductsInFlight) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  std::set<std::string> compiled;
  for (const std::string_view activation : {"none", "gelu", "hard_swish"}) {
    std::vector<jit::KernelKey> keys;
    const auto add = [&](const Dims& x_shape, int64_t filters) {
      keys.push_back(convolution_key("implicit_wgmma", x_shape, filters, activation));
    };
    for (const int64_t filters : {64, 128, 160, 192, 256}) add({32, 130, 130, 64}, filters);
    add({32, 9, 9, 512}, 512);
    add({1, 9, 9, 512}, 64);
    for (const int64_t filters : {64, 256})
      keys.push_back(convolution_key("implicit_wgmma_tf32", {32, 130, 130, 64}, filters, activation,
                                     DType::float32));
    for (const int64_t taps : {3, 7})
      keys.push_back(convolution_key("direct_wgmma", {32, 232, 232, 3}, 64, activation,
                                     DType::float16, taps, 2));
    for (const jit::KernelKey& key : keys) {
      compiled.insert(jit::readable_name(key));
      expect_products_in_flight(key);
    }
  }
  EXPECT_EQ(compiled.size(), 33u);
}

// The shipped tiles of attention keep scores, weights and output in registers while products run.
TEST(AttentionRungs, CompileForHopperWithTheirProductsInFlight) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  std::set<std::string> compiled;
  for (const int64_t head_dim : {32, 64, 96, 128, 256})
    for (const int64_t rows : {64, 128, 8192})
      for (const bool causal : {false, true})
        compile_attention(head_dim, rows, {std::monostate(), causal}, compiled);
  for (const int64_t rows : {64, 8192})
    for (const int64_t value_dim : {128, 192})
      compile_attention(192, rows, {std::monostate(), true}, compiled, value_dim);
  EXPECT_GT(compiled.size(), 15u);
}

TEST(AttentionRungs, CompileForHopperWithFloat8AndItsProductsInFlight) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const op::Value none, window = Dims{127, 0};
  std::set<std::string> compiled;
  for (const int64_t head_dim : {64, 128, 256})
    for (const int64_t rows : {64, 8192}) {
      const std::vector<op::Value> plain, with_window{none, false, none, window};
      compile_attention(head_dim, rows, plain, compiled, 0, DType::float8_e4m3fn);
      compile_attention(head_dim, rows, with_window, compiled, 0, DType::float8_e4m3fn);
    }
  EXPECT_EQ(compiled.size(), 24u);  // two rungs, two tiles, with and without options
}

TEST(AttentionRungs, CompileForHopperWithEveryLevelOfOptions) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const op::Value none,
      window = Dims{127, 0}, softcap = 50.0,
      mask = TensorView(reinterpret_cast<void*>(uintptr_t(1) << 45), DType::float32, {8192, 8192});
  std::set<std::string> compiled;
  for (const int64_t head_dim : {32, 64, 96, 128, 256}) {
    compile_attention(head_dim, 8192, {none, false, none, window}, compiled);
    compile_attention(head_dim, 8192, {none, false, none, window, softcap}, compiled);
    compile_attention(head_dim, 8192, {none, false, none, window, softcap, none, mask}, compiled);
  }
  for (const int64_t value_dim : {128, 192})
    compile_attention(192, 8192, {none, false, none, window, softcap, none, mask}, compiled,
                      value_dim);
  EXPECT_EQ(compiled.size(), 34u);
}

TEST(CopyBox, CompilesForEveryRank) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const auto result = test::compile_copy_box();
  EXPECT_TRUE(result.ok) << result.log;
}

// T4: elements of a cache are read and written once, by the widest instructions that say so.
TEST(TransferHicache, StreamsSixteenBytesAnInstruction) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const op::Operator& transfer = find_operator("transfer_hicache_one_layer");
  std::vector<TensorView> inputs;  // apart, and never read
  for (uintptr_t i = 0; i < 6; ++i) {
    void* const at = reinterpret_cast<void*>((i + 1) << 40);
    if (i == 2 || i == 5)
      inputs.emplace_back(at, DType::int64, Dims{4});
    else
      inputs.emplace_back(at, DType::bfloat16, Dims{8, 128});
  }
  const TensorView& out = inputs[0];
  const std::vector<op::Value> options(transfer.description().options.size());
  for (const char* number : {"80", "90a"}) {
    const auto e = transfer.explain({&out, 1}, {inputs, options},
                                    device_info_of_arch(std::string("sm_") + number));
    EXPECT_EQ(e.variant, "vectorized");
    const auto row = std::ranges::find(e.variants, e.variant,
                                       [](const op::Considered& r) { return r.variant.name; });
    ASSERT_TRUE(row != e.variants.end() && row->plan);
    const std::string ptx = ptx_of(row->plan->main().kernel, number);
    for (const char* instruction : {"ld.global.cs.v4.b32", "st.global.cs.v4.b32"})
      EXPECT_GE(count_of(instruction, ptx), 2) << instruction << " for " << number;
  }
}

TEST(AsyncWrappers, Compile) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const auto result = test::compile_for_hopper(
      "async_wrappers.cuh",
      "namespace wrappers = tensorcraft::kernel::async_wrappers;\n"
      "extern \"C\" __global__ void __launch_bounds__(128, 1)\n"
      "tc_entry(const __grid_constant__ wrappers::Params p) { wrappers::run(p); }\n");
  EXPECT_TRUE(result.ok) << result.log;
}

}  // namespace
}  // namespace tensorcraft
