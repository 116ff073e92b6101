// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/packed/packed_weight.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/device/pack4.h"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/ops/all.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

namespace tensorcraft {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"int4", "mxfp4", "nvfp4"};
constexpr std::array<int64_t, 3> kGroups = {128, 32, 16};  // that a format has if none is asked for
constexpr float kMostE2m1 = 6, kMostE4m3 = 448;

// The code of the nearest value, of two equally near ones the even code.
uint8_t e2m1_code(float x) {
  constexpr std::array<float, 7> kBetween = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5};
  const float size = std::fabs(x);
  int code = 0;
  while (code < 7 &&
         (size > kBetween[size_t(code)] || (size == kBetween[size_t(code)] && code % 2 == 1)))
    ++code;
  return uint8_t(code | (std::signbit(x) && code > 0 ? 8 : 0));
}

float amax(const float* values, int64_t count) {
  float most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, std::fabs(values[i]));
  return most;
}

// The scale of one group, and of int4 the code that means 0.
struct GroupScale {
  float factor;
  float zero = 8;
};

// The scale of one group as it is kept, and the codes of its elements.
struct Packer {
  PackedFormat format;
  bool zero_points;
  float tensor_scale = 1;

  GroupScale scale_of(const float* values, int64_t count, std::byte* to) const {
    if (!zero_points) return {scale_of(amax(values, count), to)};
    const auto [least, most] = std::minmax_element(values, values + count);
    const float low = std::min(*least, 0.0f), high = std::max(*most, 0.0f);
    const float factor = keep_int4(high > low ? (high - low) / 15 : 1.0f, to);
    return {factor, std::clamp(std::nearbyint(-low / factor), 0.0f, 15.0f)};
  }
  // Writes the scale and gives its value.
  static float keep_int4(float scale, std::byte* to) {
    const bf16 kept(scale);
    std::memcpy(to, &kept, sizeof(kept));
    return float(kept);
  }
  float scale_of(float most, std::byte* to) const {
    if (format == PackedFormat::int4) return keep_int4(most > 0 ? most / 7 : 1.0f, to);
    if (format == PackedFormat::mxfp4) {
      const int exponent = most > 0 ? std::clamp(std::ilogb(most) - 2, -127, 127) : 0;
      const auto bits = uint8_t(exponent + 127);
      std::memcpy(to, &bits, 1);
      return e8m0_value(bits);
    }
    const e4m3 scale(std::min(most / (kMostE2m1 * tensor_scale), kMostE4m3));
    std::memcpy(to, &scale, 1);
    return float(scale) * tensor_scale;
  }
  uint8_t code_of(float w, const GroupScale& scale) const {
    if (format == PackedFormat::int4)
      return uint8_t(std::clamp(std::nearbyint(w / scale.factor) + scale.zero, 0.0f, 15.0f));
    return e2m1_code(scale.factor > 0 ? w / scale.factor : 0.0f);
  }
};

DType scale_dtype(PackedFormat format) {
  if (format == PackedFormat::int4) return DType::bfloat16;
  return format == PackedFormat::mxfp4 ? DType::uint8 : DType::float8_e4m3fn;
}

int64_t checked_group(const TensorView& w, const PackWeightOptions& o) {
  if (w.rank() != 2)
    fail(ErrorKind::value, "pack_weight: w: expected a matrix (k, n), got shape ", w.shape());
  const int64_t own = kGroups.at(size_t(o.format)), group = o.group ? o.group : own;
  if (o.format != PackedFormat::int4 && group != own)
    fail(ErrorKind::value, "pack_weight: group: ", to_string(o.format), " has groups of ", own,
         ", got ", group);
  if (o.zero_points && o.format != PackedFormat::int4)
    fail(ErrorKind::value, "pack_weight: zero_points: ", to_string(o.format),
         " has none; expected format int4");
  if (group < 16 || group % 16)
    fail(ErrorKind::value, "pack_weight: group must be a multiple of 16, got ", group);
  if (w.shape(0) == 0 || w.shape(0) % group)
    fail(ErrorKind::value, "pack_weight: w: k must be a multiple of the group, ", group,
         ", and above 0, got ", w.shape(0));
  return group;
}

// With the factor of all.
std::vector<float> scale_values(const PackedWeight& w) {
  std::vector<float> values;
  if (w.format() == PackedFormat::mxfp4)
    for (const uint8_t bits : w.scales().to_vector<uint8_t>()) values.push_back(e8m0_value(bits));
  else
    values = astype(w.scales(), {.dtype = DType::float32}).to_vector<float>();
  for (float& value : values) value *= w.tensor_scale();
  return values;
}

// (n, k) on the host.
std::vector<float> rows_of(const TensorView& w) {
  const Tensor turned = astype(w.transpose(0, 1), {.dtype = DType::float32});
  return turned.to_vector<float>();
}

}  // namespace

std::string_view to_string(PackedFormat format) { return kNames.at(size_t(format)); }

