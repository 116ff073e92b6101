// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/packed/packed_weight.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/device/pack4.h"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/packed_gemm/problem.hpp"

#include <algorithm>
#include <array>
#include <cmath>
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

// A group of int4 or e2m1 codes is packed by a fit: the step between codes, and where they begin.
struct Fit {
  float factor;
  float low = 0;  // of zero points
};

// Weights of a group of int4 as code * factor + low. Sixteen levels from the least to the largest,
// unless all weights lie on fewer of equal distance.
Fit fit_levels(const float* values, int64_t count) {
  const auto [least, most] = std::minmax_element(values, values + count);
  const double low = *least, range = double(*most) - low;
  constexpr double kOnLevel = 1.0 / 64;  // of their distance
  const auto are_levels = [&](int steps) {
    return std::all_of(values, values + count, [&](float w) {
      const double level = (w - low) / range * steps;
      return std::fabs(level - std::nearbyint(level)) <= kOnLevel;
    });
  };
  int steps = 15;
  while (steps > 0 && range > 0 && !are_levels(steps)) --steps;
  return {float(range / (steps > 0 ? steps : 15)), *least};
}

// Does float16 keep the scale and the zero point so well that no element moves by more than 1/16 of
// a level?
bool fits_float16(const Fit& fit) {
  const float factor = float(f16(fit.factor)), low = float(f16(fit.low));
  return 15 * std::fabs(factor - fit.factor) + std::fabs(low - fit.low) <= fit.factor / 16;
}

// A group as it is kept: weights are (code - zero) * factor + low.
struct Group {
  float factor;
  float zero;
  float low;
};

// How groups are fitted and kept, and their elements coded.
struct Packer {
  PackedFormat format;
  ZeroPoints zero_points;
  float tensor_scale = 1;

  Fit fit(const float* values, int64_t count) const {
    if (zero_points == ZeroPoints::floating) return fit_levels(values, count);
    if (zero_points == ZeroPoints::integer) {
      const auto [least, most] = std::minmax_element(values, values + count);
      const float low = std::min(*least, 0.0f), high = std::max(*most, 0.0f);
      return {high > low ? (high - low) / 15 : 1.0f, low};
    }
    const float most = amax(values, count);
    if (format == PackedFormat::int4) return {most > 0 ? most / 7 : 1.0f};
    if (format == PackedFormat::nvfp4)
      return {std::min(most / (kMostE2m1 * tensor_scale), kMostE4m3)};
    return {most > 0 ? std::ldexp(1.0f, std::clamp(std::ilogb(most) - 2, -127, 127)) : 1.0f};
  }
  // Writes the scale and the zero point of a group.
  Group keep(const Fit& fit, int64_t at, const host::Elements& scales,
             const std::optional<host::Elements>& zeros) const {
    if (format == PackedFormat::mxfp4) {
      scales.set_integer(at, std::ilogb(fit.factor) + 127);
      return {fit.factor, 0, 0};
    }
    scales.set(at, fit.factor);
    const float factor = float(scales[at]);
    if (format == PackedFormat::nvfp4) return {factor * tensor_scale, 0, 0};
    if (zero_points == ZeroPoints::none) return {factor, 8, 0};
    const bool is_code = zero_points == ZeroPoints::integer;
    zeros->set(at, is_code ? std::clamp(std::nearbyint(-fit.low / factor), 0.0f, 15.0f) : fit.low);
    const auto zero = float((*zeros)[at]);
    return is_code ? Group{factor, zero, 0} : Group{factor, 0, zero};
  }
  uint8_t code_of(float w, const Group& group) const {
    const float steps = group.factor > 0 ? (w - group.low) / group.factor : 0.0f;
    if (format != PackedFormat::int4) return e2m1_code(steps);
    return uint8_t(std::clamp(std::nearbyint(steps) + group.zero, 0.0f, 15.0f));
  }
};

DType scale_dtype(const Packer& packer, const std::vector<Fit>& fits) {
  if (packer.zero_points == ZeroPoints::floating)
    return std::ranges::all_of(fits, fits_float16) ? DType::float16 : DType::float32;
  if (packer.format == PackedFormat::int4) return DType::bfloat16;
  return packer.format == PackedFormat::mxfp4 ? DType::uint8 : DType::float8_e4m3fn;
}

