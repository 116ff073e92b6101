// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/packed/checkpoint.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/tensor_matcher.hpp"
#include "tensorcraft/device/pack4.h"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/ops/all.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace tensorcraft {
namespace {

constexpr int64_t kCodesOfWord = 8;

// A matrix of int32 words on the host, each of 8 codes.
struct Words {
  std::vector<int32_t> words;
  int64_t columns;
  int code(int64_t row, int64_t column, int64_t place) const {
    return int(uint32_t(words[size_t(row * columns + column)]) >> 4 * place & 15);
  }
};

Words words_of(const TensorView& t) { return {copy(t).to_vector<int32_t>(), t.shape(1)}; }

// The sizes of a checkpoint's weight, checked.
struct Sizes {
  int64_t k, n, groups;
  int64_t group() const { return k / groups; }
};

// `along_k`: do words have codes along k, or along n?
Sizes checked(std::string_view name, const TensorView& qweight, const TensorView& qzeros,
              const TensorView& scales, int64_t group, bool along_k) {
  SymbolicSize rows("rows of qweight"), columns("columns of qweight"), groups("groups"), n("n"),
      words("n / 8");
  TensorMatcher({rows, columns})
      .with_any_strides()
      .with_dtype({DType::int32})
      .verify(qweight, name, "qweight");
  TensorMatcher({groups, n})
      .with_any_strides()
      .with_dtype({DType::float16, DType::bfloat16, DType::float32})
      .verify(scales, name, "scales");
  TensorMatcher({groups, words})
      .with_any_strides()
      .with_dtype({DType::int32})
      .verify(qzeros, name, "qzeros");
  const Sizes s{rows.unwrap() * (along_k ? kCodesOfWord : 1), n.unwrap(), groups.unwrap()};
  const int64_t columns_of_weight = columns.unwrap() * (along_k ? 1 : kCodesOfWord);
  if (columns_of_weight != s.n)
    fail(ErrorKind::value, name, ": qweight: has ", columns_of_weight,
         " columns of 4 bits, scales ", s.n, "; expected as many");
  if (words.unwrap() * kCodesOfWord != s.n)
    fail(ErrorKind::value, name, ": qzeros: expected n / 8 = ", s.n / kCodesOfWord,
         " words a row for n = ", s.n, " columns of 4 bits, got ", words.unwrap());
  if (s.k == 0 || s.groups == 0 || s.k % s.groups || s.group() % 16)
    fail(ErrorKind::value, name, ": scales: expected a row for each group of k = ", s.k,
         " rows of the weight, a multiple of 16, got ", s.groups, " rows");
  if (group && (group == -1 ? s.k : group) != s.group())
    fail(ErrorKind::value, name, ": group: scales have one row for ", s.group(),
         " rows of the weight, got ", group);
  return s;
}

void check_order(const TensorView& g_idx, const Sizes& s) {
  constexpr std::string_view kName = "pack_weight_from_gptq";
  SymbolicSize k("k");
  k.set_value(s.k);
  TensorMatcher({k}).with_any_strides().with_dtype({DType::int32}).verify(g_idx, kName, "g_idx");
  const std::vector<int32_t> groups = copy(g_idx).to_vector<int32_t>();
  for (int64_t i = 0; i < s.k; ++i)
    if (groups[size_t(i)] != i / s.group())
      fail(ErrorKind::unsupported, kName, ": g_idx: row ", i, " is of group ", groups[size_t(i)],
           ", expected ", i / s.group(), " for groups of ", s.group(),
           " neighbours; this checkpoint is in the order of activations (desc_act): quantise it ",
           "without, or unpack it and use pack_weight");
}

// code_of(i, row) and zero_of(group, row) are those of the weight's element (i, row).
template <class CodeOf, class ZeroOf>
PackedWeight assembled(const Sizes& s, const TensorView& scales, Device device, CodeOf&& code_of,
                       ZeroOf&& zero_of) {
  Tensor codes(DType::uint8, {s.n, s.k / 2}), zeros(DType::uint8, {s.n, s.groups});
  host::for_each_row(s.n, s.k, [&](int64_t row) {
    uint8_t* const to = codes.data_as<uint8_t>() + row * (s.k / 2);
    std::fill_n(to, s.k / 2, uint8_t(0));
    for (int64_t i = 0; i < s.k; ++i) set_code(to, i, s.k, code_of(i, row));
    for (int64_t group = 0; group < s.groups; ++group)
      zeros.data_as<uint8_t>()[row * s.groups + group] = uint8_t(zero_of(group, row));
  });
  std::optional<Tensor> kept;
  if (std::ranges::any_of(zeros.to_vector<uint8_t>(), [](uint8_t zero) { return zero != 8; }))
    kept = zeros.to(device);
  return {codes.to(device), copy(scales.transpose(0, 1)).to(device), std::move(kept)};
}

}  // namespace

PackedWeight pack_weight_from_gptq(const TensorView& qweight, const TensorView& qzeros,
                                   const TensorView& scales, const GptqOptions& options) {
  const Sizes s = checked("pack_weight_from_gptq", qweight, qzeros, scales, options.group, true);
  if (options.g_idx) check_order(*options.g_idx, s);
  const Words codes = words_of(qweight), zeros = words_of(qzeros);
  const int more = options.zeros == GptqZeros::minus_one ? 1 : 0;
  return assembled(
      s, scales, qweight.device(),
      [&](int64_t i, int64_t row) { return codes.code(i / kCodesOfWord, row, i % kCodesOfWord); },
      [&](int64_t group, int64_t row) {
        return zeros.code(group, row / kCodesOfWord, row % kCodesOfWord) + more;
      });
}

PackedWeight pack_weight_from_awq(const TensorView& qweight, const TensorView& qzeros,
                                  const TensorView& scales, int64_t group) {
  const Sizes s = checked("pack_weight_from_awq", qweight, qzeros, scales, group, false);
  const Words codes = words_of(qweight), zeros = words_of(qzeros);
  // Where a word has each of 8 columns, if from its lowest bits on it has 0 2 4 6 1 3 5 7.
  constexpr std::array<int64_t, kCodesOfWord> kPlaces = {0, 4, 1, 5, 2, 6, 3, 7};
  const auto read = [&](const Words& from, int64_t i, int64_t row) {
    return from.code(i, row / kCodesOfWord, kPlaces[size_t(row % kCodesOfWord)]);
  };
  return assembled(
      s, scales, qweight.device(), [&](int64_t i, int64_t row) { return read(codes, i, row); },
      [&](int64_t at, int64_t row) { return read(zeros, at, row); });
}

}  // namespace tensorcraft
