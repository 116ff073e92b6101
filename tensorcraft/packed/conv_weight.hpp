// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/conv2d/conv2d.hpp"

#include <memory>

namespace tensorcraft {

// The filters of a convolution as its fast kernels read them, whatever the layout of the images:
// the channels of a tap side by side, taps and filters without gaps. Copies share its memory.
class PackedConvWeight {
 public:
  // (filters, rows, columns, channels / groups), contiguous.
  const Tensor& filters() const { return *filters_; }
  // Returns the same memory as conv2d() takes it in that layout.
  TensorView view(ImageLayout layout) const;
  DType dtype() const { return filters_->dtype(); }
  Device device() const { return filters_->device(); }
  size_t nbytes() const { return filters_->nbytes(); }

 private:
  friend PackedConvWeight pack_conv_weight(const TensorView& w, ImageLayout layout);
  explicit PackedConvWeight(Tensor filters);
  std::shared_ptr<const Tensor> filters_;
};

// Copies w, the filters of conv2d() in that layout, into the order above, once; the result is where
// w is, and later changes of w are not seen. float32, float16 or bfloat16, any strides. Kind type
// for another dtype, value for another rank than 4.
PackedConvWeight pack_conv_weight(const TensorView& w, ImageLayout layout = ImageLayout::nchw);

// conv2d() with packed filters; options.layout is that of x and the result.
void conv2d(const TensorView& out, const TensorView& x, const PackedConvWeight& w,
            const Conv2dOptions& options = {});
Tensor conv2d(const TensorView& x, const PackedConvWeight& w, const Conv2dOptions& options = {});

}  // namespace tensorcraft
