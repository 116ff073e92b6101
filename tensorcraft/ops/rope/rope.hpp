// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/value.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>
#include <utility>

namespace tensorcraft {

// Which elements of a head rotate together: i with i + D/2, or 2i with 2i + 1.
enum class RopeStyle : int { Half, Interleaved };

// Arguments of rope() besides the arrays that it needs.
struct RopeOptions {
  std::optional<TensorView> k = {};  // rotated in the same launch; shape of x but for the heads
  std::optional<TensorView> cos = {}, sin = {};  // [max_seq, D/2], dtype of x or float32; both
  std::optional<TensorView> positions = {};      // int32 or int64, [S] or a position for each token
  int64_t start_pos = 0;                         // position of the first token; not with positions
  RopeStyle style = RopeStyle::Half;             // which elements are a pair
  float base = 10000.0f;                         // of the angles, if cos and sin are not given
  // A further output, written if given: k rotated, shape of k.
  std::optional<TensorView> k_out = {};
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// k_out is empty if no k was given.
struct RopeResult {
  Tensor out, k_out;  // shapes of x and k
  // Converts to out, so the result can be passed as a tensor.
  operator TensorView() const { return out; }  // NOLINT
  // Hands it over: Tensor y = ... takes the memory.
  operator Tensor() && { return std::move(out); }  // NOLINT
};

// Rotary position embedding: each pair of a head turns by position * base^(-2i/D), i its number.
// x: [..., S, H, D] with at least 3 axes and any strides, D even; float32, float16 or bfloat16,
// computed in float32 and rounded once. Without cos and sin the angles are computed, and any
// position will do; with them it must be below max_seq: an error of kind index if the host can
// know it, before anything is written; a position in GPU memory that is not makes its token NaN.
// out: shape and dtype of x; it may be exactly x, and k_out exactly k, also slices of one packed
// projection. Tokens come before heads: attention() takes such a tensor as bshd, not its default.
void rope(const TensorView& out, const TensorView& x, const RopeOptions& options = {});
RopeResult rope(const TensorView& x, const RopeOptions& options = {});

// Arguments of rope_cache() besides the arrays that it needs.
struct RopeCacheOptions {
  int64_t dim = 0;                       // D, even
  float base = 10000.0f;                 // of the angles
  DType dtype = DType::float32;          // float32, float16 or bfloat16
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Computes the cos and sin that rope() takes: out[0] and out[1] are [n, dim/2] for n positions,
// int32 or int64; of positions 0, 1, ... n - 1 they serve every position below n.
void rope_cache(const TensorView& out, const TensorView& positions,
                const RopeCacheOptions& options);
Tensor rope_cache(const TensorView& positions, const RopeCacheOptions& options);

}  // namespace tensorcraft

template <>
struct tensorcraft::op::EnumNames<tensorcraft::RopeStyle> {
  static constexpr std::array<std::string_view, 2> names = {"half", "interleaved"};
};
