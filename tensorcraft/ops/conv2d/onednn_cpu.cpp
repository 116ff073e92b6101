// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/onednn.hpp"
#include "tensorcraft/op/host/onednn_convolution.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/host/simd.hpp"
#include "tensorcraft/ops/conv2d/problem.hpp"

#include <atomic>
#include <bit>

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
          .bias = q.bias ? q.bias->data() : nullptr,
          .out = q.out.data(),
          .x_at = op::image_strides(q.x),
          .w_at = op::image_strides(q.w),
          .out_at = op::image_strides(q.out)};
}

bool has_padding(const WindowAxis& a) {
  return a.before > 0 || a.at(a.out - 1, a.taps - 1) >= a.in;
}

TC_HOST_CLONES bool are_finite(const float* x, int64_t n) {
  constexpr uint32_t kExponent = 0x7f800000;  // all ones: an infinity or NaN
  uint32_t some = 0;
  for (int64_t i = 0; i < n; ++i)
    some |= uint32_t((std::bit_cast<uint32_t>(x[i]) & kExponent) == kExponent);
  return some == 0;
}

// A weight that is not finite makes NaN where its tap lies outside; oneDNN leaves such taps out.
bool has_finite_filters(const Problem& q) {
  const int64_t length = q.channels(), lines = q.w.shape(0) * q.taps();
  const bool as_it_is = q.w.dtype() == DType::float32 && q.w.stride(3) == 1;
  std::atomic<bool> all = true;
  host::for_each_row(lines, length, [&](int64_t line) {
    const int64_t filter = line / q.taps(), tap = line % q.taps();
    const int64_t at = filter * q.w.stride(0) + tap / q.w.shape(2) * q.w.stride(1) +
                       tap % q.w.shape(2) * q.w.stride(2);
    const std::byte* from = q.w.data_as<std::byte>() + at * int64_t(dtype_bytes(q.w.dtype()));
    float* row = as_it_is ? nullptr : host::scratch(host::Slot::row_d, length);
    if (row) host::load_row(row, from, q.w.dtype(), q.w.stride(3), length);
    if (!are_finite(row ? row : reinterpret_cast<const float*>(from), length)) all = false;
  });
  return all;
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
  const bool pads = has_padding(q.window.rows) || has_padding(q.window.columns);
  if (pads && !has_finite_filters(q)) return cpu(q);
  host::onednn::convolve(convolution_of(q));
}

}  // namespace tensorcraft::kernel::conv2d
