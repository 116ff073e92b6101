// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/launch.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/graph.hpp"
#include "tensorcraft/cuda/stream_state.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using test::FakeDriver;
using test::FakeGpu;
using test::FakeLaunch;

std::shared_ptr<const LoadedKernel> load_fake(int device = 0) {
  const std::byte image[4] = {};
  return LoadedKernel::load(image, "tc_entry", device);
}

std::string text_of_launch(const LoadedKernel& kernel, const LaunchConfig& config,
                           StreamRef stream = {}) {
  try {
    launch(kernel, config, nullptr, stream, "softmax");
  } catch (const Error& error) {
    return join(to_string(error.kind()), ": ", error.what());
  }
  return "launched";
}

TEST(LoadedKernel, ReadsItsFiguresAndOptsInToAllSharedMemory) {
  FakeDriver fake;
  {
    const auto kernel = load_fake();
    EXPECT_EQ(kernel->registers(), 42);
    EXPECT_EQ(kernel->static_shared_bytes(), 1024u);
    EXPECT_EQ(kernel->local_bytes(), 16u);
    EXPECT_EQ(fake.max_dynamic_shared[0], 232448 - 1024);
    EXPECT_EQ(fake.calls["cuFuncLoad"], 1);
    EXPECT_EQ(fake.libraries, 1);
  }
  EXPECT_EQ(fake.libraries, 0);
}

TEST(LoadedKernel, StaysLoadedOnceAGraphHasIt) {
  FakeDriver fake;
  const Stream stream;
  const LaunchConfig config{.grid = {1}, .block = {1}};
  launch(*load_fake(), config, nullptr, stream, "softmax");
  EXPECT_EQ(fake.libraries, 0);
  {
    const auto kernel = load_fake();
    const Graph graph(stream, [&] { launch(*kernel, config, nullptr, stream, "softmax"); });
    EXPECT_TRUE(kernel->stays_loaded());
  }
  EXPECT_EQ(fake.libraries, 1);
  {  // recorded by somebody else, of whose graph nothing is known
    const auto kernel = load_fake();
    const Stream other;
    cuda::stream_ends(other);  // from here on nobody here owns it
    fake.capturing = true;
    launch(*kernel, config, nullptr, other, "softmax");
    fake.capturing = false;
    EXPECT_TRUE(kernel->stays_loaded());
  }
  EXPECT_EQ(fake.libraries, 2);
}

TEST(LoadedKernel, CarriesTheDriversLogWhenAnImageIsRefused) {
  FakeDriver fake({FakeGpu{}}, 13000, {{"cuLibraryLoadData", 218}});
  fake.jit_log = "ptxas application, line 3; fatal";
  try {
    load_fake();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::compile);
    EXPECT_STREQ(error.what(),
                 "the driver cannot load the kernel tc_entry (218):\n"
                 "ptxas application, line 3; fatal");
  }
}

TEST(LoadedKernel, UnloadsWhenALaterStepFails) {
  FakeDriver fake({FakeGpu{}}, 13000, {{"cuKernelGetFunction", 500}});
  EXPECT_THROW(load_fake(), Error);
  EXPECT_EQ(fake.libraries, 0);
}

TEST(Launch, PassesShapeStreamAndParameters) {
  FakeDriver fake;
  const auto kernel = load_fake();
  Stream stream;
  int seen = 0;
  fake.on_launch = [&](const FakeLaunch&, const void* params) {
    seen = *static_cast<const int*>(params);
  };
  const int params = 7;
  launch(*kernel, {.grid = {2, 3, 4}, .block = {64, 2, 1}, .shared_bytes = 96}, &params, stream,
         "softmax");
  ASSERT_EQ(fake.launches.size(), 1u);
  const FakeLaunch& got = fake.launches[0];
  EXPECT_EQ(got.grid, (Dim3{2, 3, 4}));
  EXPECT_EQ(got.block, (Dim3{64, 2, 1}));
  EXPECT_EQ(got.shared_bytes, 96u);
  EXPECT_EQ(got.stream, stream.ref().handle());
  EXPECT_EQ(got.num_attributes, 0u);
  EXPECT_EQ(seen, 7);
}

TEST(Launch, PassesClusterAndDependentLaunchAsAttributes) {
  FakeDriver fake;
  const auto kernel = load_fake();
  launch(*kernel, {.grid = {4}, .block = {32}, .cluster = {2}}, nullptr, {}, "gemm");
  launch(*kernel, {.grid = {4}, .block = {32}, .programmatic_dependent_launch = true}, nullptr, {},
         "gemm");
  launch(*kernel,
         {.grid = {4}, .block = {32}, .cluster = {2, 2}, .programmatic_dependent_launch = true},
         nullptr, {}, "gemm");
  ASSERT_EQ(fake.launches.size(), 3u);
  EXPECT_EQ(fake.launches[0].cluster, (Dim3{2, 1, 1}));
  EXPECT_FALSE(fake.launches[0].programmatic_dependent_launch);
  EXPECT_EQ(fake.launches[1].num_attributes, 1u);
  EXPECT_TRUE(fake.launches[1].programmatic_dependent_launch);
  EXPECT_EQ(fake.launches[2].cluster, (Dim3{2, 2, 1}));
  EXPECT_TRUE(fake.launches[2].programmatic_dependent_launch);
}

TEST(Launch, RefusesGridsTheDeviceCannotRun) {
  FakeDriver fake;
  const auto kernel = load_fake();
  EXPECT_EQ(text_of_launch(*kernel, {.grid = {1, 65536, 1}, .block = {32}}),
            "value: softmax: grid (1, 65536, 1) is larger than the device's limit (2147483647, "
            "65535, 65535); split the problem");
  EXPECT_EQ(text_of_launch(*kernel, {.grid = {0, 1, 1}, .block = {32}}),
            "internal: softmax: grid (0, 1, 1) is empty; an empty problem must return before the "
            "launch");
  EXPECT_EQ(text_of_launch(*kernel, {.grid = {0x7fffffff, 65535, 65535}, .block = {32}}),
            "launched");
  EXPECT_EQ(fake.launches.size(), 1u);
}

TEST(Launch, AnErrorNamesTheOperatorTheCallAndTheShape) {
  FakeDriver fake;
  const auto kernel = load_fake();
  fake.failing["cuLaunchKernelEx"] = 701;
  EXPECT_EQ(text_of_launch(*kernel, {.grid = {2}, .block = {1024}, .shared_bytes = 64}),
            "internal: softmax: cuLaunchKernelEx with grid (2, 1, 1), block (1024, 1, 1), 64 bytes "
            "of shared memory, 42 registers: fake error (701)");
}

TEST(Launch, RunsOnTheKernelsDeviceOnly) {
  FakeDriver fake({FakeGpu{}, FakeGpu{}});
  const auto kernel = load_fake(1);
  Stream other(0), own(1);
  EXPECT_EQ(text_of_launch(*kernel, {.grid = {1}, .block = {32}}, other),
            "value: softmax: the kernel is loaded on cuda:1 and the stream belongs to cuda:0; use "
            "a stream of the same device");
  EXPECT_EQ(text_of_launch(*kernel, {.grid = {1}, .block = {32}}, own), "launched");
  EXPECT_EQ(fake.launches[0].device, 1);
}

}  // namespace
}  // namespace tensorcraft
