// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/kernels/window_arguments.hpp"
#include "tensorcraft/ops/conv2d/00_naive.cuh"
#include "tensorcraft/ops/conv2d/01_tiled.cuh"
#include "tensorcraft/ops/conv2d/02_depthwise.cuh"
#include "tensorcraft/ops/conv2d/03_implicit_gemm.cuh"
#include "tensorcraft/ops/conv2d/04_im2col.cuh"
#include "tensorcraft/ops/conv2d/08_sliding.cuh"
#include "tensorcraft/ops/conv2d/plan.h"

#include <iterator>

// Convolution of dense images with dense filters, of each channel by itself, and the windows of
// images as a matrix. Compiled for each T and activation: implicit_gemm for f16 and bf16 (6
// kernels), tiled (2) and naive; of each channel by itself sliding (4), depthwise (5) and naive;
// im2col for each size of an element.
namespace tensorcraft::kernels {

// Dense images x [batch, channels, rows, columns], filters [filters, channels / groups, taps,
// taps] and out [batch, filters, rows, columns], or channels last in all of them.
struct ConvShape {
  int64_t batch, channels, filters;        // groups divide channels and filters
  WindowAlong rows, columns;               // how windows lie along the images
  ImageLayout layout = ImageLayout::nhwc;  // of x, filters and out
  int64_t groups = 1;                      // of launch_conv2d
};

// Optional arguments.
template <class T>
struct ConvArguments {
  const T* bias = nullptr;        // [filters]
  const T* residual = nullptr;    // as out, added before the activation
  std::string_view variant = {};  // by name; empty: the best that takes the call
};

namespace detail::conv2d {

using namespace kernel::conv2d;

template <ConvActivation activation>
inline constexpr auto kGemmInstances = [] {
  std::array<Instance<Config>, 2 * std::size(kTiles)> all{};
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = {gemm_config(kTiles[i / 2], i % 2 ? 4 : 1, activation), kTiles[i / 2].min_blocks};
  return all;
}();
template <ConvActivation activation>
inline constexpr std::array kTiledInstances{Instance<Config>{tiled_config(false, activation)},
                                            Instance<Config>{tiled_config(true, activation)}};
template <ConvActivation activation>
inline constexpr std::array kNaiveInstances{Instance<Config>{{.activation = activation}}};

// Windows of 3 and 5 taps, strides of 1 and 2.
template <class T, ConvActivation activation>
inline constexpr auto kSlidingInstances = [] {
  std::array<Instance<Config>, 4> all{};
  for (int i = 0; i < 4; ++i) {
    Config c = sliding_config(i / 2 ? 5 : 3, i % 2 + 1, activation);
    all[size_t(i)] = {c, sliding_blocks(c, {.element_bytes = sizeof(T)})};
  }
  return all;
}();
// The instances above, and one for any other window.
template <class T, ConvActivation activation>
inline constexpr auto kDepthwiseInstances = [] {
  std::array<Instance<Config>, 5> all{};
  for (int i = 0; i < 5; ++i)
    all[size_t(i)].config = {.activation = activation,
                             .vector = 16 / int(sizeof(T)),
                             .taps = i == 4  ? 0
                                     : i / 2 ? 5
                                             : 3,
                             .stride = i == 4 ? 0 : i % 2 + 1,
                             .outputs = kOutputs};
  return all;
}();

inline Sizes sizes_of(const char* launcher, const ConvShape& s, int64_t groups) {
  validate_sizes(launcher, {{"batch", s.batch}, {"channels", s.channels}, {"filters", s.filters}});
  if (groups < 1 || s.channels % groups != 0 || s.filters % groups != 0)
    throw std::invalid_argument(std::string(launcher) +
                                ": groups must be at least 1, and divide channels and filters");
  return {s.batch,
          s.channels,
          s.filters,
          groups,
          window_axis(launcher, "rows", s.rows),
          window_axis(launcher, "columns", s.columns),
          s.layout};
}

// Launches the rung that is named, or the first that takes the call.
template <class T, size_t n, class... Set>
std::string_view launch(const char* launcher, const Rung (&ladder)[n], const Tensors& t,
                        const Sizes& sizes, ConvActivation activation, std::string_view variant,
                        cudaStream_t stream, DebugInfo where, Set... compiled) {
  if (sizes.batch == 0 || sizes.filters == 0) return {};
  validate_arrays(launcher, {{"w", t.w}, {"out", t.out}});
  if (sizes.rows.in > 0 && sizes.columns.in > 0) validate_pointer(launcher, "x", t.x);
  const Params p = contiguous_params(t, sizes);
  return launch_variant(launcher, variant, ladder, p, Given{sizeof(T), activation}, stream, where,
                        compiled...);
}

}  // namespace detail::conv2d

// out = activation(x * w + bias + residual), * the cross-correlation of each image with each
// filter. T: float, f16 or bf16, summed in float; float is not rounded. Returns the name of the
// variant, empty if there is nothing to do. Throws std::invalid_argument for sizes as
// window_axis(), groups that do not divide, a null array, and a name of no variant, Error of kind
// unsupported if the variant that is named refuses the call. Stream and CUDA's errors as
// launch_softmax. Strides, tf32, stems of few channels and the kernels on wgmma are the library's.
template <ConvActivation activation = ConvActivation::none, class T>
std::string_view launch_conv2d(const T* x, const T* w, T* out, const ConvShape& shape,
                               const ConvArguments<T>& arguments = {},
                               cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace c = detail::conv2d;
  constexpr const char* kLauncher = "launch_conv2d";
  const c::Sizes sizes = c::sizes_of(kLauncher, shape, shape.groups);
  const c::Tensors t{x, w, arguments.bias, arguments.residual, out};
  const auto launch = [&](const auto&... sets) {
    return c::launch<T>(kLauncher, c::kRungs, t, sizes, activation, arguments.variant, stream,
                        where, sets...);
  };
  const Kernels<c::Tiled, c::kTiledInstances<activation>, T> tiled{"tiled"};
  const Kernels<c::Naive, c::kNaiveInstances<activation>, T> naive{"naive"};
  if constexpr (sizeof(T) == 2)
    return launch(Kernels<c::ImplicitGemm, c::kGemmInstances<activation>, T>{"implicit_gemm"},
                  tiled, naive);
  else
    return launch(tiled, naive);
}

// The same with a group for each channel: w has one channel, and filters are a multiple of
// channels.
template <ConvActivation activation = ConvActivation::none, class T>
std::string_view launch_depthwise_conv2d(const T* x, const T* w, T* out, const ConvShape& shape,
                                         const ConvArguments<T>& arguments = {},
                                         cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace c = detail::conv2d;
  constexpr const char* kLauncher = "launch_depthwise_conv2d";
  if (shape.groups != 1)
    throw std::invalid_argument(
        "launch_depthwise_conv2d: it has a group for each channel; leave groups out");
  const c::Sizes sizes = c::sizes_of(kLauncher, shape, std::max<int64_t>(1, shape.channels));
  return c::launch<T>(kLauncher, c::kDepthwiseRungs,
                      {x, w, arguments.bias, arguments.residual, out}, sizes, activation,
                      arguments.variant, stream, where,
                      Kernels<c::Sliding, c::kSlidingInstances<T, activation>, T>{"sliding"},
                      Kernels<c::Depthwise, c::kDepthwiseInstances<T, activation>, T>{"depthwise"},
                      Kernels<c::Naive, c::kNaiveInstances<activation>, T>{"naive"});
}

// The windows of the images as columns of a matrix: of nchw [batch, channels taps, positions], of
// nhwc [batch, positions, taps channels]; 0 outside an image. T: any type of 2 or 4 bytes. Filters
// and groups of the shape are not looked at. Errors as launch_conv2d.
template <class T>
std::string_view launch_im2col(const T* x, T* out, const ConvShape& shape,
                               cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace c = detail::conv2d;
  constexpr const char* kLauncher = "launch_im2col";
  ConvShape images = shape;
  images.filters = 0;
  const c::Sizes sizes = c::sizes_of(kLauncher, images, 1);
  if (sizes.batch == 0 || sizes.channels == 0) return {};
  validate_pointer(kLauncher, "out", out);
  if (sizes.rows.in > 0 && sizes.columns.in > 0) validate_pointer(kLauncher, "x", x);
  using Bits = detail::Bits<sizeof(T)>;
  return launch_ladder(c::kIm2colRungs, c::contiguous_params(x, out, sizes), op::NoGiven{}, stream,
                       where,
                       Kernels<c::Im2col, kDefaultInstance<c::Im2colConfig>, Bits>{"im2col"});
}

}  // namespace tensorcraft::kernels
