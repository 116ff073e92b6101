// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/sparse/matrix.hpp"
#include "tensorcraft/tensorcraft.hpp"
#include "tests/ops/property.hpp"
#include "tests/support/sparse_matrix.hpp"
#include "tests/support/tolerance.hpp"

#include <gtest/gtest.h>

#include <array>
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

// Sums of products: of matrices, of attention, of windows and of sparse matrices.
namespace tensorcraft::test {
namespace {

using Doubles = std::vector<double>;

class PropertyOfProducts : public Property {};
INSTANTIATE_TEST_SUITE_P(Variants, PropertyOfProducts, ::testing::ValuesIn(rows_of_properties()),
                         name_of_rows);
INSTANTIATE_TEST_SUITE_P(Devices, PropertyOfVariants, ::testing::ValuesIn(devices_of_properties()),
                         [](const auto& info) { return "on_" + name_of_place(info.param); });

// Elements of an m x n matrix: all of a small one.
std::vector<int64_t> some_elements(int64_t size, Random& random) {
  constexpr int64_t kMost = 2000;
  std::vector<int64_t> chosen(size_t(std::min(size, kMost)));
  for (size_t i = 0; i < chosen.size(); ++i)
    chosen[i] = size <= kMost ? int64_t(i) : between(random, 0, size - 1);
  return chosen;
}

TEST_P(PropertyOfProducts, GemmIsAlphaTimesTheProductPlusBetaTimesC) {
  const bool is_slow = device_ == Device::simt() || GetParam().variant == "reference";
  for_many_cases([&](Random& random) {
    const auto extent = [&] { return between(random, 1, is_slow ? 60 : 512); };
    const int64_t m = extent(), n = extent(), k = extent();
    const Tensor a = normal_tensor({m, k}, random), b = normal_tensor({k, n}, random);
    const float alpha = real_between(random, -2, 2);
    const float beta = random() % 4 ? real_between(random, -2, 2) : 0.0f;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    Tensor c = normal_tensor({m, n}, random);
    if (beta == 0) c = Tensor::from(std::vector<float>(size_t(m * n), nan), {m, n}, device_);
    const auto x = values(a), y = values(b), added = values(c);
    const auto d =
        values(gemm(a, b, {.c = c, .alpha = alpha, .beta = beta, .variant = GetParam().variant}));
    for (const int64_t i : some_elements(m * n, random)) {
      double product = 0, size = 0;
      for (int64_t e = 0; e < k; ++e) {
        const double term = double(x[size_t(i / n * k + e)]) * y[size_t(e * n + i % n)];
        product += term;
        size += std::abs(term);
      }
      const double expected =
          double(alpha) * product + (beta == 0 ? 0 : double(beta) * added[size_t(i)]);
      ASSERT_NEAR(d[size_t(i)], expected, 1e-6 * (1 + 4 * size)) << m << " x " << n << " x " << k;
    }
  });
}

TEST_P(PropertyOfProducts, AFusedEpilogueEqualsItsOperatorsInTurn) {
  for_many_cases([&](Random& random) {
    const int64_t m = between(random, 1, 30), n = between(random, 1, 30),
                  k = between(random, 1, 30);
    const auto v = GetParam().variant;
    const Tensor a = normal_tensor({m, k}, random), b = normal_tensor({k, n}, random),
                 bias = normal_tensor({n}, random);
    const Tensor sum = add(gemm(a, b, {.variant = v}), bias);
    const auto fused = [&](Activation activation) {
      return gemm(a, b, {.bias = bias, .activation = activation, .variant = v});
    };
    expect_close(fused(Activation::none), sum, 1e-5, 1e-5);
    expect_close(fused(Activation::relu), relu(sum), 1e-5, 1e-5);
    expect_close(fused(Activation::gelu), gelu(sum), 1e-5, 1e-5);
    expect_close(fused(Activation::gelu_tanh), gelu(sum, {.approximate = GeluApproximation::tanh}),
                 1e-5, 1e-5);
    expect_close(fused(Activation::silu), silu(sum), 1e-5, 1e-5);
  });
}

// softmax(q k^T / sqrt(dim)) v of one head, in double.
Doubles attention_of(const Doubles& q, const Doubles& k, const Doubles& v, int64_t rows,
                     int64_t keys, int64_t dim, size_t head) {
  const auto element = [&](const Doubles& of, int64_t length, int64_t row, int64_t i) {
    return of[size_t(int64_t(head) * length * dim + row * dim + i)];
  };
  Doubles out(size_t(rows * dim), 0.0), scores(static_cast<size_t>(keys));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t key = 0; key < keys; ++key) {
      double score = 0;
      for (int64_t i = 0; i < dim; ++i)
        score += element(q, rows, row, i) * element(k, keys, key, i);
      scores[size_t(key)] = score / std::sqrt(double(dim));
    }
    const double top = *std::ranges::max_element(scores);
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - top);
    for (int64_t key = 0; key < keys; ++key)
      for (int64_t i = 0; i < dim; ++i)
        out[size_t(row * dim + i)] += scores[size_t(key)] / sum * element(v, keys, key, i);
  }
  return out;
}

