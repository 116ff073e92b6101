// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/code_rows.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/quantize.cuh"
#include "tensorcraft/op/checks/rows.hpp"

namespace tensorcraft::host {
namespace {

template <class Code>
void commit_row(Code* to, int64_t step, const float* values, int64_t n, float* scales,
                float scale) {
  if (scales) {
    float amax = 0;
    for (int64_t i = 0; i < n; ++i) amax = fmax_nan(amax, fabsf(values[i]));
    *scales = scale = code_scale<Code>(amax);
  }
  for (int64_t i = 0; i < n; ++i) to[i * step] = to_code<Code>(values[i] / scale);
}

}  // namespace

bool is_code_dtype(DType dtype) {
  return dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2 || dtype == DType::int8;
}

CodeRows::CodeRows(const TensorView& out, const std::optional<TensorView>& scales, float scale)
    : out_(out),
      map_(op::row_map(out, out.rank() - 1)),
      scales_(data_of<float>(scales)),
      scale_(scale) {
  if (!is_code_dtype(out.dtype()))
    fail(ErrorKind::type, "CodeRows: dtype ", out.dtype(), " is not one of codes");
}

void CodeRows::commit(int64_t row, const float* values) const {
  const int last = out_.rank() - 1;
  const int64_t n = out_.shape(last), step = out_.stride(last), at = map_.offset(row);
  float* const scales = scales_ ? scales_ + row : nullptr;
  if (out_.dtype() == DType::float8_e4m3fn)
    commit_row(out_.data_as<e4m3>() + at, step, values, n, scales, scale_);
  else if (out_.dtype() == DType::float8_e5m2)
    commit_row(out_.data_as<e5m2>() + at, step, values, n, scales, scale_);
  else
    commit_row(out_.data_as<int8_t>() + at, step, values, n, scales, scale_);
}

}  // namespace tensorcraft::host
