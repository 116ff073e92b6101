// SPDX-License-Identifier: Apache-2.0
// implicit_wgmma with tiles and grids of which the operator's cases have few.
#include "tensorcraft/ops/conv2d/07_implicit_wgmma.cuh"
#include "tensorcraft/ops/conv2d/plan.h"
#include "tensorcraft/simt/launch.hpp"
#include "tensorcraft/simt/tensor_map.hpp"
#include "tests/simt/kernels.hpp"

#include <cmath>
#include <cstring>
#include <random>

namespace tensorcraft::simt {
namespace {

namespace conv2d = kernel::conv2d;
using conv2d::Config;

// The race build leaves what is right to the others.
#if defined(TENSORCRAFT_SIMT_RACE)
constexpr bool kRace = true;
#else
constexpr bool kRace = false;
#endif

struct Shape {
  int64_t batch, rows, columns, channels, filters;
  int64_t taps = 3, stride = 1, padding = 1, dilation = 1;
  unsigned blocks = 1;  // of the grid
  bool has_bias = false, has_residual = false;
};

// Memory at a multiple of 16 bytes, of normal values; what is written begins as NaN.
struct Memory {
  std::vector<bf16> data;
  bf16* first;
  Memory(int64_t size, unsigned seed) : data(size_t(size) + 8, bf16(NAN)) {
    first = data.data() + (16 - reinterpret_cast<uintptr_t>(data.data()) % 16) % 16 / sizeof(bf16);
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < size && seed > 0; ++i) first[i] = bf16(normal(random));
  }
  Memory(const Memory&) = delete;
};

template <Config C>
class Convolution {
 public:
  explicit Convolution(const Shape& s)
      : s_(s),
        rows_(axis(s.rows)),
        columns_(axis(s.columns)),
        places_(s.batch * rows_.out * columns_.out),
        x_(s.batch * s.rows * s.columns * s.channels, 1),
        w_(s.filters * s.taps * s.taps * s.channels, 2),
        bias_(s.filters, 3),
        residual_(places_ * s.filters, 4),
        out_(places_ * s.filters, 0) {}

  std::vector<bf16> run(const Options& options) {
    const int64_t image = s_.rows * s_.columns * s_.channels;
    const ImageStrides result{rows_.out * columns_.out * s_.filters, columns_.out * s_.filters,
                              s_.filters, 1};
    const int64_t filter = s_.taps * s_.taps * s_.channels;
    const conv2d::MappedParams p{{.x = x_.first,
                                  .w = w_.first,
                                  .bias = s_.has_bias ? bias_.first : nullptr,
                                  .residual = s_.has_residual ? residual_.first : nullptr,
                                  .out = out_.first,
                                  .batch = s_.batch,
                                  .groups = 1,
                                  .channels = s_.channels,
                                  .filters = s_.filters,
                                  .rows = rows_,
                                  .columns = columns_,
                                  .x_at = {image, s_.columns * s_.channels, s_.channels, 1},
                                  .out_at = result,
                                  .residual_at = result,
                                  .w_at = {filter, s_.taps * s_.channels, s_.channels, 1},
                                  .bias_stride = 1,
                                  .by_columns = Divider::of(columns_.out),
                                  .by_image = Divider::of(rows_.out * columns_.out)},
                                 windows_map(),
                                 filters_map(),
                                 result_map()};
    simt::run({.name = "windows",
               .grid = {s_.blocks},
               .block = {unsigned(C.threads)},
               .shared_bytes = size_t(conv2d::wgmma_shared_bytes(C, sizeof(bf16)))},
              body<conv2d::ImplicitWgmma, C, bf16>, &p, options);
    return {out_.first, out_.first + places_ * s_.filters};
  }

  void expect_right() const {
    for (int64_t i = 0; i < places_; ++i)
      for (int64_t f = 0; f < s_.filters; ++f) ASSERT_NO_FATAL_FAILURE(expect_right(i, f));
  }

 private:
  using Swizzle = TiledTensor::Swizzle;
  WindowAxis axis(int64_t in) const {
    const int64_t reach = (s_.taps - 1) * s_.dilation + 1;
    return {in,          (in + 2 * s_.padding - reach) / s_.stride + 1,
            s_.taps,     s_.stride,
            s_.dilation, s_.padding};
  }
  TensorMap windows_map() const {
    const auto pixel = uint64_t(s_.channels) * 2, line = pixel * uint64_t(s_.columns);
    const auto upper = [](const WindowAxis& a) { return int32_t(a.first(a.out - 1) - (a.in - 1)); };
    const int32_t lower = -int32_t(s_.padding);
    const auto step = uint32_t(s_.stride);
    return encode_im2col({.images = {.dtype = DType::bfloat16,
                                     .address = x_.first,
                                     .rank = 4,
                                     .dims = {uint64_t(s_.channels), uint64_t(s_.columns),
                                              uint64_t(s_.rows), uint64_t(s_.batch)},
                                     .strides = {pixel, line, line * uint64_t(s_.rows)},
                                     .box = {uint32_t(C.block_k), uint32_t(C.block_m)},
                                     .element_strides = {1, step, step, 1, 1},
                                     .swizzle = Swizzle::bytes_128},
                          .lower = {lower, lower},
                          .upper = {upper(columns_), upper(rows_)}});
  }
  TensorMap filters_map() const {
    const auto channels = uint64_t(s_.channels), taps = uint64_t(s_.taps * s_.taps);
    return encode_tiled({.dtype = DType::bfloat16,
                         .address = w_.first,
                         .rank = 3,
                         .dims = {channels, uint64_t(s_.filters), taps},
                         .strides = {taps * channels * 2, channels * 2},
                         .box = {uint32_t(C.block_k), uint32_t(C.block_n), 1},
                         .swizzle = Swizzle::bytes_128});
  }
  TensorMap result_map() const {
    constexpr int columns = conv2d::result_slot_columns(C, sizeof(bf16));
    return encode_tiled({.dtype = DType::bfloat16,
                         .address = out_.first,
                         .rank = 2,
                         .dims = {uint64_t(s_.filters), uint64_t(places_)},
                         .strides = {uint64_t(s_.filters) * 2},
                         .box = {uint32_t(columns), uint32_t(kGroupRows)},
                         .swizzle = columns == 64 ? Swizzle::bytes_128 : Swizzle::bytes_64});
  }

