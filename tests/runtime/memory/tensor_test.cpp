// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/tensor.hpp"

#include "tensorcraft/runtime/memory/driver_allocator.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/expect_line.hpp"
#include "tests/support/fake_driver.hpp"
#include "tests/support/tensors.hpp"

#include "tensorcraft/core/element_type.hpp"

#include <array>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

static_assert(!std::is_copy_constructible_v<Tensor> && !std::is_copy_assignable_v<Tensor>);

int64_t live_blocks(Device device = Device::cpu()) {
  return allocator(device).statistics().live_blocks;
}

Tensor counting(const Dims& shape) {
  Tensor tensor(DType::float32, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.data_as<float>()[i] = float(i);
  return tensor;
}

TEST(Tensor, ReturnsItsMemory) {
  const int64_t before = live_blocks();
  {
    const Tensor tensor(DType::float16, {3, 5});
    EXPECT_EQ(tensor.nbytes(), 30u);
    EXPECT_EQ(live_blocks(), before + 1);
  }
  EXPECT_EQ(live_blocks(), before);
}

TEST(Tensor, IsEmptyOnceItWasMovedFrom) {
  Tensor from = counting({2, 3});
  const void* data = from.data();
  const Tensor to = std::move(from);
  EXPECT_EQ(to.data(), data);
  EXPECT_EQ(from.data(), nullptr);  // NOLINT(bugprone-use-after-move): what is tested
  EXPECT_EQ(from.shape(), Dims{0});
}

TEST(Tensor, AssignmentEmptiesTheSourceAndReturnsTheOldMemory) {
  const int64_t before = live_blocks();
  Tensor from = counting({2, 3}), to = counting({4});
  const void* data = from.data();
  to = std::move(from);
  EXPECT_EQ(to.data(), data);
  EXPECT_EQ(to.shape(), (Dims{2, 3}));
  EXPECT_EQ(from.size(), 0);  // NOLINT(bugprone-use-after-move): what is tested
  EXPECT_EQ(from.data(), nullptr);
  EXPECT_EQ(live_blocks(), before + 1);
}

TEST(Tensor, CopiesItsBytesFromAndToTheHost) {
  const std::vector<float> given{1, 2, 3, 4};
  Tensor tensor(DType::float32, {2, 2});
  tensor.copy_from_host(given.data(), 16);
  std::vector<float> got(4);
  tensor.to(Device::cpu()).copy_to_host(got.data(), 16);
  EXPECT_EQ(got, given);
  test::expect_error(
      ErrorKind::value, [&] { tensor.copy_from_host(given.data(), 12); },
      "copy_from_host: 12 bytes were given for a tensor of 16");
  test::expect_error(
      ErrorKind::value, [&] { tensor.copy_to_host(got.data(), 20); },
      "copy_to_host: room for 20 bytes was given, the tensor has 16");
}

TEST(Tensor, HoldsEveryDtype) {
  for (int i = 0; i < kNumDTypes; ++i) {
    Tensor tensor(DType(i), {7});
    std::vector<unsigned char> given(7 * dtype_bytes(DType(i))), got(given.size());
    for (size_t at = 0; at < given.size(); ++at) given[at] = (unsigned char)(at + 1);
    tensor.copy_from_host(given.data(), given.size());
    tensor.copy_to_host(got.data(), got.size());
    EXPECT_EQ(got, given) << DType(i);
    EXPECT_EQ(tensor.dtype(), DType(i));
  }
}

TEST(Tensor, IsMadeOfValuesAndGivesThemBack) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const Tensor t = Tensor::from(values, {2, 3});
  EXPECT_EQ(t.dtype(), DType::float32);
  EXPECT_EQ(t.shape(), (Dims{2, 3}));
  EXPECT_EQ(t.device(), Device::cpu());
  EXPECT_EQ(t.to_vector<float>(), values);
  EXPECT_NE(t.data(), values.data());
  EXPECT_EQ(Tensor::from({7, 8}, {2}).to_vector<int32_t>(), (std::vector<int32_t>{7, 8}));
  EXPECT_EQ(Tensor::from(std::array{int64_t(9)}, {}).to_vector<int64_t>(), std::vector<int64_t>{9});
  EXPECT_EQ(Tensor::from(std::span(values).first(4), {2, 2}).to_vector<float>().back(), 4);
  const bool flags[] = {true, false, true};
  EXPECT_EQ(Tensor::from(flags, {3}).to_vector<bool>(), (std::vector<bool>{true, false, true}));
  EXPECT_TRUE(Tensor::from(std::vector<f16>(), {0, 4}).to_vector<f16>().empty());
}