TEST_P(PropertyOfProducts, AttentionIsSoftmaxOfScaledScoresTimesTheValues) {
  const bool is_slow = device_ == Device::simt();
  for_many_cases([&](Random& random) {
    const DType dtype = any_float(random);
    const int64_t heads = between(random, 1, 3), rows = between(random, 1, is_slow ? 20 : 100),
                  keys = between(random, 1, is_slow ? 40 : 150),
                  dim = 8 * between(random, 1, is_slow ? 8 : 16);
    const auto filled = [&](int64_t length) {
      return astype(test::normal_tensor({1, heads, length, dim}, random), {.dtype = dtype})
          .to(device_);
    };
    const Tensor q = filled(rows), k = filled(keys), v = filled(keys);
    const Doubles qs = doubles(q), ks = doubles(k), vs = doubles(v);
    std::vector<float> expected;
    for (int64_t head = 0; head < heads; ++head)
      for (const double x : attention_of(qs, ks, vs, rows, keys, dim, size_t(head)))
        expected.push_back(float(x));
    std::vector<float> got;
    for (const double x : doubles(attention(q, k, v, {.variant = GetParam().variant}).out))
      got.push_back(float(x));
    // An error of a score changes its weight in proportion: of a mean of values of about 1 whose
    // terms cancel, that is no part of the result.
    Tolerance allowed = tolerance(dtype, dtype, double(keys + dim), true);
    allowed.absolute = tolerance(DType::float32, DType::float32, double(dim), false).relative;
    ASSERT_EQ(compare(got, expected, allowed), "")
        << to_string(dtype) << ' ' << heads << " x " << rows << " x " << keys << " x " << dim;
  });
}

using NamedResults = std::vector<std::pair<std::string, Tensor>>;

void expect_all_pairs_close(const NamedResults& results, double relative, double absolute) {
  for (size_t i = 0; i < results.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      SCOPED_TRACE(join(results[i].first, " beside ", results[j].first));
      expect_close(results[i].second, results[j].second, relative, absolute);
    }
}

TEST_P(PropertyOfVariants, OfGemmAllAgree) {
  for_many_cases([&](Random& random) {
    const bool is_half = has_kernels_of(DType::float16) && random() % 2;
    const DType dtype = is_half ? DType::float16 : DType::float32;
    const int64_t step = random() % 2 ? 8 : 1;  // what vectors divide, and what they do not
    const auto extent = [&] { return step * between(random, 1, 72 / step); };
    const int64_t m = extent(), n = extent(), k = extent();
    const auto filled = [&](const Dims& shape) {
      return astype(test::normal_tensor(shape, random), {.dtype = dtype}).to(device_);
    };
    const Tensor a = filled({m, k}), b = filled({k, n});
    NamedResults results;
    for_each_variant(
        "gemm", [&](std::string_view v) { results.emplace_back(v, gemm(a, b, {.variant = v})); });
    expect_all_pairs_close(results, is_half ? 1e-2 : 1e-3, is_half ? 1e-3 : 1e-5);
  });
  EXPECT_GE(ran_.size(), device_ == Device::cpu() ? 2u : 8u);
}

