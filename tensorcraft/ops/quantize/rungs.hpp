// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/quantize/quantize.hpp"
#include "tensorcraft/ops/quantize/quantize_cpu.hpp"

// What quantize.cpp and dequantize.cpp share.
namespace tensorcraft::kernel::quantize {

std::string config_text(const void* config);

// Strides and addresses of a checked call.
Params params(const Problem& problem);

// How scales lie for a tensor of this shape; `op` is who asks.
struct Layout {
  QuantizeScheme scheme;
  BlockShape block_shape;
  ScalesLayout scales_layout;
};
Dims scales_shape(std::string_view op, std::string_view arg, const Dims& shape,
                  const Layout& layout);
Tiles tiles_of(const Dims& shape, const Layout& layout);

// Float32 scales and int32 zero points that are contiguous and have `shape`.
void check_scales(std::string_view op, const TensorView& scales,
                  const std::optional<TensorView>& zero_point, const Dims& shape);

// A tensor without axes as one of one element.
TensorView with_axis(const TensorView& t);

inline constexpr std::string_view kParams =
    "tensorcraft::ParamsOf<tensorcraft::kernel::quantize::Params, Config>";
inline op::Verdict always(const Problem&, const DeviceInfo&) { return op::accept; }

}  // namespace tensorcraft::kernel::quantize