TEST(Tensor, IsMadeOfValuesOfEveryDtype) {
  for (int i = 0; i < kNumDTypes; ++i)
    with_element_type(DType(i), [&]<class T>(T*) {
      const std::array<T, 3> values{T(1), T(0), T(1)};
      const Tensor t = Tensor::from(values, {3});
      EXPECT_EQ(t.dtype(), DType(i));
      const std::vector<T> back = t.template to_vector<T>();
      ASSERT_EQ(back.size(), 3u);
      for (size_t at = 0; at < 3; ++at) EXPECT_EQ(float(back[at]), float(at != 1)) << DType(i);
    });
}

TEST(Tensor, IsMadeOfValuesOnAGpu) {
  const test::FakeDriver driver;
  const Tensor t = Tensor::from({1.5f, 2.5f}, {2}, Device::cuda(0));
  EXPECT_EQ(t.device(), Device::cuda(0));
  EXPECT_EQ(t.to_vector<float>(), (std::vector<float>{1.5f, 2.5f}));
  EXPECT_EQ(join(t).substr(0, 10), "[1.5, 2.5]");
}

TEST(Tensor, RefusesValuesThatDoNotFitAndVectorsOfAnotherType) {
  test::expect_error(
      ErrorKind::value, [] { Tensor::from({1.f, 2.f}, {3}); },
      "from: 2 values were given for shape [3], which has 3");
  const Tensor t = counting({2});
  test::expect_error(
      ErrorKind::type, [&] { t.to_vector<int32_t>(); },
      "to_vector: the tensor holds float32, not int32; ask for that type, or convert it with "
      "astype()");
}

TEST(Tensor, GivesViewsOfItsMemory) {
  const Tensor t = counting({2, 3, 4});
  const auto first = [](const TensorView& v) { return v.data_as<float>()[0]; };
  EXPECT_EQ(t.rank(), 3);
  EXPECT_EQ(t.reshape({4, -1}).shape(), (Dims{4, 6}));
  EXPECT_EQ(t.permute({2, 0, 1}).strides(), (Dims{1, 12, 4}));
  EXPECT_EQ(t.transpose(0, -1).shape(), (Dims{4, 3, 2}));
  EXPECT_EQ(first(t.select(0, 1)), 12);
  EXPECT_EQ(first(t.slice(1, -1, 3)), 8);
  t.slice(2, 1, 2).data_as<float>()[0] = -1;
  EXPECT_EQ(t.to_vector<float>()[1], -1);
}

TEST(Tensor, ErrorsNameTheCallersLine) {
  using test::expect_line;
  Tensor t = counting({2, 3});
  expect_line([&] { t.reshape({5}); });
  expect_line([&] { t.permute({0, 0}); });
  expect_line([&] { t.transpose(0, 2); });
  expect_line([&] { t.select(0, 2); });
  expect_line([&] { t.slice(2, 0, 1); });
  expect_line([&] { t.to_vector<int64_t>(); });
  expect_line([&] { Tensor::from({1.f}, {2}); });
  expect_line([&] { Tensor::from(std::vector<float>(3), {2}); });
  expect_line([&] { Tensor::from({1.f}, {1}, Device::cuda(99)); });
  expect_line([&] { t.copy_from_host(nullptr, 1); });
  expect_line([&] { t.copy_to_host(nullptr, 1); });
}

