// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/onednn.hpp"
#include "tensorcraft/op/host/onednn_convolution.hpp"
#include "tensorcraft/ops/conv2d/problem.hpp"

namespace tensorcraft::kernel::conv2d {
namespace {

host::onednn::Convolution convolution_of(const Problem& q) {
  return {.dtype = q.x.dtype(),
          .batch = q.x.shape(0),
          .groups = q.groups,
          .channels = q.channels(),
          .filters = q.filters(),
          .rows = q.window.rows,
          .columns = q.window.columns,
          .x = q.x.data(),
          .w = q.w.data(),
          .bias = data_of(q.bias),
          .out = q.out.writable_data(),
          .x_at = op::image_strides(q.x),
          .w_at = op::image_strides(q.w),
          .out_at = op::image_strides(q.out)};
}

}  // namespace

std::string_view onednn_refusal(const Problem& q) {
  if (!host::onednn::available()) return "oneDNN 3 is not installed";
  if (q.out.size() == 0) return "the result is empty";
  if (q.channels() == 1 && q.filters() == 1) return "a channel by itself: cpu adds up rows";
  if (q.residual || q.activation != ConvActivation::none)
    return "it leaves residual and activation to cpu";
  if (q.bias && q.bias->stride(0) != 1) return "the bias has gaps";
  const char* reason = host::onednn::declines(convolution_of(q));
  return reason ? reason : "";
}

void onednn(const Problem& q) {
  if (!host::onednn::convolve(convolution_of(q))) cpu(q);
}

}  // namespace tensorcraft::kernel::conv2d
