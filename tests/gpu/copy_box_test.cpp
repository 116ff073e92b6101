// SPDX-License-Identifier: Apache-2.0
// The copy engine of a GPU does with a box bit for bit what the emulator does.
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/launch_kernel.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/cuda/tensor_map.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/simt/launch.hpp"
#include "tensorcraft/simt/tensor_map.hpp"
#include "tests/simt/copy_box.cuh"
#include "tests/support/kernel_text.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

namespace tensorcraft {
namespace {

namespace box = kernel::copy_box;
using box::Copy;

constexpr size_t kTensorBytes = 128 * 1024;
using Swizzle = TiledTensor::Swizzle;

struct Case {
  const char* name;
  Copy copy;
  TiledTensor tensor;
  std::array<int32_t, 5> at{};
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// Both memories, before and after.
struct Memory {
  std::vector<uint32_t> tensor = std::vector<uint32_t>(kTensorBytes / 4),
                        box = std::vector<uint32_t>(box::kBytes / 4);
};

template <class T>
void fill(std::vector<uint32_t>& words, std::mt19937& random) {
  auto* values = reinterpret_cast<unsigned char*>(words.data());
  for (size_t i = 0; i < words.size() * 4; i += sizeof(T)) {
    const T value = T(float(int(random() % 2001) - 1000) / 8);
    std::memcpy(values + i, &value, sizeof(T));
  }
}

Memory start(DType dtype) {
  std::mt19937 random(3);
  Memory m;
  for (auto* words : {&m.tensor, &m.box})
    dtype == DType::float32    ? fill<float>(*words, random)
    : dtype == DType::float16  ? fill<f16>(*words, random)
    : dtype == DType::bfloat16 ? fill<bf16>(*words, random)
                               : fill<int32_t>(*words, random);
  return m;
}

uint32_t box_words(const TiledTensor& t) {
  size_t bytes = dtype_bytes(t.dtype) * t.box[0];
  for (size_t i = 1; i < size_t(t.rank); ++i)
    bytes *= (t.box[i] + t.element_strides[i] - 1) / t.element_strides[i];
  return uint32_t(bytes / 4);
}

box::Params params(const Case& c, const TensorMap& map, void* memory) {
  box::Params p{map, {}, box_words(c.tensor), static_cast<uint32_t*>(memory)};
  std::copy(c.at.begin(), c.at.end(), p.at);
  return p;
}

template <int kRank>
simt::Body body_of_rank(Copy copy) {
  const auto body = [](auto c) -> simt::Body {
    return [](const void* p) {
      box::run<kRank, decltype(c)::value>(*static_cast<const box::Params*>(p));
    };
  };
  switch (copy) {
    case Copy::load:
      return body(std::integral_constant<Copy, Copy::load>());
    case Copy::store:
      return body(std::integral_constant<Copy, Copy::store>());
    case Copy::add:
      return body(std::integral_constant<Copy, Copy::add>());
    case Copy::min:
      return body(std::integral_constant<Copy, Copy::min>());
    default:
      return body(std::integral_constant<Copy, Copy::max>());
  }
}
simt::Body body(const Case& c) {
  constexpr simt::Body (*kRanks[])(Copy) = {body_of_rank<1>, body_of_rank<2>, body_of_rank<3>,
                                            body_of_rank<4>, body_of_rank<5>};
  return kRanks[c.tensor.rank - 1](c.copy);
}

void run_on_simt(const Case& c, Memory& m) {
  // Vectors of words are not aligned enough for the copy engine.
  alignas(128) static unsigned char tensor[kTensorBytes];
  std::memcpy(tensor, m.tensor.data(), kTensorBytes);
  TiledTensor t = c.tensor;
  t.address = tensor;
  const box::Params p = params(c, simt::encode_tiled(t), m.box.data());
  simt::launch({.name = c.name, .block = {32}, .shared_bytes = sizeof(box::Shared)}, body(c), &p);
  std::memcpy(m.tensor.data(), tensor, kTensorBytes);
}

void run_on_gpu(const Case& c, Memory& m, const std::string& image) {
  static constexpr const char* kNames[] = {"load", "store", "add", "min", "max"};
  const std::string entry = kNames[int(c.copy)] + ("_" + std::to_string(c.tensor.rank));
  const auto kernel = LoadedKernel::load(std::as_bytes(std::span(image)), entry.c_str(), 0);
  const StreamRef stream;
  void* const tensor = cuda::allocate(kTensorBytes, stream);
  void* const memory = cuda::allocate(box::kBytes, stream);
  cuda::copy_async(tensor, m.tensor.data(), kTensorBytes, stream);
  cuda::copy_async(memory, m.box.data(), box::kBytes, stream);
  TiledTensor t = c.tensor;
  t.address = tensor;
  LaunchKernel({1}, {32}, stream, sizeof(box::Shared))(*kernel,
                                                       params(c, cuda::encode_tiled(t), memory));
  cuda::copy_async(m.tensor.data(), tensor, kTensorBytes, stream);
  cuda::copy_async(m.box.data(), memory, box::kBytes, stream);
  stream.synchronize();
  cuda::deallocate(tensor, stream);
  cuda::deallocate(memory, stream);
}

class CopyBox : public testing::TestWithParam<Case> {};

TEST_P(CopyBox, IsTheSameOnGpuAndSimt) {
  const Case& c = GetParam();
  Memory simt = start(c.tensor.dtype), gpu = simt;
  const Memory before = simt;
  run_on_simt(c, simt);
  EXPECT_NE(c.copy == Copy::load ? simt.box : simt.tensor,
            c.copy == Copy::load ? before.box : before.tensor);
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  if (cuda_device_count() == 0) GTEST_SKIP() << cuda::driver_problem();
  if (device_info(Device::cuda(0)).arch() != "sm_90a") GTEST_SKIP() << "not a Hopper GPU";
  static const auto compiled = test::compile_copy_box();
  ASSERT_TRUE(compiled.ok) << compiled.log;
  run_on_gpu(c, gpu, compiled.image);
  for (size_t i = 0; i < gpu.box.size(); ++i)
    ASSERT_EQ(gpu.box[i], simt.box[i])
        << std::hex << "word " << i << ": GPU " << gpu.box[i] << ", emulator " << simt.box[i];
  for (size_t i = 0; i < gpu.tensor.size(); ++i)
    ASSERT_EQ(gpu.tensor[i], simt.tensor[i]) << "word " << i << " of the tensor";
}

// 104 x 60 elements, rows of 512 bytes.
TiledTensor plane(DType dtype, uint32_t columns, uint32_t rows, Swizzle swizzle = Swizzle::none) {
  return {.dtype = dtype,
          .rank = 2,
          .dims = {104, 60},
          .strides = {512},
          .box = {columns, rows},
          .swizzle = swizzle};
}
TiledTensor with_nan(TiledTensor t) {
  t.nan_fill = true;
  return t;
}
TiledTensor solid(int rank) {
  return {.dtype = DType::float32,
          .rank = rank,
          .dims = {12, 9, 7, 5, 3},
          .strides = {64, 640, 5120, 25600},
          .box = {8, 6, 4, 3, 2}};
}
TiledTensor stepped() {
  TiledTensor t = solid(5);
  t.element_strides = {1, 2, 3, 1, 2};
  return t;
}

const Case kCases[] = {
    {"line", Copy::load, solid(1), {4}},
    {"plane", Copy::load, plane(DType::float32, 32, 16), {4, 2}},
    {"plane_outside", Copy::load, plane(DType::bfloat16, 64, 32), {-8, 50}},
    {"swizzle_32", Copy::load, plane(DType::bfloat16, 16, 40, Swizzle::bytes_32), {8, 1}},
    {"swizzle_64", Copy::load, plane(DType::float32, 16, 40, Swizzle::bytes_64), {8, 1}},
    {"swizzle_128", Copy::load, plane(DType::bfloat16, 64, 64, Swizzle::bytes_128), {56, -5}},
    {"nan_float32", Copy::load, with_nan(plane(DType::float32, 32, 16)), {88, 55}},
    {"nan_bfloat16", Copy::load, with_nan(plane(DType::bfloat16, 32, 16)), {88, 55}},
    {"nan_float16", Copy::load, with_nan(plane(DType::float16, 32, 16)), {88, 55}},
    {"solid_3", Copy::load, solid(3), {4, -1, 5}},
    {"solid_4", Copy::load, solid(4), {8, 1, -2, 4}},
    {"solid_5", Copy::load, solid(5), {0, 4, 5, 3, 2}},
    {"stepped", Copy::load, stepped(), {4, 1, 0, 1, -1}},
    {"store", Copy::store, plane(DType::float32, 32, 16, Swizzle::bytes_128), {84, 50}},
    {"store_5", Copy::store, solid(5), {4, 4, 5, 3, 2}},
    {"store_5_all_inside", Copy::store, solid(5), {4, 3, 3, 2, 1}},
    {"store_3", Copy::store, solid(3), {4, 4, 5}},
    {"store_4", Copy::store, solid(4), {4, 4, 5, 3}},
    {"store_stepped", Copy::store, stepped(), {4, 1, 0, 1, 0}},
    {"add_float32", Copy::add, plane(DType::float32, 32, 16), {84, 50}},
    {"add_bfloat16", Copy::add, plane(DType::bfloat16, 64, 16, Swizzle::bytes_128), {48, 50}},
    {"add_float16", Copy::add, plane(DType::float16, 64, 16), {48, 50}},
    {"add_int32", Copy::add, plane(DType::int32, 32, 16), {48, 50}},
    {"min_float16", Copy::min, plane(DType::float16, 64, 16), {8, 8}},
    {"max_bfloat16", Copy::max, plane(DType::bfloat16, 64, 16), {8, 8}},
    {"max_int32", Copy::max, plane(DType::int32, 32, 16), {8, 8}},
};
INSTANTIATE_TEST_SUITE_P(Boxes, CopyBox, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tensorcraft
