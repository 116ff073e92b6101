// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/attention/attention.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/ops/permute/permute.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

// Calls of attention with all its options, and what they mean.
namespace tensorcraft::test {

// Every variant of the host and the emulator, with a dtype that it takes.
struct AttentionPlace {
  std::string_view variant;
  Device device;
  DType dtype;
};
inline std::vector<AttentionPlace> all_places(std::vector<DType> dtypes = {DType::float32,
                                                                           DType::bfloat16}) {
  const auto devices = places();
  std::vector<AttentionPlace> all;
  for (const auto& v : find_operator("attention").description().variants)
    for (const Device device : devices)
      for (const DType dtype : dtypes) {
        if ((v.device == DeviceType::cpu) != (device == Device::cpu())) continue;
        const bool takes_floats = device == Device::cpu() || v.name == "naive" || v.name == "tiled";
        if (dtype == DType::float32 && !takes_floats) continue;
        all.push_back({v.name, device, dtype});
      }
  return all;
}
inline std::ostream& operator<<(std::ostream& out, const AttentionPlace& p) {
  return out << p.variant << ' ' << to_string(p.dtype);
}

// A call on the host; arrays that are not given are empty.
struct AttentionCall {
  Tensor q, k, v;
  AttentionOptions options = {};
  Tensor lengths, causal, sinks, mask, q_starts, k_starts;
  DType mask_dtype = DType::float32;

  struct Result {
    std::vector<double> out, lse;
  };
  // Into outputs that held NaN. Null: split_kv, which takes few queries, declines.
  std::optional<Result> run(const AttentionPlace& place) const {
    std::vector<Tensor> there;
    there.reserve(12);
    const auto put = [&](const Tensor& t) { return there.emplace_back(t.to(place.device)).view(); };
    const auto rounded = [&](const Tensor& t) { return put(astype(t, {.dtype = place.dtype})); };
    AttentionOptions o = options;
    const auto give = [&](std::optional<TensorView>& field, const Tensor& t) {
      if (t.size()) field.emplace(put(t));
    };
    give(o.key_lengths, lengths);
    give(o.causal.tensor, causal);
    give(o.sinks, sinks);
    if (mask.size()) o.mask.emplace(put(astype(mask, {.dtype = mask_dtype})));
    give(o.cu_seqlens_q, q_starts);
    give(o.cu_seqlens_k, k_starts);
    o.variant = place.variant;
    Dims shape = q.shape();
    shape[shape.rank() - 1] = v.shape(v.rank() - 1);
    const Dims rows =
        shape.rank() == 4 ? Dims{shape[0], shape[1], shape[2]} : Dims{shape[1], shape[0]};
    const auto poisoned = [&](DType dtype, const Dims& of) {
      Tensor t(DType::float32, of);
      std::fill_n(t.data_as<float>(), t.size(), std::numeric_limits<float>::quiet_NaN());
      return astype(t, {.dtype = dtype}).to(place.device);
    };
    const Tensor out = poisoned(place.dtype, shape), lse = poisoned(DType::float32, rows);
    o.lse.emplace(lse.view());
    try {
      attention(out, rounded(q), rounded(k), rounded(v), o);
    } catch (const Error& e) {
      if (place.variant != "split_kv" || e.kind() != ErrorKind::unsupported) throw;
      return std::nullopt;
    }
    return Result{doubles(out), doubles(lse)};
  }
};

inline Tensor ints(const std::vector<int32_t>& values) {
  return Tensor::from(values, {int64_t(values.size())});
}
inline Tensor bools(const std::vector<bool>& values) {
  Tensor t(DType::bool_, {int64_t(values.size())});
  for (size_t i = 0; i < values.size(); ++i) t.data_as<bool>()[i] = values[i];
  return t;
}

// Computes what the documentation says, key by key, of a batch that is not ragged.
inline AttentionCall::Result by_definition(const AttentionCall& c, DType dtype) {
  const auto rounded = [&](const Tensor& t) { return doubles(astype(t, {.dtype = dtype})); };
  const auto q = rounded(c.q), k = rounded(c.k), v = rounded(c.v);
  const int64_t batch = c.q.shape(0), heads = c.q.shape(1), sq = c.q.shape(2), d = c.q.shape(3),
                heads_k = c.k.shape(1), sk = c.k.shape(2), e = c.v.shape(3);
  const auto mask = c.mask.size()
                        ? doubles(astype(astype(c.mask, {.dtype = c.mask_dtype}), {DType::float32}))
                        : std::vector<double>();
  const double scale = c.options.scale.value_or(float(1 / std::sqrt(double(d))));
  AttentionCall::Result r;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < sq; ++i) {
        const int64_t keys = c.lengths.size() ? c.lengths.data_as<int32_t>()[b] : sk;
        const bool causal = c.causal.size() ? c.causal.data_as<bool>()[b] : c.options.causal.value;
        const int64_t at = i + keys - sq, kv = b * heads_k + h / (heads / heads_k);
        double sum = c.sinks.size() ? std::exp(double(c.sinks.data_as<float>()[h])) : 0;
        std::vector<double> out(static_cast<size_t>(e));
        for (int64_t j = 0; j < keys; ++j) {
          if (causal && j > at) continue;
          if (c.options.window) {
            const auto [left, right] = std::pair((*c.options.window)[0], (*c.options.window)[1]);
            if ((left >= 0 && j < at - left) || (right >= 0 && j > at + right)) continue;
          }
          double s = 0;
          for (int64_t x = 0; x < d; ++x)
            s += q[size_t(((b * heads + h) * sq + i) * d + x)] * k[size_t((kv * sk + j) * d + x)];
          s *= scale;
          if (c.options.softcap) s = *c.options.softcap * std::tanh(s / *c.options.softcap);
          if (!mask.empty()) {  // [sq, sk]
            const double m = mask[size_t(i * sk + j)];
            if (c.mask_dtype == DType::bool_ && m == 0) continue;
            if (c.mask_dtype != DType::bool_) s += m;
          }
          const double weight = std::exp(s);
          sum += weight;
          for (int64_t x = 0; x < e; ++x)
            out[size_t(x)] += weight * v[size_t((kv * sk + j) * e + x)];
        }
        for (const double x : out) r.out.push_back(sum == 0 ? 0 : x / sum);
        r.lse.push_back(std::log(sum));
      }
  return r;
}

inline void expect_near(const AttentionCall::Result& got, const AttentionCall::Result& want,
                        const AttentionPlace& place, const std::string& what) {
  ASSERT_EQ(got.out.size(), want.out.size());
  ASSERT_EQ(got.lse.size(), want.lse.size());
  const double tolerance = place.dtype == DType::float32 ? 2e-5 : 0.02;
  for (size_t i = 0; i < want.out.size(); ++i)
    ASSERT_NEAR(got.out[i], want.out[i], tolerance) << place << ": " << what << " out " << i;
  for (size_t i = 0; i < want.lse.size(); ++i)
    if (std::isinf(want.lse[i]))
      ASSERT_EQ(got.lse[i], want.lse[i]) << place << ": " << what << " lse " << i;
    else
      ASSERT_NEAR(got.lse[i], want.lse[i], 1e-4) << place << ": " << what << " lse " << i;
}

}  // namespace tensorcraft::test
