// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/spmv/problem.hpp"

#include "tensorcraft/core/element_type.hpp"
#include "tensorcraft/device/concepts.h"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/host/semiring.hpp"

#include <algorithm>

namespace tensorcraft::kernel::spmv {
namespace {

// Four sums at a time, whose additions do not wait for one another; a short part has one.
constexpr int64_t kSums = 4, kPart = kSums * host::kFloatChain;

template <class T, class I>
float part_product(const T* data, const I* indices, const T* x, int64_t begin, int64_t end,
                   uint64_t cols) {
  const auto product = [=](int64_t k) {
    const auto column = uint64_t(int64_t(indices[k]));
    return column < cols ? float(data[k]) * float(x[column]) : 0.0f;
  };
  int64_t k = begin;
  if (end - begin < 8) {
    float sum = 0;
    for (; k < end; ++k) sum += product(k);
    return sum;
  }
  float sums[kSums] = {};
  for (; k + kSums <= end; k += kSums)
    for (int i = 0; i < kSums; ++i) sums[i] += product(k + i);
  for (; k < end; ++k) sums[0] += product(k);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <class T, class I>
float row_product(const T* data, const I* indices, const T* x, int64_t begin, int64_t end,
                  uint64_t cols) {
  if (end - begin <= kPart) return part_product(data, indices, x, begin, end, cols);
  double sum = 0;
  for (int64_t k = begin; k < end; k += kPart)
    sum += double(part_product(data, indices, x, k, std::min(k + kPart, end), cols));
  return float(sum);
}

// alpha total + beta c, into out. A value of its own: what is stored cannot change it.
template <class T>
struct Finish {
  T* out;
  const T* c;
  int64_t out_stride, c_stride;
  float alpha, beta;
  explicit Finish(const Problem& q)
      : out(q.out.data_as<T>()),
        c(q.c ? q.c->data_as<const T>() : nullptr),
        out_stride(q.out.stride(0)),
        c_stride(q.c ? q.c->stride(0) : 0),
        alpha(q.alpha),
        beta(q.beta) {}
  void operator()(int64_t row, float total) const {
    float y = alpha * total;
    if (c) y += beta * float(c[row * c_stride]);
    out[row * out_stride] = T(y);
  }
};

template <class T, class I>
void products(const Problem& q, const op::CsrView& a, const TensorView& x) {
  const T *data = a.data.data_as<const T>(), *vector = x.data_as<const T>();
  const I *indices = a.indices.data_as<const I>(), *indptr = a.indptr.data_as<const I>();
  const Csr csr = op::csr_params(a);
  host::for_rows_of_equal_work<I>(csr, [&](int64_t begin, int64_t end) {
    const Finish<T> finish(q);
    const auto cols = uint64_t(a.cols);
    const int64_t stored = a.stored();
    const auto begin_of = [=](int64_t row) { return std::clamp<int64_t>(indptr[row], 0, stored); };
    for (int64_t row = begin, first = begin_of(begin); row < end; ++row) {
      const int64_t last = begin_of(row + 1);
      finish(row, row_product(data, indices, vector, first, last, cols));
      first = last;
    }
  });
}

template <class T>
void of_semiring(const Problem& q, const op::CsrView& a, const TensorView& x) {
  const Tensor results = host::row_results(q.semiring, a, x);
  const Finish<T> finish(q);
  for (int64_t row = 0; row < a.rows(); ++row) finish(row, results.data_as<const float>()[row]);
}

}  // namespace

void cpu(const Problem& q) {
  Tensor data, indices, indptr, vector;
  const op::CsrView a{host::contiguous(q.a.data, data), host::contiguous(q.a.indices, indices),
                      host::contiguous(q.a.indptr, indptr), q.a.cols};
  const TensorView x = host::contiguous(q.x, vector);
  with_element_type(x.dtype(), [&]<class T>(T*) {
    if constexpr (FloatingPoint<T> && sizeof(T) > 1) {
      if (q.semiring.combine)
        of_semiring<T>(q, a, x);
      else if (a.indices.dtype() == DType::int64)
        products<T, int64_t>(q, a, x);
      else
        products<T, int32_t>(q, a, x);
    }
  });
}

void reference(const Problem& q) {
  const host::Elements to(q.out);
  const std::vector<double> results = host::exact_row_results(q.semiring, q.a, q.x);
  for (int64_t row = 0; row < q.a.rows(); ++row) {
    double y = double(q.alpha) * results[size_t(row)];
    if (q.c) y += double(q.beta) * host::Elements(*q.c)[row];
    to.set(row, y);
  }
}

}  // namespace tensorcraft::kernel::spmv
