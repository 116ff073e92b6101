// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/compat.hpp"

#include "tensorcraft/diagnose/request.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <type_traits>

namespace tensorcraft {
namespace {

using test::expect_error;

TEST(Irange, CountsFromZeroOrFromABeginning) {
  int64_t sum = 0;
  for (const int64_t i : irange(int64_t(5))) sum += i;
  EXPECT_EQ(sum, 10);
  unsigned total = 0;
  for (const unsigned i : irange(2u, 5u)) total += i;
  EXPECT_EQ(total, 9u);
  for (const int i : irange(-3)) FAIL() << i;
  for (const int i : irange(3, 3)) FAIL() << i;
  for (const int i : irange(4, 3)) FAIL() << i;
}

template <class T>
concept Offsettable = requires(T* p) { pointer::offset(p, 1); };
static_assert(Offsettable<void> && Offsettable<const void>);
static_assert(!Offsettable<int> && !Offsettable<char>);

TEST(Pointer, OffsetsAreBytesAndAddUp) {
  char bytes[16];
  void* p = bytes;
  const void* q = bytes;
  EXPECT_EQ(pointer::offset(p, 3, int64_t(4), 1u), bytes + 8);
  EXPECT_EQ(pointer::offset(q, 5), bytes + 5);
  EXPECT_EQ(pointer::offset(pointer::offset(p, 8), -8), p);
}

TEST(Pointer, ValidateAlignmentRefusesAnAddressBetweenVectors) {
  alignas(16) float x[8] = {};
  validate_alignment<float, 4>(x);
  validate_alignment<float, 4>(x + 4);
  expect_error(
      ErrorKind::value, [&] { validate_alignment<float, 4>(x + 1); },
      "Pointer not aligned for vectorized access");
}

TEST(Requirements, JudgesEachPrecisionOnItsOwn) {
  const DType wanted[] = {DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2};
  const auto ampere = validate_requirement_feasibility({.compute_capability = 86}, wanted);
  ASSERT_EQ(ampere.size(), 3u);
  EXPECT_TRUE(ampere[0].supported);
  EXPECT_EQ(ampere[0].message, "");
  EXPECT_FALSE(ampere[1].supported);
  EXPECT_EQ(ampere[1].message, "Warning: FP8_E4M3 not supported on this GPU");
  EXPECT_EQ(ampere[2].message, "Warning: FP8_E5M2 not supported on this GPU");
  for (const int newer : {89, 90, 100, 121})
    for (const Feasibility& f :
         validate_requirement_feasibility({.compute_capability = newer}, wanted))
      EXPECT_TRUE(f.supported) << newer;
}

TEST(Requirements, RefusesOldArchitecturesWithTheExactMessage) {
  const DType wanted[] = {DType::float32};
  const auto answers = validate_requirement_feasibility({.compute_capability = 75}, wanted);
  EXPECT_FALSE(answers.at(0).supported);
  EXPECT_EQ(answers[0].message, "Error: GPU compute capability 75 not in supported list");
}

TEST(Requirements, AreComprehensive) {
  const RequirementMatrix matrix = define_comprehensive_requirements();
  EXPECT_EQ(matrix.precisions.size(), 5u);
  EXPECT_EQ(matrix.layouts.size(), 4u);
  EXPECT_EQ(matrix.modes.size(), 4u);
  EXPECT_EQ(std::ranges::count(matrix.modes, ComputeMode::GRADIENT_COMPUTATION), 0);
  for (const ComputeMode mode : matrix.modes)
    EXPECT_EQ(find_operator(operator_of(mode)).description().name, operator_of(mode));
  ASSERT_EQ(matrix.sizes.size(), 9u);
  EXPECT_EQ(matrix.sizes.front(), (std::array<int64_t, 3>{64, 64, 64}));
  EXPECT_EQ(matrix.sizes.back(), (std::array<int64_t, 3>{16384, 16384, 16384}));
  EXPECT_EQ(matrix.architectures, (std::vector<int>{80, 86, 89, 90}));
  EXPECT_EQ(matrix.ratio, 0.9);
}

// The call of a product on an H100, explained.
op::Explanation explained_product(int64_t size) {
  const DeviceInfo device = device_info_of_arch("sm_90a");
  const std::vector<TensorView> in(2, {nullptr, DType::bfloat16, {size, size}, device.device}),
      out(1, in[0]);
  return find_operator("gemm").explain(out, {in, {}}, device);
}

const op::Considered& chosen(const op::Explanation& e) {
  return *std::ranges::find(e.variants, e.variant, [](const auto& c) { return c.variant.name; });
}

KernelSpecification specification(const op::Explanation& e) {
  return chosen(e).plan->main().kernel;
}

TEST(DocumentedNames, ASpecificationHasNoSizesOfACall) {
  const KernelSpecification first = specification(explained_product(8192));
  EXPECT_EQ(first.types[0], DType::bfloat16);
  EXPECT_EQ(first, specification(explained_product(8192 + 2048)));
  EXPECT_EQ(jit::entry_text(first, "sm_90a"),
            jit::entry_text(specification(explained_product(8192 + 2048)), "sm_90a"));
}

// No member of a value says otherwise, so nobody can ask for a compiler that is not there.
TEST(DocumentedNames, EveryKernelIsCompiledByNvrtc) {
  static_assert(CompilationOptions::use_nvrtc && CompilationOptions{}.use_nvrtc);
  static_assert(std::is_const_v<decltype(CompilationOptions::use_nvrtc)>);
  static_assert(sizeof(CompilationOptions) == 2, "what can be chosen: debug and lines");
}

TEST(DocumentedNames, CompilationOptionsHaveALevelAndAName) {
  const CompilationOptions fast, debug{.device_debug = true};
  EXPECT_EQ(fast.optimization_level(), 3);
  EXPECT_EQ(debug.optimization_level(), 0);
  EXPECT_NE(to_string(fast), to_string(debug));
  const jit::Toolchain toolchain{{13, 0}, {90}};
  const CompilationFlags flags = jit::compilation_flags("sm_90a", toolchain, fast);
  EXPECT_EQ(flags.at(0), "--gpu-architecture=sm_90a");
  EXPECT_EQ(jit::compilation_flags("sm_90a", toolchain, debug).size(), flags.size() + 1);
}

// As stages of a product are, see GemmConfig.WhatIsFixedChangesTheKernelsTextAndShowsInExplain.
TEST(DocumentedNames, UnrollingAndVectorWidthsAreFieldsOfConfigs) {
  const DeviceInfo hopper = device_info_of_arch("sm_90a");
  const auto explained = [&](const std::string& call) {
    const diagnose::RequestText text = diagnose::parse_request(call);
    return diagnose::Request(find_operator(text.op), text, hopper).explain();
  };
  const auto differ = [&](const std::string& a, const std::string& in_a, const std::string& b,
                          const std::string& in_b) {
    const op::Explanation first = explained(a), second = explained(b);
    EXPECT_NE(op::to_string(first).find(in_a), std::string::npos) << op::to_string(first);
    EXPECT_NE(op::to_string(second).find(in_b), std::string::npos) << op::to_string(second);
    EXPECT_NE(jit::entry_text(specification(first), "sm_90a"),
              jit::entry_text(specification(second), "sm_90a"));
  };
  differ("softmax 64x64", "vector = 4", "softmax 64x63", "vector = 1");
  const std::string move =
      "transfer_hicache_one_layer 64x128 64x128 10:int64 64x128 64x128 10:int64 --option unroll=";
  differ(move + "1", "lanes = 32", move + "4", "lanes = 8");
}

TEST(DocumentedNames, TheRegistryHasEveryOperatorOnce) {
  const KernelRegistry& registry = operators();
  ASSERT_FALSE(registry.empty());
  for (const op::Operator* one : registry)
    EXPECT_EQ(&find_operator(one->description().name), one) << one->description().name;
}

TEST(DocumentedNames, TheManagersKeepConfigurationsAndKernels) {
  const test::TemporaryFolder folder;
  ConfigurationManager configurations(folder.file("one.tuned"));
  const op::TuningKey key{"a GPU", "gemm", "a call", "1"};
  EXPECT_FALSE(configurations.result(key).has_value());
  configurations.set_result({key, {"tma", "tile_m=128", 2, 3}});
  EXPECT_EQ(configurations.result(key)->entry.config, "tile_m=128");
  CacheManager cache(folder.path(), 1 << 20);
  EXPECT_EQ(cache.stat().entries, 0u);
  EXPECT_TRUE(cache.list().empty());
}

TEST(DocumentedNames, TheProfilerTimesACall) {
  diagnose::Rotation rotation;
  int calls = 0;
  const diagnose::KernelProfile profile =
      PerformanceProfiler(StreamRef(), 3)
          .profile_kernel([&](int) { ++calls; }, rotation, {.flops = 1e6});
  EXPECT_GT(profile.median_us, 0);
  EXPECT_GT(profile.achieved_tflops, 0);
  EXPECT_GE(calls, 3);
}

TEST(DocumentedNames, TheProfilerOfAStreamGivesMilliseconds) {
  test::FakeDriver fake;
  const Stream stream;
  CUDAPerformanceProfiler profiler(stream);
  profiler.start();
  fake.clock_ms += 3;
  EXPECT_EQ(profiler.stop(), 3);
}

}  // namespace
}  // namespace tensorcraft