PackedWeight::PackedWeight(Tensor codes, Tensor scales, std::optional<Tensor> zeros,
                           float tensor_scale) {
  // The check of a product of no rows.
  const Tensor a(DType::float32, {0, codes.rank() == 2 ? 2 * codes.shape(1) : 0}, codes.device());
  const std::optional<TensorView> given = zeros ? std::optional(zeros->view()) : std::nullopt;
  packed_gemm(a, codes, scales, {.zeros = given, .tensor_scale = tensor_scale});
  parts_ = std::make_shared<const Parts>(
      Parts{std::move(codes), std::move(scales), std::move(zeros), tensor_scale});
}

PackedFormat PackedWeight::format() const {
  if (scales().dtype() == DType::uint8) return PackedFormat::mxfp4;
  return scales().dtype() == DType::float8_e4m3fn ? PackedFormat::nvfp4 : PackedFormat::int4;
}

size_t PackedWeight::nbytes() const {
  return codes().nbytes() + scales().nbytes() + (zeros() ? zeros()->nbytes() : 0);
}

PackedWeight pack_weight(const TensorView& w, const PackWeightOptions& options) {
  const int64_t group = checked_group(w, options), k = w.shape(0), n = w.shape(1);
  const std::vector<float> rows = rows_of(w);
  for (size_t i = 0; i < rows.size(); ++i)
    if (!std::isfinite(rows[i]))
      fail(ErrorKind::value, "pack_weight: w: element (", int64_t(i) % k, ", ", int64_t(i) / k,
           ") is ", rows[i], ", expected finite weights");
  Packer packer{options.format, options.zero_points};
  if (options.format == PackedFormat::nvfp4) {
    const float most = amax(rows.data(), n * k);
    packer.tensor_scale = most > 0 ? most / (kMostE2m1 * kMostE4m3) : 1.0f;
  }
  Tensor codes(DType::uint8, {n, k / 2}), scales(scale_dtype(options.format), {n, k / group});
  std::optional<Tensor> zeros;
  if (options.zero_points) zeros.emplace(DType::uint8, scales.shape());
  const size_t scale_bytes = dtype_bytes(scales.dtype());
  host::for_each_row(n, k, [&](int64_t row) {
    auto* const to = codes.data_as<uint8_t>() + row * (k / 2);
    std::fill_n(to, k / 2, uint8_t(0));
    for (int64_t first = 0; first < k; first += group) {
      const float* const values = rows.data() + row * k + first;
      const auto at = size_t(row * (k / group) + first / group);
      const GroupScale scale =
          packer.scale_of(values, group, scales.data_as<std::byte>() + at * scale_bytes);
      if (zeros) zeros->data_as<uint8_t>()[at] = uint8_t(scale.zero);
      for (int64_t i = 0; i < group; ++i) {
        const CodePlace place = code_place(first + i, k);
        to[place.byte] = uint8_t(to[place.byte] | packer.code_of(values[i], scale) << place.shift);
      }
    }
  });
  const Device device = w.device();
  if (zeros) zeros = zeros->to(device);
  return {codes.to(device), scales.to(device), std::move(zeros), packer.tensor_scale};
}

Tensor unpack_weight(const PackedWeight& w, DType dtype) {
  const Tensor codes = w.codes().to(Device::cpu());
  const bool is_int4 = w.format() == PackedFormat::int4;
  const std::vector<float> scales = scale_values(w);
  std::vector<uint8_t> zeros(scales.size(), 8);
  if (w.zeros()) zeros = w.zeros()->to_vector<uint8_t>();
  const int64_t k = w.k(), n = w.n(), group = w.group();
  Tensor rows(DType::float32, {n, k});
  host::for_each_row(n, k, [&](int64_t row) {
    for (int64_t i = 0; i < k; ++i) {
      const CodePlace place = code_place(i, k);
      const uint32_t byte = codes.data_as<uint8_t>()[row * (k / 2) + place.byte];
      const uint32_t code = byte >> place.shift & 15;
      const auto at = size_t(row * (k / group) + i / group);
      const float value = is_int4 ? float(int(code) - int(zeros[at])) : e2m1_value(code);
      rows.data_as<float>()[row * k + i] = value * scales[at];
    }
  });
  const Tensor turned = astype(rows.transpose(0, 1), {.dtype = dtype});
  return turned.to(w.device());
}

Tensor packed_gemm(const TensorView& a, const PackedWeight& w,
                   const std::optional<TensorView>& bias, std::optional<StreamRef> stream) {
  if (a.rank() == 0 || a.shape(a.rank() - 1) != w.k())
    fail(ErrorKind::value, "packed_gemm: a: expected shape (..., ", w.k(),
         ") for a weight of k = ", w.k(), ", got ", a.shape());
  Dims shape = a.shape();
  shape[shape.rank() - 1] = w.n();
  const Device device = a.device();
  Tensor out =
      stream ? Tensor(a.dtype(), shape, device, *stream) : Tensor(a.dtype(), shape, device);
  const int64_t rows = out.size() / std::max<int64_t>(w.n(), 1);
  std::optional<TensorView> zeros;
  if (w.zeros()) zeros = w.zeros()->view();
  packed_gemm(out.reshape({rows, w.n()}), a.reshape({rows, w.k()}), w.codes(), w.scales(),
              {.zeros = zeros, .bias = bias, .tensor_scale = w.tensor_scale(), .stream = stream});
  return out;
}

}  // namespace tensorcraft
