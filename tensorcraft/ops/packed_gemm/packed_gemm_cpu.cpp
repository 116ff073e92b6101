// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/packed_gemm/problem.hpp"

#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/gemm.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/host/simd.hpp"
#include "tensorcraft/ops/packed_gemm/weight.cuh"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tensorcraft::kernel::packed_gemm {
namespace {

using Codes = uint32_t __attribute__((vector_size(32)));
using Values = float __attribute__((vector_size(32)));

// A word of 8 codes; all of its elements have one scale. The same as weight_of() of each: the
// compiler finds no vectors in that.
template <class S>
inline void unpack_word(uint32_t word, const Scale& scale, float tensor_scale, float* to) {
  constexpr Codes kShifts = {0, 16, 4, 20, 8, 24, 12, 28};  // code_place() of 8 neighbours
  const Codes codes = (Codes{} + word) >> kShifts & 15;
  Values values;
  if constexpr (kIsInt4<S>) {
    values = __builtin_convertvector(codes, Values) - float(scale.zero);
  } else {
    const Codes bits = (codes & 8) << 28 | (codes & 7) << 22;
    std::memcpy(&values, &bits, sizeof values);
    values *= 0x1p126f;
  }
  values = values * scale.factor * tensor_scale;
  if constexpr (kIsInt4<S>) values += scale.offset;
  std::memcpy(to, &values, sizeof values);
}

template <class S>
Scale scale_at(const Params& p, int64_t row, int64_t k) {
  return scale_of<S>(p, row, k / p.group);
}

template <class S>
inline void unpack_row(const Params& p, int64_t row, float* to) {
  const uint8_t* codes = p.codes + row * (p.k / 2);
  const auto next = [&] {
    uint32_t word;
    std::memcpy(&word, codes, sizeof word);
    codes += sizeof word;
    return word;
  };
  int64_t block = 0;
  for (; block + kCodesOfBlock <= p.k; block += kCodesOfBlock) {
    Scale scales[8];  // of 16 elements each, the smallest group
    for (int h = 0; h < 8; ++h) scales[h] = scale_at<S>(p, row, block + 16 * h);
    for (int t = 0; t < 4; ++t)
      for (int j = 0; j < 4; ++j)
        unpack_word<S>(next(), scales[2 * j + t / 2], p.tensor_scale, to + block + 32 * j + 8 * t);
  }
  for (int64_t k = block; k < p.k; k += 8)
    unpack_word<S>(next(), scale_at<S>(p, row, k), p.tensor_scale, to + k);
}

}  // namespace

TC_HOST_CLONES void unpack_rows(const Params& p, DType scales, int64_t first, int64_t count,
                                float* to) {
  for (int64_t row = first; row < first + count; ++row, to += p.k) switch (scales) {
      case DType::float32:
        unpack_row<float>(p, row, to);
        break;
      case DType::float16:
        unpack_row<f16>(p, row, to);
        break;
      case DType::bfloat16:
        unpack_row<bf16>(p, row, to);
        break;
      case DType::float8_e4m3fn:
        unpack_row<e4m3>(p, row, to);
        break;
      default:
        unpack_row<uint8_t>(p, row, to);
    }
}

