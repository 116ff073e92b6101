// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/packed/conv_weight.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/ops/all.hpp"

#include <utility>

namespace tensorcraft {

PackedConvWeight::PackedConvWeight(Tensor filters)
    : filters_(std::make_shared<const Tensor>(std::move(filters))) {}

TensorView PackedConvWeight::view(ImageLayout layout) const {
  const TensorView last = filters_->view();
  return layout == ImageLayout::nhwc ? last : last.permute({0, 3, 1, 2});
}

PackedConvWeight pack_conv_weight(const TensorView& w, ImageLayout layout) {
  constexpr std::string_view kName = "pack_conv_weight";
  op::check_dtype(kName, "w", w, {DType::float32, DType::float16, DType::bfloat16});
  const bool last = layout == ImageLayout::nhwc;
  if (w.rank() != 4)
    fail(ErrorKind::value, kName, ": w: expected 4 dimensions, ",
         last ? "filters, rows, columns, channels" : "filters, channels, rows, columns",
         ", got shape ", w.shape());
  return PackedConvWeight(copy(last ? w : w.permute({0, 2, 3, 1})));
}

void conv2d(const TensorView& out, const TensorView& x, const PackedConvWeight& w,
            const Conv2dOptions& options) {
  conv2d(out, x, w.view(options.layout), options);
}
Tensor conv2d(const TensorView& x, const PackedConvWeight& w, const Conv2dOptions& options) {
  return conv2d(x, w.view(options.layout), options);
}

}  // namespace tensorcraft