TEST_P(PropertyOfVariants, OfConv2dAllAgreeAndWithTheProductOfIm2col) {
  for_many_cases([&](Random& random) {
    const int64_t batch = between(random, 1, 3), channels = between(random, 1, 6),
                  filters = between(random, 1, 9);
    const int64_t taps = std::array{1, 2, 3, 5}[random() % 4];
    const bool is_plain = random() % 2;  // so that winograd takes it
    const Dims stride = {is_plain ? 1 : between(random, 1, 3),
                         is_plain ? 1 : between(random, 1, 3)};
    const ImagePadding padding(random() % 3, random() % 3);
    const Tensor x = normal_tensor({batch, channels, between(random, 5, 9), between(random, 5, 9)},
                                   random),
                 w = normal_tensor({filters, channels, taps, taps}, random);
    NamedResults results;
    for_each_variant("conv2d", [&](std::string_view v) {
      results.emplace_back(v, conv2d(x, w, {.stride = stride, .padding = padding, .variant = v}));
    });
    const Tensor windows = im2col(x, {.window = {taps}, .stride = stride, .padding = padding});
    Tensor product = gemm(w.view().reshape({filters, -1}), windows);
    results.emplace_back("im2col and gemm", std::move(product));
    expect_all_pairs_close(results, 1e-3, 1e-4);
  });
  EXPECT_GE(ran_.size(), device_ == Device::cpu() ? 2u : 3u);
  EXPECT_TRUE(device_ == Device::cpu() || ran_.contains("winograd"));
}

// out[i, c] of a sparse matrix, or of its transpose, with a dense one, and the sum of magnitudes.
struct Sums {
  Doubles sums, sizes;
};
Sums product_of(const SparseCase& a, bool transposed, const std::vector<float>& x, int64_t n) {
  const auto size = size_t((transposed ? a.cols : a.rows) * n);
  Sums s{Doubles(size, 0.0), Doubles(size, 0.0)};
  for (int64_t row = 0; row < a.rows; ++row)
    for (int64_t k = a.indptr[size_t(row)]; k < a.indptr[size_t(row) + 1]; ++k)
      for (int64_t c = 0; c < n; ++c) {
        const int64_t column = a.indices[size_t(k)];
        const double term =
            double(a.data[size_t(k)]) * x[size_t((transposed ? row : column) * n + c)];
        s.sums[size_t((transposed ? column : row) * n + c)] += term;
        s.sizes[size_t((transposed ? column : row) * n + c)] += std::abs(term);
      }
  return s;
}
void expect_sums(const Tensor& y, const Sums& expected, std::string_view what) {
  const auto got = values(y);
  ASSERT_EQ(got.size(), expected.sums.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected.sums[i], 1e-6 * expected.sizes[i]) << what << " at " << i;
}

