// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/value.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>
#include <utility>

namespace tensorcraft {

// These elements share a scale: all, a row of the last axis, or a block of 128 elements.
enum class QuantizeScheme : int { tensor, token, block };
// A block is 128 elements of a row, or 128 x 128 of the last two axes, as weights have it.
enum class BlockShape : int { row, square };
// How scales of blocks lie. row: x.shape[:-1] + [blocks]. column, of blocks in rows only: [blocks,
// rows of x rounded up to 4], so that one block's scales are neighbours and 16-byte aligned; those
// behind the last row are 0.
enum class ScalesLayout : int { row, column };

// Arguments of quantize() besides the arrays that it needs.
struct QuantizeOptions {
  DType dtype = DType::float8_e4m3fn;              // float8_e4m3fn, float8_e5m2 or int8
  QuantizeScheme scheme = QuantizeScheme::tensor;  // what shares a scale
  BlockShape block_shape = BlockShape::row;        // of scheme block
  ScalesLayout scales_layout = ScalesLayout::row;  // of scheme block
  bool power_of_two = false;                       // round computed scales up to powers of two
  bool asymmetric = false;  // int8: compute a zero point too, for ranges that 0 does not halve
  std::optional<TensorView> given_scales = {};      // float32: use these and compute none
  std::optional<TensorView> given_zero_point = {};  // int32, int8 only, with given_scales
  // Further outputs, written if scales are computed: float32 scales, and if asymmetric int32
  // zero points. Shapes: [] for a tensor, x.shape[:-1] + [1] for tokens, for blocks see above.
  std::optional<TensorView> scales = {}, zero_point = {};
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// scales is empty if they were given, zero_point if none was computed.
struct QuantizeResult {
  Tensor out;         // the codes, shape of x
  Tensor scales;      // float32
  Tensor zero_point;  // int32
  // Converts to out, so the result can be passed as a tensor.
  operator TensorView() const { return out; }  // NOLINT
  // Hands it over: Tensor y = ... takes the memory.
  operator Tensor() && { return std::move(out); }  // NOLINT
};

// out = x / scale + zero point, rounded to nearest even and saturated, with scale = amax / largest
// over what shares it (448, 57344 or 127), 1 if that is 0; asymmetric: (max - min) / 255, and
// 0 lies between min and max. x: float32, float16 or bfloat16, any strides; computed in float32
// with a true division. Scales are contiguous. A NaN or an infinity in x makes the computed scale
// of its group one; then, as under given scales, a NaN is NaN in float8 and 0 in int8, and
// infinities saturate. An empty x has no scale to be computed: kind value, unless there are none.
void quantize(const TensorView& out, const TensorView& x, const QuantizeOptions& options = {});
QuantizeResult quantize(const TensorView& x, const QuantizeOptions& options = {});

// Arguments of dequantize() besides the arrays that it needs.
struct DequantizeOptions {
  DType dtype = DType::float32;                    // float32, float16 or bfloat16
  QuantizeScheme scheme = QuantizeScheme::tensor;  // as they were quantised
  BlockShape block_shape = BlockShape::row;        // likewise
  ScalesLayout scales_layout = ScalesLayout::row;  // likewise
  std::optional<TensorView> zero_point = {};       // int32, shape of scales; with int8
  std::string_view variant = {};                   // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};            // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out = (q - zero point) * scale in float32, rounded once. q: float8_e4m3fn, float8_e5m2 or int8,
// any strides; scales: as quantize() gives them for the same scheme.
void dequantize(const TensorView& out, const TensorView& q, const TensorView& scales,
                const DequantizeOptions& options = {});
Tensor dequantize(const TensorView& q, const TensorView& scales,
                  const DequantizeOptions& options = {});

}  // namespace tensorcraft

template <>
struct tensorcraft::op::EnumNames<tensorcraft::QuantizeScheme> {
  static constexpr std::array<std::string_view, 3> names = {"tensor", "token", "block"};
};
template <>
struct tensorcraft::op::EnumNames<tensorcraft::BlockShape> {
  static constexpr std::array<std::string_view, 2> names = {"1x128", "128x128"};
};
template <>
struct tensorcraft::op::EnumNames<tensorcraft::ScalesLayout> {
  static constexpr std::array<std::string_view, 2> names = {"row", "column"};
};