TEST(Tensor, PrintsItsValues) {
  EXPECT_EQ(join(counting({2, 3})),
            "[[0, 1, 2],\n [3, 4, 5]]\n"
            "Tensor<2, 3>[strides=<3, 1>, dtype=float32, device=cpu]");
  const auto values = [](const Tensor& t) {
    const std::string text = join(t);
    return text.substr(0, text.find("\nTensor"));
  };
  EXPECT_EQ(values(counting({2, 1, 2})), "[[[0, 1]],\n [[2, 3]]]");
  EXPECT_EQ(values(counting({})), "0");
  EXPECT_EQ(values(counting({2, 0})), "[[],\n []]");
  EXPECT_EQ(values(Tensor()), "[]");
  EXPECT_EQ(values(Tensor::from({true, false}, {2})), "[true, false]");
  EXPECT_EQ(values(Tensor::from({int8_t(-65), int8_t(66)}, {2})), "[-65, 66]");
  EXPECT_EQ(values(Tensor::from({bf16(1.5f)}, {1})), "[1.5]");
  EXPECT_EQ(values(counting({65})), "[0, 1, 2, ..., 62, 63, 64]");
  EXPECT_EQ(values(counting({7, 10})),
            "[[0, 1, 2, ..., 7, 8, 9],\n [10, 11, 12, ..., 17, 18, 19],\n"
            " [20, 21, 22, ..., 27, 28, 29],\n ...,\n [40, 41, 42, ..., 47, 48, 49],\n"
            " [50, 51, 52, ..., 57, 58, 59],\n [60, 61, 62, ..., 67, 68, 69]]");
}

// Tensors that are made, moved, dropped and refused at random.
void live_randomly(Device device, std::mt19937& random) {
  const int64_t too_many = int64_t(1) << (device.is_cuda() ? 40 : 61);
  std::vector<Tensor> tensors(8);
  for (int step = 0; step < 50; ++step) {
    Tensor &one = tensors[random() % 8], &other = tensors[random() % 8];
    switch (random() % 4) {
      case 0:
        one = Tensor(DType::float32, {int64_t(random() % 100)}, device);
        break;
      case 1:
        one = std::move(other);  // at times itself
        break;
      case 2:
        tensors.erase(tensors.begin() + int64_t(random() % 8));
        tensors.emplace_back();
        break;
      default:
        try {
          const Tensor before_the_failure(DType::int8, {5}, device);
          const Tensor refused(DType::int64, {too_many}, device);
          ADD_FAILURE() << "there was room for " << too_many;
        } catch (const Error& error) {
          ASSERT_EQ(error.kind(), ErrorKind::out_of_memory) << error.what();
        }
    }
  }
}

TEST(Tensor, ReturnsAllMemoryAfterRandomLives) {
  const test::FakeDriver driver;
  std::vector<Device> all = test::places();
  all.push_back(Device::cuda(0));
  for (const Device device : all) {
    const int64_t before = live_blocks(device);
    for (unsigned seed = 0; seed < 100; ++seed) {
      SCOPED_TRACE(join("seed ", seed, " on ", device));
      std::mt19937 random(seed);
      live_randomly(device, random);
      ASSERT_EQ(live_blocks(device), before);
    }
  }
  allocator(Device::cuda()).trim();
  EXPECT_EQ(allocator(Device::cuda()).statistics().reserved, 0);
}

TEST(Tensor, GoesBackOnItsOwnStreamFromAnyThread) {
  const test::FakeDriver driver;
  memory::DriverAllocator source;  // whose frees the driver sees
  const Stream own, current;
  set_current_stream(current);
  const auto made = [&](StreamRef stream) {
    return Tensor(DType::float32, {4}, Device::cuda(0), stream, source);
  };
  Tensor tensor = made(own);
  EXPECT_EQ(tensor.stream(), own.ref());
  std::thread([&tensor] { const Tensor taken = std::move(tensor); }).join();
  EXPECT_EQ(driver.last_free, own.ref().handle());
  Tensor replaced = made(current_stream(0));
  replaced = made(own);
  EXPECT_EQ(driver.last_free, current.ref().handle());
  EXPECT_EQ(replaced.stream(), own.ref());
  set_current_stream(StreamRef());
}