// Row-major and column-major, each variant, for any mix of lengths of rows; and the same bits
// again.
TEST_P(PropertyOfVariants, OfSparseProductsAllEqualTheDenseOnes) {
  for_many_cases([&](Random& random) {
    const SparseCase a = random_matrix(random);
    const Tensor data = a.data_on(device_), indices = a.indices_on(device_),
                 indptr = a.indptr_on(device_);
    const int64_t n = between(random, 1, 12);
    const Tensor x = normal_tensor({a.cols}, random), dense = normal_tensor({a.cols, n}, random),
                 columns = copy(dense.transpose(0, 1));
    const Sums one = product_of(a, false, values(x), 1),
               many = product_of(a, false, values(dense), n);
    for_each_variant("spmv", [&](std::string_view v) {
      const Tensor y = spmv(data, indices, indptr, x, {.variant = v});
      expect_sums(y, one, v);
      ASSERT_EQ(values(spmv(data, indices, indptr, x, {.variant = v})), values(y)) << v;
    });
    for_each_variant("spmm", [&](std::string_view v) {
      const Tensor y = spmm(data, indices, indptr, dense, {.variant = v});
      expect_sums(y, many, v);
      ASSERT_EQ(values(spmm(data, indices, indptr, columns.transpose(0, 1), {.variant = v})),
                values(y))
          << v;
    });
  });
  EXPECT_GE(ran_.size(), device_ == Device::cpu() ? 2u : 3u);
}

// Their kernels have no Config: the emulator has them all.
class PropertyOfSparse : public OnDevice<Device> {
 protected:
  PropertyOfSparse() : OnDevice(GetParam()) {}
  // The emulator takes its time for each element of a dense matrix.
  SparseCase any_matrix(Random& random) const {
    for (;;)
      if (SparseCase a = random_matrix(random);
          device_ != Device::simt() || a.rows * a.cols < 30'000)
        return a;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, PropertyOfSparse, ::testing::ValuesIn(devices_of_properties()),
                         [](const auto& info) { return "on_" + name_of_place(info.param); });

// Checks both formats, and their transposed views.
TEST_P(PropertyOfSparse, ProductsOfRowsAndColumnsEqualTheDenseOnes) {
  for_many_cases([&](Random& random) {
    const SparseCase a = any_matrix(random);
    const SparseMatrix csr = SparseMatrix::csr(a.data_on(device_), a.indices_on(device_),
                                               a.indptr_on(device_), a.rows, a.cols),
                       csc = csr.to_csc();
    const int64_t n = between(random, 1, 4);
    const Tensor by_rows = normal_tensor({a.cols, n}, random),
                 by_columns = normal_tensor({a.rows, n}, random);
    const Tensor one = copy(by_rows.select(1, 0)), other = copy(by_columns.select(1, 0));
    const Sums rows = product_of(a, false, values(by_rows), n),
               columns = product_of(a, true, values(by_columns), n),
               row = product_of(a, false, values(one), 1),
               column = product_of(a, true, values(other), 1);
    for (const SparseMatrix& m : {csr, csc}) {
      const std::string name = to_string(m);
      expect_sums(spmm(m, by_rows), rows, name);
      expect_sums(spmm(m.transpose(), by_columns), columns, name);
      expect_sums(spmv(m, one), row, name);
      expect_sums(spmv(m.transpose(), other), column, name);
    }
  });
}

// There and back: all but +0 is stored, so -0 and every NaN keep their bits.
TEST_P(PropertyOfSparse, FromDenseAndBackAreTheSameBits) {
  for_many_cases([&](Random& random) {
    SparseCase a = any_matrix(random);
    for (float& element : a.data)  // none is +0
      if (element == 0 || random() % 50 == 0) element = random() % 2 ? -0.0f : std::nanf("7");
    const Tensor dense = Tensor::from(a.dense(), {a.rows, a.cols}, device_);
    for (const SparseFormat format : {SparseFormat::csr, SparseFormat::csc}) {
      const SparseMatrix m = SparseMatrix::from_dense(dense, format);
      ASSERT_EQ(m.stored(), a.stored()) << to_string(m);
      ASSERT_EQ(bytes_of(m.to_dense()), bytes_of(dense)) << to_string(m);
      const SparseMatrix turned = format == SparseFormat::csr ? m.to_csc() : m.to_csr();
      ASSERT_EQ(bytes_of(turned.to_dense()), bytes_of(dense)) << to_string(turned);
    }
  });
}

}  // namespace
}  // namespace tensorcraft::test