namespace {

// All rows of W meet these operands.
struct Operands {
  Params p;
  DType scales;
  TensorView out;
  std::vector<float> a, bias;
};

Operands operands(const Problem& q) {
  Operands all{.p = params(q), .scales = q.scales.dtype(), .out = q.out};
  const Params& p = all.p;
  all.a.resize(size_t(p.m * p.k));
  const host::Rows from(q.a);
  for (int64_t token = 0; token < p.m; ++token) {
    float* const to = all.a.data() + token * p.k;
    const float* const row = from.read(token, to);
    if (row != to) std::copy_n(row, p.k, to);
  }
  all.bias.resize(size_t(q.bias ? p.n : 0));
  for (size_t i = 0; i < all.bias.size(); ++i)
    all.bias[i] = float(host::Elements(*q.bias)[int64_t(i)]);
  return all;
}

// Few tokens: each row of W meets them while it is in the cache.
void by_rows(const Operands& all, int64_t begin, int64_t end) {
  const Params& p = all.p;
  const host::Elements out(all.out);
  float* const weights = host::scratch(host::Slot::row_a, p.k);
  for (int64_t row = begin; row < end; ++row) {
    unpack_rows(p, all.scales, row, 1, weights);
    const float bias = all.bias.empty() ? 0.0f : all.bias[size_t(row)];
    for (int64_t token = 0; token < p.m; ++token)
      out.set(token * p.n + row, host::row_dot(all.a.data() + token * p.k, weights, p.k) + bias);
  }
}

// Many: rows of W that the cache holds are a matrix of the blocked product.
void by_products(const Operands& all, int64_t begin, int64_t end) {
  const Params& p = all.p;
  const TensorView& out = all.out;
  float* const weights = host::scratch(host::Slot::row_a, (end - begin) * p.k);
  unpack_rows(p, all.scales, begin, end - begin, weights);
  host::GemmProblem product{.m = p.m, .n = end - begin, .k = p.k};
  product.a = {all.a.data(), DType::float32, p.k, 1};
  product.b = {weights, DType::float32, 1, p.k};
  product.d = {out.data_as<std::byte>() + begin * out.stride(1) * int64_t(dtype_bytes(out.dtype())),
               out.dtype(), out.stride(0), out.stride(1)};
  if (!all.bias.empty()) product.bias = {all.bias.data() + begin, DType::float32, 0, 1};
  host::gemm(product);
}

}  // namespace

// Each row of W is unpacked once, for all rows of a, which are floats by then.
void cpu(const Problem& q) {
  constexpr int64_t kFewTokens = 8, kRowsOfProduct = 128, kRowsOfThread = 16;
  const Operands all = operands(q);
  const bool is_few = all.p.m <= kFewTokens;
  host::parallel_for(all.p.n, is_few ? kRowsOfThread : kRowsOfProduct,
                     [&](int64_t begin, int64_t end) {
                       if (is_few) return by_rows(all, begin, end);
                       for (int64_t row = begin; row < end; row += kRowsOfProduct)
                         by_products(all, row, std::min(end, row + kRowsOfProduct));
                     });
}

// In double from the codes, by the formulas and not by what the kernels share.
void reference(const Problem& q) {
  constexpr double kE2m1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const Params p = params(q);
  const host::Elements out(q.out), a(q.a), codes(q.codes), scales(q.scales);
  const bool is_int4 = is_int4_scale(q.scales.dtype());
  const auto weight = [&](int64_t row, int64_t k) {
    const bool is_block = k / 128 * 128 + 128 <= p.k;
    const int64_t j = k % 128 / 32, t = k % 32 / 8;
    const int64_t word = k / 128 * 16 + (is_block ? 4 * t + j : k % 128 / 8);
    const int64_t nibble = k % 2 * 4 + k % 8 / 2;
    const int64_t byte = row * p.k / 2 + 4 * word + nibble / 2;
    const int64_t code = codes.integer(byte) >> (nibble % 2 * 4) & 15;
    const int64_t at = row * (p.k / p.group) + k / p.group;
    if (q.has_offsets()) return double(code) * scales[at] + host::Elements(*q.zeros)[at];
    if (is_int4)
      return double(code - (q.zeros ? host::Elements(*q.zeros).integer(at) : 8)) * scales[at];
    const double value = (code & 8 ? -1 : 1) * kE2m1[code & 7];
    if (q.scales.dtype() == DType::uint8) {
      const int64_t exponent = scales.integer(at);
      return exponent == 255 ? std::nan("") : std::ldexp(value, int(exponent) - 127);
    }
    return value * scales[at] * double(p.tensor_scale);
  };
  for (int64_t i = 0; i < q.out.size(); ++i) {
    const int64_t token = i / p.n, row = i % p.n;
    double sum = q.bias ? host::Elements(*q.bias)[row] : 0;
    for (int64_t k = 0; k < p.k; ++k) sum += a[token * p.k + k] * weight(row, k);
    out.set(i, sum);
  }
}

}  // namespace tensorcraft::kernel::packed_gemm