  void expect_right(int64_t place, int64_t f) const {
    const int64_t image = place / (rows_.out * columns_.out), y = place / columns_.out % rows_.out;
    double sum = 0, magnitude = 0;
    for (int64_t r = 0; r < s_.taps; ++r)
      for (int64_t s = 0; s < s_.taps; ++s) {
        const int64_t row = rows_.at(y, r), column = columns_.at(place % columns_.out, s);
        if (!rows_.has(row) || !columns_.has(column)) continue;
        const bf16* const from =
            x_.first + ((image * s_.rows + row) * s_.columns + column) * s_.channels;
        const bf16* const by = w_.first + ((f * s_.taps + r) * s_.taps + s) * s_.channels;
        for (int64_t c = 0; c < s_.channels; ++c) {
          sum += double(float(from[c])) * float(by[c]);
          magnitude += std::fabs(double(float(from[c])) * float(by[c]));
        }
      }
    if (s_.has_bias) sum += float(bias_.first[f]);
    if (s_.has_residual) sum += float(residual_.first[place * s_.filters + f]);
    ASSERT_NEAR(float(out_.first[place * s_.filters + f]), sum,
                std::fabs(sum) * 0x1p-8 + magnitude * 0x1p-16 + 0x1p-20)
        << "place " << place << ", filter " << f;
  }

  Shape s_;
  WindowAxis rows_, columns_;
  int64_t places_;
  Memory x_, w_, bias_, residual_, out_;
};

// Right, and the same bits whatever the timing.
template <Config C>
void expect_convolutions(std::initializer_list<Shape> shapes) {
  for (const Shape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.batch << " x " << s.rows << " x " << s.columns << " x "
                                    << s.channels << ", filters " << s.filters << ", stride "
                                    << s.stride << ", blocks " << s.blocks);
    Convolution<C> convolution(s);
    const std::vector<bf16> late = convolution.run({});
    if (!kRace) {
      ASSERT_NO_FATAL_FAILURE(convolution.expect_right());
    }
    for (const Options& options : timings(1)) {
      if (kRace && options.timing != Timing::seeded) continue;
      const std::vector<bf16> again = convolution.run(options);
      ASSERT_EQ(std::memcmp(again.data(), late.data(), late.size() * sizeof(bf16)), 0)
          << "seed " << options.seed;
    }
  }
}

// A tile with a short ring, which goes round.
constexpr Config tile(int m, int n, int stages) {
  return conv2d::wgmma_config({m, n, stages, 0, 0, 0, 0}, ConvActivation::none);
}

TEST(ImplicitWgmma, AnyTileIsRight) {
  const std::initializer_list<Shape> shapes = {
      {.batch = 2, .rows = 9, .columns = 9, .channels = 24, .filters = 72}};
  expect_convolutions<tile(64, 64, 2)>(shapes);
  expect_convolutions<tile(64, 128, 3)>(shapes);
  expect_convolutions<tile(128, 64, 3)>(shapes);
}

TEST(ImplicitWgmma, WideTilesAreRight) {
  const std::initializer_list<Shape> shapes = {
      {.batch = 1, .rows = 10, .columns = 13, .channels = 72, .filters = 168, .taps = 2}};
  expect_convolutions<tile(128, 160, 2)>(shapes);
  expect_convolutions<tile(128, 256, 2)>(shapes);
}

TEST(ImplicitWgmma, WindowsStepAndHaveGaps) {
  expect_convolutions<tile(64, 64, 3)>(
      {{.batch = 3, .rows = 13, .columns = 10, .channels = 8, .filters = 8, .stride = 2},
       {.batch = 2,
        .rows = 9,
        .columns = 12,
        .channels = 16,
        .filters = 8,
        .padding = 2,
        .dilation = 2},
       {.batch = 2,
        .rows = 12,
        .columns = 17,
        .channels = 8,
        .filters = 16,
        .taps = 1,
        .stride = 3,
        .padding = 0},
       {.batch = 1,
        .rows = 3,
        .columns = 2,
        .channels = 8,
        .filters = 8,
        .taps = 5,
        .padding = 4}});
}

TEST(ImplicitWgmma, BlocksTakeTilesUntilNoneIsLeft) {
  Shape s{
      .batch = 5, .rows = 9, .columns = 8, .channels = 72, .filters = 136, .taps = 1, .padding = 0};
  s.has_bias = s.has_residual = true;
  for (const unsigned blocks : {1u, 4u, 100u}) {
    s.blocks = blocks;
    expect_convolutions<tile(64, 64, 4)>({s});
    expect_convolutions<tile(128, 64, 2)>({s});
  }
}

}  // namespace
}  // namespace tensorcraft::simt