// The pool has room for one: the other stream gets the memory after the work that was told.
TEST(Tensor, IsReusedAfterTheStreamsThatWereRecorded) {
  test::FakeDriver driver({test::FakeGpu{.memory_bytes = 1 << 20}});
  driver.deferred = true;
  const Stream other;
  const void* first = nullptr;
  {
    const Tensor tensor(DType::uint8, {1 << 20}, Device::cuda(0));
    tensor.record(other);
    first = tensor.data();
  }
  EXPECT_EQ(driver.calls["cuStreamWaitEvent"], 0);
  const Tensor next(DType::uint8, {1 << 20}, Device::cuda(0));
  EXPECT_EQ(next.data(), first);
  EXPECT_EQ(driver.calls["cuStreamWaitEvent"], 1);
  Tensor().record(other);
}

TEST(Tensor, IsCopiedAfterWhatItsOwnStreamHolds) {
  test::FakeDriver driver;
  const Stream own;
  const float given[2] = {1, 2};
  float got[2] = {};
  Tensor here(DType::float32, {2}, Device::cuda(0));
  here.copy_from_host(given, sizeof given);
  EXPECT_EQ(driver.calls["cuStreamWaitEvent"], 0);
  Tensor elsewhere(DType::float32, {2}, Device::cuda(0), own);
  elsewhere.copy_from_host(given, sizeof given);
  elsewhere.copy_to_host(got, sizeof got);
  EXPECT_EQ(elsewhere.to(Device::cpu()).data_as<float>()[1], 2);
  EXPECT_EQ(driver.calls["cuStreamWaitEvent"], 3);
  EXPECT_EQ(got[1], 2);
}

// The wait after the copy is refused: the copy comes late, to memory that no other tensor has yet.
TEST(Tensor, IsNotReusedBeforeACopyThatNobodyWaitedFor) {
  test::FakeDriver driver;
  driver.deferred = true;
  const Stream own, first, second;
  const float early[2] = {1, 2}, late[2] = {3, 4};
  float got[2] = {};
  set_current_stream(first);
  {
    Tensor tensor(DType::float32, {2}, Device::cuda(0), own);
    driver.fail_at("cuStreamSynchronize", 1, test::kOutOfMemory);
    EXPECT_THROW(tensor.copy_from_host(early, sizeof early), Error);
  }
  set_current_stream(second);
  Tensor next(DType::float32, {2}, Device::cuda(0), own);
  next.copy_from_host(late, sizeof late);
  first.ref().synchronize();
  next.copy_to_host(got, sizeof got);
  EXPECT_EQ(got[0], 3);
  EXPECT_EQ(got[1], 4);
  set_current_stream(StreamRef());
}

TEST(Tensor, GoesFromOneGpuToAnother) {
  test::FakeDriver driver(std::vector<test::FakeGpu>(2));
  constexpr int64_t kMany = (int64_t(40) << 20) / 8 + 3;  // more than are carried at once
  const Tensor given = [] {
    Tensor t(DType::int64, {kMany});
    for (int64_t i = 0; i < kMany; ++i) t.data_as<int64_t>()[i] = i;
    return t;
  }();
  {
    const Tensor there = given.to(Device::cuda(1)).to(Device::cuda(0));
    EXPECT_EQ(there.device(), Device::cuda(0));
    const Tensor back = there.to(Device::cpu());
    EXPECT_EQ(std::memcmp(back.data(), given.data(), given.nbytes()), 0);
  }
  EXPECT_EQ(pinned_pool(1).statistics().live_blocks, 0);
  pinned_pool(1).trim();
  EXPECT_EQ(driver.pinned, 0);
}

TEST(Tensor, RefusesMoreBytesThanCanBeCounted) {
  const int64_t many = std::numeric_limits<int64_t>::max() / 2;
  EXPECT_THROW(Tensor(DType::int64, {many}), Error);
  EXPECT_THROW(Tensor(DType::float32, {-1}), Error);
}

TEST(CopyBytes, RefusesAnotherDtypeSizeOrStride) {
  const Tensor a = counting({2, 3}), b = counting({6});
  const Tensor half(DType::float16, {6}), shorter(DType::float32, {5});
  copy_bytes(b, a, {});
  for (const Tensor* to : {&half, &shorter}) EXPECT_THROW(copy_bytes(*to, a, {}), Error);
  EXPECT_THROW(copy_bytes(b, a.view().transpose(0, 1), {}), Error);
}

}  // namespace
}  // namespace tensorcraft
