// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/request.hpp"

#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tensorcraft::diagnose {
namespace {

using test::expect_error;

op::Explanation explain(const std::string& line, const DeviceInfo& device) {
  const RequestText text = parse_request(line);
  return Request(find_operator(text.op), text, device).explain();
}
op::Explanation on_hopper(const std::string& line) {
  return explain(line, device_info_of_arch("sm_90a"));
}
void expect_refusal(const std::string& line, const std::string& message) {
  expect_error(ErrorKind::value, [&] { on_hopper(line); }, message);
}

TEST(Request, ReadsOneLine) {
  const RequestText text = parse_request(
      "  gemm 4x8\t8x2 --dtype bfloat16 --option alpha=2 --variant tiled --option bias=2 ");
  EXPECT_EQ(text.op, "gemm");
  EXPECT_EQ(text.shapes, (std::vector<std::string>{"4x8", "8x2"}));
  EXPECT_EQ(text.dtype, "bfloat16");
  EXPECT_EQ(text.options, (std::vector<std::string>{"alpha=2", "bias=2"}));
  EXPECT_EQ(text.variant, "tiled");
}

TEST(Request, ArraysWithoutMemoryDoNotOverlap) {
  EXPECT_FALSE(
      on_hopper("layer_norm 64x256 --option weight=256 --option bias=256").variant.empty());
  const RequestText text = parse_request("rms_norm 64x256 --option weight=256");
  const Request request(find_operator(text.op), text, device_info_of_arch("sm_90a"));
  ASSERT_EQ(request.inputs().size(), 1u);
  EXPECT_EQ(request.inputs()[0].shape(), (Dims{64, 256}));
  ASSERT_EQ(request.outputs().size(), 1u);
  EXPECT_EQ(std::get<TensorView>(request.options()[0]).shape(), (Dims{256}));
}

TEST(Request, RowsMayBeApart) {
  const RequestText text = parse_request("gemm 3x16x32/40:float16 32x8/9 --dtype float16");
  const Request request(find_operator(text.op), text, device_info_of_arch("sm_90a"));
  EXPECT_EQ(request.inputs()[0].shape(), (Dims{3, 16, 32}));
  EXPECT_EQ(request.inputs()[0].strides(), (Dims{640, 40, 1}));
  EXPECT_EQ(request.inputs()[1].strides(), (Dims{9, 1}));
  EXPECT_TRUE(request.outputs()[0].is_contiguous());
}

TEST(Request, AnInputMayBeAbsent) {
  const op::Explanation e =
      on_hopper("append_kv 9x64x656:uint8 none 12x1x576 none 12:int32 --dtype bfloat16");
  EXPECT_EQ(e.variant, "latent_warp");
  expect_refusal("append_kv 9x64x1x576 none 12x1x576 --dtype bfloat16",
                 "append_kv: takes 5 shapes (k_cache, v_cache, k, v, slots), got 3");
}

TEST(Request, AnOutputMayLieElsewhere) {
  EXPECT_EQ(on_hopper("add 4x1024 4x1024").variant, "vectorized");
  EXPECT_EQ(on_hopper("add 4x1024 4x1024 --out 4x1024").variant, "vectorized");
  EXPECT_NE(on_hopper("add 4x1024 4x1024 --out 4x1024/1025").variant, "vectorized");
  EXPECT_EQ(on_hopper("topk 4x64 --option k=2 --out 4x2/8 --out 4x2").op, "topk");
  expect_refusal("relu 8 --out 8 --out 8", "relu: has 1 output, got 2 shapes of them");
  expect_refusal(
      "relu 8 --out 9",
      "relu: out: Size mismatch for shape#0: expected 8 but got 9; out is [9], expected [8]");
}

// An array that is there is not one that was left out.
TEST(Request, TensorsHaveAddresses) {
  for (const char* line : {"conv2d 1x16x8x8 8x16x3x3 --option residual=1x8x6x6", "gemm 8x8 8x8"}) {
    const RequestText text = parse_request(line);
    const Request request(find_operator(text.op), text, device_info_of_arch("sm_90a"));
    std::vector<const void*> addresses;
    for (const auto* tensors : {&request.inputs(), &request.outputs()})
      for (const TensorView& t : *tensors) addresses.push_back(t.data());
    for (const op::Value& value : request.options())
      if (const auto* t = std::get_if<TensorView>(&value)) addresses.push_back(t->data());
    std::ranges::sort(addresses);
    EXPECT_NE(addresses.front(), nullptr) << line;
    EXPECT_EQ(std::ranges::adjacent_find(addresses), addresses.end()) << line;
  }
}

TEST(Request, RefusesALineOfAnotherForm) {
  expect_refusal("", "\"\" names no operator");
  expect_refusal("gemm 4x4 --dtype", "\"gemm 4x4 --dtype\": --dtype needs a value");
  expect_refusal("gemm --fast 4x4",
                 "\"gemm --fast 4x4\": there is no --fast; there are --dtype, "
                 "--option, --out and --variant");
}

TEST(Request, CountsTheWorkOfTheShapesAndDtypes) {
  EXPECT_EQ(on_hopper("gemm 16x32 32x8").cost.bytes, 4.0 * (16 * 32 + 32 * 8 + 16 * 8));
  EXPECT_EQ(on_hopper("gemm 16x32 32x8 --dtype float16").cost.bytes,
            2.0 * (16 * 32 + 32 * 8 + 16 * 8));
  EXPECT_EQ(on_hopper("embedding 8:int64 100x16").cost.bytes, 8 * 8 + 2.0 * 4 * 8 * 16);
  EXPECT_EQ(on_hopper("add scalar scalar").cost.bytes, 12);
}

TEST(Request, PassesEveryKindOfOption) {
  const auto config = [](const std::string& options) {
    const op::Explanation e = on_hopper("gemm 16x32 32x32 " + options);
    for (const op::Considered& c : e.variants)
      if (c.variant.name == e.variant) return op::config_text(c.plan->steps()[0]);
    return std::string("nothing accepts");
  };
  const auto holds = [&](const char* options, const char* text) {
    return config(options).find(text) != std::string::npos;
  };
  EXPECT_TRUE(holds("", "has_bias = 0"));
  EXPECT_TRUE(holds("--option bias=32", "has_bias = 1"));
  EXPECT_TRUE(holds("", "b_layout = row_major"));
  EXPECT_FALSE(holds("--option transpose_b=true", "b_layout = row_major"));
  EXPECT_TRUE(holds("--option activation=relu", "activation = relu"));
  EXPECT_TRUE(holds("--option activation=None --option alpha=0.5", "activation = none"));
  EXPECT_EQ(on_hopper("astype 10 --option dtype=int64").cost.bytes, 10 * 12);
  EXPECT_EQ(on_hopper("permute_dims 64x64x2 --option axes=1,0,2").variant, "vectorized");
  EXPECT_EQ(on_hopper("pad 4x6 --option pad_width=1").cost.bytes, 4 * (24 + 48));
  EXPECT_EQ(on_hopper("pad 4x6 --option pad_width=0:1,2:0").cost.bytes, 4 * (24 + 40));
  EXPECT_EQ(on_hopper("elementwise 8 8 --option expression=g*u+b --option operands=g,u,b=0.5").op,
            "elementwise");
  for (const char* seed : {"7", "-7", "scalar:int64", "4:int32"})
    EXPECT_EQ(on_hopper(join("sample 4x5000 --option seed=", seed)).variant, "split") << seed;
  expect_refusal(
      "sample 4x6 --option seed=3:int64",
      "sample: seed: expected a number, or a tensor of shape () or [4], one for each row "
      "of logits, got shape [3]");
  expect_refusal("sample 4x6 --option top_p=x",
                 "sample: top_p must be a shape such as 4096x512, 8:int64, scalar, or 4096x512/520 "
                 "if rows are 520 elements apart, got \"x\"");
  expect_refusal("pad 4x6 --option pad_width=0:1,2:",
                 "pad: pad_width must be whole numbers such as 1 or 1,2, or lists such as 0:1,2:3, "
                 "got \"0:1,2:\"");
  expect_refusal("elementwise 8 --option expression=g --option operands=g,b=x",
                 "elementwise: operands: b must be a number of 64 bits, True or False, got \"x\"");
  expect_refusal("elementwise 8 --option expression=g --option operands=g,u",
                 "elementwise: operands: u needs an array, and there are 1");
  expect_refusal("gemm 16x32 32x32 --option bias=31",
                 "gemm: bias: Size mismatch for shape#0('n'): expected 32 but got 31 (n is "
                 "b.shape[1]); b is [32, 32], bias is [31]");
  expect_error(
      ErrorKind::axis, [] { on_hopper("softmax 4x8 --option axis=2"); },
      "softmax: axis must be in [-2, 2), got 2");
}

TEST(Request, WantsNamesForTheArraysOfAnExpression) {
  expect_refusal("elementwise 8 8 --option expression=g*u",
                 "elementwise: name the 2 arrays as its expression does, such as --option "
                 "operands=g,u");
}

TEST(Request, TakesShortNamesOfDtypes) {
  EXPECT_EQ(on_hopper("relu 8 --dtype bf16").cost.bytes, 2 * 2 * 8);
  EXPECT_EQ(on_hopper("embedding 8:i32 100x16").cost.bytes, 8 * 4 + 2.0 * 4 * 8 * 16);
  EXPECT_EQ(on_hopper("astype 10 --option dtype=i64").cost.bytes, 10 * 12);
}

TEST(Request, EstimatesEachVariantThatAccepts) {
  const op::Explanation e = on_hopper("gemm 2048x2048 2048x2048 --dtype bf16");
  const auto estimate = [&](std::string_view name) {
    for (const op::Considered& c : e.variants)
      if (c.variant.name == name) return c.estimate_us;
    return -1.0;
  };
  EXPECT_GT(e.floor_us, 0);
  for (const op::Considered& c : e.variants) {
    EXPECT_EQ(c.estimate_us > 0, c.plan.has_value()) << c.variant.name;
    EXPECT_TRUE(!c.plan || c.estimate_us >= e.floor_us) << c.variant.name;
  }
  EXPECT_GT(estimate("naive"), 5 * estimate("tensor_core"));  // no tensor cores
  EXPECT_EQ(op::file_of(e.variants.back()), "tensorcraft/ops/gemm/00_naive.cuh");
  const auto cpu = explain("gemm 64x64 64x64", device_info(Device::cpu()));
  for (const op::Considered& c : cpu.variants) EXPECT_EQ(c.estimate_us, 0) << c.variant.name;
}

TEST(Request, TakesSettingsAsText) {
  const auto e =
      on_hopper("gemm 2048x2048 2048x2048 --dtype bf16 --option config=tile_m=64,tile_n=128");
  const op::Considered& first = e.variants.front();
  ASSERT_TRUE(first.plan.has_value()) << first.reason;
  EXPECT_EQ(op::config_text(first.plan->first()).find("block_m = 64, block_n = 128"), 0u);
  expect_refusal(
      "gemm 8x8 8x8 --option config=tile=1",
      "gemm: config has no \"tile\"; it may have tile_m, tile_n, tile_k, warp_m, warp_n, "
      "stages, cluster_m, cluster_n, consumers, split, schedule");
}

TEST(Request, NamesAnArchitectureThatIsNotHere) {
  const auto device = [](std::vector<test::FakeGpu> gpus) {
    const test::FakeDriver driver(std::move(gpus));
    return on_hopper("relu 8").device;
  };
  EXPECT_EQ(device({}), "sm_90a");
  EXPECT_EQ(device({{.compute_capability = 75}}), "sm_90a");  // too old to be used
  EXPECT_EQ(device({{.compute_capability = 80}}), "sm_90a");
  EXPECT_EQ(device({{.compute_capability = 90}}), "cuda:0");
  EXPECT_EQ(explain("relu 8", device_info(Device::cpu())).device, "cpu");
}

TEST(Request, ChoosesAsTheCallWould) {
  EXPECT_EQ(on_hopper("gemm 256x64 64x256 --dtype bfloat16").op, "gemm");
  EXPECT_EQ(explain("softmax 4x8", device_info(Device::cpu())).variant, "cpu");
  EXPECT_EQ(explain("softmax 4x8 --variant reference", device_info(Device::cpu())).variant,
            "reference");
  EXPECT_EQ(on_hopper("gemm 64x64 64x64 --variant naive").variant, "naive");
}

TEST(Request, SaysWhatIsWrongWithWhichPart) {
  expect_refusal(
      "gemm 4x4",
      "gemm: takes 2 to 9 shapes (a, b, and one for each array that an option names), got 1");
  expect_refusal("relu", "relu: takes 1 shape (x), got 0");
  const std::string form =
      " must be a shape such as 4096x512, 8:int64, scalar, or 4096x512/520 if rows are 520 "
      "elements "
      "apart, got ";
  for (const std::string shape : {"4x", "x4", "4xx4", "-4", "4.5", "four", "99999999999999999999",
                                  "1x1x1x1x1x1x1x1x1", "4X4"})
    expect_refusal("relu " + shape, "relu: x" + form + '"' + shape + '"');
  EXPECT_EQ(on_hopper("relu 0x10").cost.bytes, 0);
  const std::string dtypes =
      "a dtype (float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, int8, int16, int32, "
      "int64, uint8, bool)";
  expect_refusal("relu 4 --dtype half", "relu: dtype must be " + dtypes + ", got \"half\"");
  expect_refusal("relu 4:int9",
                 "relu: x must be " + dtypes + ", got \"4:int9\"; did you mean int8?");
  expect_refusal("softmax 4 --option axis=1.5",
                 "softmax: axis must be a whole number, got \"1.5\"");
  expect_refusal("gemm 4x4 4x4 --option alpha=big", "gemm: alpha must be a number, got \"big\"");
  expect_refusal("gemm 4x4 4x4 --option transpose_a=yes",
                 "gemm: transpose_a must be true or false, got \"yes\"");
  expect_refusal("softmax 4 --option axis", "softmax: an option is NAME=VALUE, got \"axis\"");
  expect_refusal(
      "softmax 4 --option axes=1",
      "softmax: there is no option \"axes\"; there are: axis, scale, mask; did you mean axis?");
  expect_refusal("softmax 4 --variant best", [] {
    std::string names;
    for (const auto& v : find_operator("softmax").description().variants)
      names.append(names.empty() ? "" : ", ").append(v.name);
    return "softmax: no variant is named \"best\"; there are " + names;
  }());
}

}  // namespace
}  // namespace tensorcraft::diagnose
