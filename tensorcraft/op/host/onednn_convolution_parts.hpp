// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/host/onednn_convolution.hpp"
#include "tensorcraft/op/host/transpose.hpp"

// Prepares a convolution for oneDNN without a call of it: how threads share it, and which tensors
// they bring to another order.
namespace tensorcraft::host::onednn {

// One thread computes a slice: some rows of some images, of some filters of each group.
struct Slice {
  int64_t image, images, row, rows, filter, filters;
};

// How a convolution is cut: so many images, rows and filters each.
struct Cut {
  int64_t images, rows, filters;
  int64_t by_images, by_rows, by_filters;  // slices along each

  int64_t count() const { return by_images * by_rows * by_filters; }
  bool slices_have_own_filters() const { return by_images * by_rows == 1; }
  bool slices_have_own_images() const { return by_rows * by_filters == 1; }
  // Filters are the innermost: slices of the same filters are by_filters apart.
  Slice slice(const Convolution& c, int64_t i) const;
};

// The one whose last slice ends first. Slices of several images have all of their rows; filters of
// several groups are not cut. There are more slices than threads only if they differ in filters
// alone, of which each then has as many as fit a cache, or in images alone, whose planes are moved.
Cut cut_of(const Convolution& c, int threads);

// The inputs of some outputs along an axis, and the zeros around them.
struct Inputs {
  int64_t first, size, before, after;
};
Inputs inputs_of(const WindowAxis& axis, int64_t output, int64_t count);

// Are places of a channel side by side, as floats? Then transpose() makes them channels last, and
// back, faster than oneDNN does.
bool are_planes(DType dtype, const ImageStrides& at, int64_t channels);
ImageStrides channels_last(int64_t rows, int64_t columns, int64_t channels);
// The convolution that runs: images that are planes are brought to channels last first.
Convolution as_run(Convolution c);
// Brings a slice of out, which is channels last from `from` on, to its planes.
void unpack_planes(const Convolution& c, const Slice& s, const float* from);

// How the elements of a filter, as they lie, go to units of `unit` filters side by side, with
// channels behind taps; all 0 if they have gaps.
Spread spread_of_filter(const Convolution& c, int64_t unit);

// Elements of a filter, which are the products of an output.
int64_t inputs_of_filter(const Convolution& c);
bool has_padding(const Convolution& c);
bool has_finite_filters(const Convolution& c);

// The address `elements` behind `from`.
void* moved(const void* from, int64_t elements, DType dtype);

}  // namespace tensorcraft::host::onednn