int64_t checked_group(const TensorView& w, const PackWeightOptions& o) {
  if (w.rank() != 2)
    fail(ErrorKind::value, "pack_weight: w: expected a matrix (k, n), got shape ", w.shape());
  const int64_t own = kGroups.at(size_t(o.format)), group = o.group ? o.group : own;
  if (o.format != PackedFormat::int4 && group != own)
    fail(ErrorKind::value, "pack_weight: group: ", to_string(o.format), " has groups of ", own,
         ", got ", group);
  if (o.zero_points != ZeroPoints::none && o.format != PackedFormat::int4)
    fail(ErrorKind::value, "pack_weight: zero_points: ", to_string(o.format),
         " has none; expected format int4");
  if (group < 16 || group % 16)
    fail(ErrorKind::value, "pack_weight: group must be a multiple of 16, got ", group);
  if (w.shape(0) == 0 || w.shape(0) % group)
    fail(ErrorKind::value, "pack_weight: w: k must be a multiple of the group, ", group,
         ", and above 0, got ", w.shape(0));
  return group;
}

// (n, k) on the host.
std::vector<float> finite_rows(const TensorView& w) {
  const Tensor turned = astype(w.transpose(0, 1), {.dtype = DType::float32});
  std::vector<float> rows = turned.to_vector<float>();
  const int64_t k = w.shape(0);
  for (size_t i = 0; i < rows.size(); ++i)
    if (!std::isfinite(rows[i]))
      fail(ErrorKind::value, "pack_weight: w: element (", int64_t(i) % k, ", ", int64_t(i) / k,
           ") is ", rows[i], ", expected finite weights");
  return rows;
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
  const int64_t groups = k / group;
  const std::vector<float> rows = finite_rows(w);
  Packer packer{options.format, options.zero_points};
  if (options.format == PackedFormat::nvfp4) {
    const float most = amax(rows.data(), n * k);
    packer.tensor_scale = most > 0 ? most / (kMostE2m1 * kMostE4m3) : 1.0f;
  }
  std::vector<Fit> fits(size_t(n * groups));
  host::for_each_row(n, k, [&](int64_t row) {
    for (int64_t at = row * groups; at < (row + 1) * groups; ++at)
      fits[size_t(at)] = packer.fit(rows.data() + at * group, group);
  });
  Tensor codes(DType::uint8, {n, k / 2}), scales(scale_dtype(packer, fits), {n, groups});
  std::optional<Tensor> zeros;
  std::optional<host::Elements> points;
  if (options.zero_points != ZeroPoints::none) {
    const bool is_code = options.zero_points == ZeroPoints::integer;
    zeros.emplace(is_code ? DType::uint8 : scales.dtype(), scales.shape());
    points.emplace(*zeros);
  }
  const host::Elements factors(scales);
  host::for_each_row(n, k, [&](int64_t row) {
    uint8_t* const to = codes.data_as<uint8_t>() + row * (k / 2);
    std::fill_n(to, k / 2, uint8_t(0));
    for (int64_t at = row * groups; at < (row + 1) * groups; ++at) {
      const Group kept = packer.keep(fits[size_t(at)], at, factors, points);
      const float* const values = rows.data() + at * group;
      for (int64_t i = 0; i < group; ++i)
        set_code(to, at % groups * group + i, k, packer.code_of(values[i], kept));
    }
  });
  const Device device = w.device();
  if (zeros) zeros = zeros->to(device);
  return {codes.to(device), scales.to(device), std::move(zeros), packer.tensor_scale};
}

Tensor unpack_weight(const PackedWeight& w, DType dtype) {
  const Tensor codes = w.codes().to(Device::cpu()), scales = w.scales().to(Device::cpu());
  std::optional<Tensor> zeros;
  std::optional<TensorView> points;
  if (w.zeros()) points = zeros.emplace(w.zeros()->to(Device::cpu()));
  const int64_t k = w.k(), n = w.n();
  const Tensor a(DType::float32, {0, k}), out(DType::float32, {0, n});  // a product of no rows
  const kernel::packed_gemm::Problem product{out, a, codes, scales, points, {}, w.tensor_scale()};
  const auto params = kernel::packed_gemm::params(product);
  const Tensor rows(DType::float32, {n, k});
  host::for_each_row(n, k, [&](int64_t row) {
    kernel::packed_gemm::unpack_rows(params, scales.dtype(), row, 1,
                                     rows.data_as<float>() + row * k);
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
