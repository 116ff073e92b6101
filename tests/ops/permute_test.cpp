// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/permute/permute.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/permute/02_tiled.cuh"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;

std::vector<Device> devices_with_kernels() {
  std::vector<Device> all{Device::cpu()};
  if (devices().back() == Device::simt()) all.push_back(Device::simt());
  return all;
}

// Random bits: NaNs with every payload among them.
Tensor random_bits(DType dtype, const Dims& shape, Device device) {
  Tensor t(dtype, shape, device);
  std::mt19937 random(5);
  std::generate_n(t.data_as<uint8_t>(), t.nbytes(), [&] { return uint8_t(random()); });
  return t;
}

bool same_memory(const Tensor& a, const Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.view().data(), b.view().data(), a.nbytes()) == 0;
}

// Byte for byte what the strides of `x` say.
void expect_moved(const Tensor& got, const TensorView& x) {
  ASSERT_EQ(got.shape(), x.shape());
  const size_t bytes = dtype_bytes(x.dtype());
  const Dims& shape = x.shape();
  for (int64_t i = 0; i < x.size(); ++i) {
    int64_t rest = i, offset = 0;
    for (int a = shape.rank() - 1; a >= 0; --a) {
      offset += rest % shape[a] * x.stride(a);
      rest /= shape[a];
    }
    ASSERT_EQ(std::memcmp(got.data_as<std::byte>() + size_t(i) * bytes,
                          x.data_as<std::byte>() + offset * int64_t(bytes), bytes),
              0)
        << x << ", element " << i;
  }
}

TEST(PermuteDims, MovesTheBitsOfEveryDtypeByEveryVariant) {
  for (const Device device : devices_with_kernels())
    for (int d = 0; d < kNumDTypes; ++d) {
      const Tensor x = random_bits(DType(d), {16, 80, 96}, device);
      for (const Dims& axes : {Dims{0, 2, 1}, Dims{2, 1, 0}, Dims{1, 0, 2}}) {
        const int order[] = {int(axes[0]), int(axes[1]), int(axes[2])};
        for (const auto& row : find_operator("permute_dims").description().variants) {
          const bool is_host = row.device == DeviceType::cpu;
          if (is_host != (device == Device::cpu())) continue;
          if (!is_host && row.name != "naive" && (order[2] == 2) != (row.name == "vectorized"))
            continue;
          expect_moved(permute_dims(x, {.axes = axes, .variant = row.name}),
                       x.view().permute(order));
        }
      }
    }
}

TEST(Transpose, TwiceIsTheSameMemory) {
  for (const Device device : devices_with_kernels())
    for (const DType dtype : {DType::float8_e5m2, DType::float16, DType::float32, DType::int64}) {
      const Tensor x = random_bits(dtype, {2, 67, 129}, device);
      EXPECT_TRUE(same_memory(transpose(transpose(x)), x)) << dtype << " on " << device;
    }
}

TEST(PermuteDims, TakesImagesToChannelsLastAndBack) {
  for (const Device device : devices_with_kernels())
    for (const int64_t channels : {3, 16, 40}) {
      const Tensor nchw = random_bits(DType::bfloat16, {2, channels, 9, 12}, device);
      const Tensor nhwc = permute_dims(nchw, {.axes = Dims{0, 2, 3, 1}});
      EXPECT_EQ(nhwc.shape(), (Dims{2, 9, 12, channels}));
      EXPECT_TRUE(same_memory(permute_dims(nhwc, {.axes = Dims{0, 3, 1, 2}}), nchw)) << channels;
    }
}

TEST(PermuteDims, NeedsEachAxisOnce) {
  const Tensor x(DType::float32, {2, 3, 4});
  const char* text = "permute_dims: axes must name each of the 3 axes of x once, got ";
  expect_error(
      ErrorKind::value, [&] { permute_dims(x, {.axes = Dims{0, 1}}); },
      std::string(text) + "[0, 1]");
  expect_error(
      ErrorKind::value, [&] { permute_dims(x, {.axes = Dims{0, 1, -2}}); },
      std::string(text) + "[0, 1, -2]");
  expect_error(
      ErrorKind::axis, [&] { permute_dims(x, {.axes = Dims{0, 1, 3}}); },
      "permute_dims: axes: axis must be in [-3, 3), got 3");
  EXPECT_EQ(permute_dims(x).shape(), (Dims{4, 3, 2}));
}

TEST(Transpose, NeedsTwoDimensionsAndMemoryOfItsOwn) {
  Tensor line(DType::float32, {3}), x(DType::float32, {3, 3});
  expect_error(
      ErrorKind::value, [&] { transpose(line); },
      "transpose: x: expected at least 2 dimensions, got shape [3]");
  expect_error(
      ErrorKind::value, [&] { transpose(x, x); },
      "transpose: out overlaps the memory of x; give it memory of its own");
}

