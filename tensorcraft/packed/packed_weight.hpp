// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace tensorcraft {

// How a weight is kept in 4 bits.
//   int4   (code - 8) * scale: scale bfloat16, amax / 7 of a group, 128 if none is asked for;
//          with zero points as these say
//   mxfp4  e2m1(code) * 2^e: e = floor(log2(amax)) - 2 of 32, as the OCP's MX formats have it
//   nvfp4  e2m1(code) * scale * tensor_scale: scale float8_e4m3fn of 16, amax / (6 tensor_scale),
//          and tensor_scale = amax of all / (6 * 448)
// Codes are rounded to nearest even and saturated.
enum class PackedFormat : int { int4, mxfp4, nvfp4 };
// Its name: "int4".
std::string_view to_string(PackedFormat format);

// A group of int4 may have this besides its scale, so that its weights may lie to one side of 0.
//   none
//   integer   the code that means 0, a byte: (code - zero) * scale, scale (max - min) / 15 of the
//             group and 0, zero -min / scale
//   floating  what code 0 means, of the dtype of the scales: code * scale + zero, zero the group's
//             minimum. Groups whose elements lie on 16 levels of equal distance or fewer are kept
//             as they are, up to the rounding of scale and zero: to float16 if that moves no
//             element by more than 1/16 of a level, else to float32
enum class ZeroPoints : int { none, integer, floating };

// Arguments of pack_weight() besides the weight.
struct PackWeightOptions {
  PackedFormat format = PackedFormat::int4;  // of codes and scales
  int64_t group = 0;  // neighbours along k that share a scale; 0: that of the format
  ZeroPoints zero_points = ZeroPoints::none;  // of int4 alone
};

// A matrix (k, n) of 4 bits an element, the second operand of products. Copies share its memory.
class PackedWeight {
 public:
  // Takes the parts from another program: as packed_gemm() takes them; kind value if they do not
  // fit each other.
  PackedWeight(Tensor codes, Tensor scales, std::optional<Tensor> zeros = std::nullopt,
               float tensor_scale = 1);

  // These return its parts: codes (n, k / 2), scales (n, k / group), zeros like scales or none.
  const Tensor& codes() const { return parts_->codes; }
  const Tensor& scales() const { return parts_->scales; }
  const std::optional<Tensor>& zeros() const { return parts_->zeros; }
  float tensor_scale() const { return parts_->tensor_scale; }
  PackedFormat format() const;
  int64_t k() const { return 2 * codes().shape(1); }
  int64_t n() const { return codes().shape(0); }
  int64_t group() const { return k() / scales().shape(1); }
  size_t nbytes() const;
  Device device() const { return codes().device(); }

 private:
  struct Parts {
    Tensor codes, scales;
    std::optional<Tensor> zeros;
    float tensor_scale;
  };
  std::shared_ptr<const Parts> parts_;
};

// Packs w: (k, n), float32, float16 or bfloat16, any strides and device, which is where the result
// is. It computes on the host and waits. Kind value for a k that is no multiple of the group, a
// group that is no multiple of 16 or not the format's, zero points of another format than int4, and
// an element that is not finite.
PackedWeight pack_weight(const TensorView& w, const PackWeightOptions& options = {});
// Its elements, (k, n), computed on the host.
Tensor unpack_weight(const PackedWeight& w, DType dtype = DType::float32);
// a (..., k) times the weight, plus bias (n,): (..., n), dtype of a. As packed_gemm().
Tensor packed_gemm(const TensorView& a, const PackedWeight& w,
                   const std::optional<TensorView>& bias = std::nullopt,
                   std::optional<StreamRef> stream = std::nullopt);

}  // namespace tensorcraft
