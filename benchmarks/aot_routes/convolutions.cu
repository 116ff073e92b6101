// SPDX-License-Identifier: Apache-2.0
// Convolutions, of each channel by itself too, and the windows of images as a matrix.
#include "tensorcraft/kernels/conv2d.cuh"

#include "report.hpp"

namespace aot_routes {
namespace {

struct Layer {
  int64_t batch, size, channels, filters, taps, stride;

  tk::ConvShape shape() const {
    const tk::WindowAlong along{
        .size = size, .taps = taps, .stride = stride, .before = taps / 2, .after = taps / 2};
    return {
        .batch = batch, .channels = channels, .filters = filters, .rows = along, .columns = along};
  }
  int64_t out() const { return (size + 2 * (taps / 2) - taps) / stride + 1; }
  std::string name(const char* op, const char* type) const {
    return join(op, ' ', type, ' ', batch, 'x', size, 'x', size, 'x', channels, ' ', filters, 'x',
                taps, 'x', taps, " / ", stride);
  }
};

template <class T>
void convolve(Report& report, const char* type, const Layer& l) {
  const Tensor x = filled<T>({l.batch, l.size, l.size, l.channels}, 1);
  const Tensor w = filled<T>({l.filters, l.taps, l.taps, l.channels}, 2);
  const Tensor bias = filled<T>({l.filters}, 3);
  Tensor out = filled<T>({l.batch, l.out(), l.out(), l.filters}, 4);
  report.compare({l.name("conv2d", type),
                  {&out},
                  [&] {
                    return tk::launch_conv2d<ConvActivation::relu>(
                        data<T>(x), data<T>(w), data<T>(out), l.shape(), {.bias = data<T>(bias)},
                        stream());
                  },
                  [&](std::string_view v) {
                    conv2d(out, x, w,
                           {.bias = bias,
                            .stride = {l.stride},
                            .padding = l.taps / 2,
                            .activation = ConvActivation::relu,
                            .layout = ImageLayout::nhwc,
                            .variant = v});
                  }});
}

template <class T>
void filter(Report& report, const char* type, const Layer& l) {
  const Tensor x = filled<T>({l.batch, l.size, l.size, l.channels}, 1);
  const Tensor w = filled<T>({l.filters, l.taps, l.taps, 1}, 2);
  Tensor out = filled<T>({l.batch, l.out(), l.out(), l.filters}, 4);
  report.compare({l.name("depthwise_conv2d", type),
                  {&out},
                  [&] {
                    return tk::launch_depthwise_conv2d<ConvActivation::relu6>(
                        data<T>(x), data<T>(w), data<T>(out), l.shape(), {}, stream());
                  },
                  [&](std::string_view v) {
                    depthwise_conv2d(out, x, w,
                                     {.stride = {l.stride},
                                      .padding = l.taps / 2,
                                      .activation = ConvActivation::relu6,
                                      .layout = ImageLayout::nhwc,
                                      .variant = v});
                  }});
}

template <class T>
void unroll(Report& report, const char* type, const Layer& l) {
  const Tensor x = filled<T>({l.batch, l.size, l.size, l.channels}, 1);
  const int64_t positions = l.out() * l.out(), elements = l.taps * l.taps * l.channels;
  Tensor out = filled<T>({l.batch, positions, elements}, 2);
  report.compare({l.name("im2col", type),
                  {&out},
                  [&] { return tk::launch_im2col(data<T>(x), data<T>(out), l.shape(), stream()); },
                  [&](std::string_view v) {
                    im2col(out, x,
                           {.window = {l.taps},
                            .stride = {l.stride},
                            .padding = l.taps / 2,
                            .layout = ImageLayout::nhwc,
                            .variant = v});
                  }});
}

}  // namespace

void compare_convolutions(Report& report) {
  convolve<bf16>(report, "bfloat16", {8, 28, 128, 128, 3, 1});
  convolve<f16>(report, "float16", {8, 28, 64, 30, 1, 2});
  convolve<float>(report, "float32", {2, 28, 33, 40, 3, 1});
  filter<bf16>(report, "bfloat16", {8, 56, 96, 96, 3, 1});
  filter<f16>(report, "float16", {8, 28, 64, 64, 5, 2});
  filter<float>(report, "float32", {2, 28, 32, 32, 7, 3});
  unroll<bf16>(report, "bfloat16", {8, 28, 64, 64, 3, 1});
  unroll<float>(report, "float32", {2, 28, 3, 3, 5, 2});
}

}  // namespace aot_routes