// Addresses of a mapping that takes no memory but for the pages that are touched.
class Sparse {
 public:
  explicit Sparse(size_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~Sparse() {
    if (is_there()) munmap(data_, bytes_);
  }
  bool is_there() const { return data_ != MAP_FAILED; }
  void* data() const { return data_; }

 private:
  size_t bytes_;
  void* data_;
};

TEST(Transpose, ReachesBeyondTwoToThe31Elements) {
  constexpr int64_t stride = (int64_t(1) << 31) + 64, rows = 4, cols = 40;
  const Sparse memory(size_t(stride * (rows - 1) + cols) * 4);
  if (!memory.is_there()) GTEST_SKIP() << "no address space";
  for (const Device device : devices_with_kernels()) {
    const TensorView x(memory.data(), DType::int32, {rows, cols}, {stride, 1}, device);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        x.data_as<int32_t>()[i * stride + j] = int32_t(100 * i + j);
    const bool is_host = device == Device::cpu();
    for (const char* variant : {is_host ? "cpu" : "tiled", is_host ? "reference" : "naive"}) {
      const Tensor y = transpose(x, {.variant = variant});
      for (int64_t i = 0; i < rows * cols; ++i)
        ASSERT_EQ(y.data_as<int32_t>()[i], 100 * (i % rows) + i / rows) << variant << device;
    }
  }
}

// The most lanes of one access that want different words of one bank: 1 is no conflict. `lanes`
// threads go at a time, each `bytes` wide.
template <class Offset>
int conflicts(int lanes, int bytes, Offset&& offset_of) {
  int worst = 0;
  for (int first = 0; first < 32; first += lanes) {
    std::vector<std::vector<int>> words(32);
    for (int lane = first; lane < first + lanes; ++lane)
      for (int byte = 0; byte < bytes; byte += 4) {
        const int word = (offset_of(lane) + byte) / 4;
        auto& bank = words[size_t(word % 32)];
        if (std::find(bank.begin(), bank.end(), word) == bank.end()) bank.push_back(word);
      }
    for (const auto& bank : words) worst = std::max(worst, int(bank.size()));
  }
  return worst;
}

// Every access of the first warp to a tile: units or elements in, words or elements out.
template <class T, kernel::permute::Config C>
void expect_no_conflicts() {
  using Shape = kernel::permute::Tile<T, C>;
  constexpr int kElement = int(sizeof(T)), kWord = Shape::kWord, kStep = 32 / (kWord / 4);
  const auto unit_of = [](int lane) { return kernel::permute::place<Shape::kUnits>(lane); };
  const auto in = [&](int word) {
    return [&, word](int lane) {
      return Shape::offset(unit_of(lane).line, unit_of(lane).unit * Shape::kUnit) + word * kWord;
    };
  };
  if (C.vector_in == 1)
    EXPECT_EQ(conflicts(kElement == 8 ? 16 : 32, kElement,
                        [](int lane) { return Shape::offset(lane / C.tile, lane % C.tile); }),
              1);
  else if (Shape::kSwizzled)
    EXPECT_EQ(conflicts(8, 16, in(0)), 1);
  else
    for (int word = 0; word < 16 / kWord; ++word) EXPECT_EQ(conflicts(kStep, kWord, in(word)), 1);
  if (C.vector_out == 1) {
    EXPECT_EQ(conflicts(kElement == 8 ? 16 : 32, kElement,
                        [](int lane) { return Shape::offset(lane % C.tile, lane / C.tile); }),
              1);
    return;
  }
  for (int k = 0; k < Shape::kUnit; ++k)
    EXPECT_EQ(conflicts(kStep, kWord,
                        [&](int lane) {
                          return Shape::offset(unit_of(lane).unit * Shape::kUnit + k,
                                               unit_of(lane).line * Shape::kPacked);
                        }),
              1)
        << k;
}

template <class T, int tile>
void expect_no_conflicts_either_way() {
  constexpr int unit = 16 / int(sizeof(T));
  expect_no_conflicts<T, {.vector_in = unit, .vector_out = unit, .tile = tile}>();
  expect_no_conflicts<T, {.vector_in = unit, .tile = tile}>();
  expect_no_conflicts<T, {.vector_out = unit, .tile = tile}>();
  expect_no_conflicts<T, {.tile = tile}>();
}

TEST(TransposedTile, HasNoBankConflicts) {
  expect_no_conflicts_either_way<uint8_t, 128>();
  expect_no_conflicts_either_way<int16_t, 64>();
  expect_no_conflicts_either_way<int32_t, 64>();
  expect_no_conflicts_either_way<int32_t, 32>();
  expect_no_conflicts_either_way<int64_t, 32>();
}

}  // namespace
}  // namespace tensorcraft
