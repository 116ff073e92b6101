// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/spmm/problem.hpp"

#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/host/semiring.hpp"

#include <algorithm>

namespace tensorcraft::kernel::spmm {
namespace {

// alpha total + beta c for a row of floats, then into out.
void finish_row(const Problem& q, const host::Rows& to, int64_t row, float* sums) {
  const int64_t n = to.length();
  host::row_scale(sums, sums, q.alpha, 0, n);
  if (q.c) {
    const host::Rows c(*q.c);
    host::row_add_scaled(sums, c.read(row, host::scratch(host::Slot::row_b, n)), q.beta, n);
  }
  host::store_row(to.address(row), sums, q.out.dtype(), to.stride(), n);
}

// x as floats in row-major order: itself, or a copy in `memory`.
const float* as_floats(const TensorView& x, Tensor& memory) {
  if (x.dtype() == DType::float32 && x.is_contiguous()) return x.data_as<const float>();
  memory = Tensor(DType::float32, x.shape());
  const host::Rows from(x), to(memory);
  host::map_rows(
      from, to, [&](int64_t, const float* in, float* out) { std::copy_n(in, from.length(), out); });
  return memory.data_as<const float>();
}

template <class I>
void products(const Problem& q, const TensorView& data, const TensorView& indices) {
  Tensor memory;
  const float *x = as_floats(q.x, memory), *elements = data.data_as<const float>();
  const I* columns = indices.data_as<const I>();
  const Csr a = op::csr_params({data, indices, q.a.indptr, q.a.cols});
  const host::Rows to(q.out);
  const int64_t n = to.length();
  host::for_rows_of_equal_work<I>(a, [&](int64_t begin, int64_t end) {
    float* const sums = host::scratch(host::Slot::row_a, n);
    for (int64_t row = begin; row < end; ++row) {
      std::fill_n(sums, n, 0.0f);
      const int64_t last = row_begin<I>(a, row + 1);
      for (int64_t k = row_begin<I>(a, row); k < last; ++k)
        if (is_column(a, columns[k]))
          host::row_add_scaled(sums, x + columns[k] * n, elements[k], n);
      finish_row(q, to, row, sums);
    }
  });
}

// A column of x after the other.
void of_semiring(const Problem& q) {
  const int64_t n = q.x.shape(1);
  Tensor results(DType::float32, q.out.shape());
  for (int64_t column = 0; column < n; ++column) {
    const Tensor one = host::row_results(q.semiring, q.a, q.x.select(1, column));
    for (int64_t row = 0; row < q.a.rows(); ++row)
      results.data_as<float>()[row * n + column] = one.data_as<const float>()[row];
  }
  const host::Rows to(q.out);
  for (int64_t row = 0; row < q.a.rows(); ++row)
    finish_row(q, to, row, results.data_as<float>() + row * n);
}

}  // namespace

void cpu(const Problem& q) {
  if (q.semiring.combine) return of_semiring(q);
  Tensor columns, elements;
  const TensorView indices = host::contiguous(q.a.indices, columns);
  TensorView data = q.a.data.expand_dims(0);
  as_floats(data, elements);
  if (elements.size()) data = elements;
  data = data.reshape({q.a.stored()});
  indices.dtype() == DType::int64 ? products<int64_t>(q, data, indices)
                                  : products<int32_t>(q, data, indices);
}

void reference(const Problem& q) {
  const host::Elements to(q.out);
  const int64_t n = q.x.shape(1);
  for (int64_t column = 0; column < n; ++column) {
    const auto results = host::exact_row_results(q.semiring, q.a, q.x.select(1, column));
    for (int64_t row = 0; row < q.a.rows(); ++row) {
      double y = double(q.alpha) * results[size_t(row)];
      if (q.c) y += double(q.beta) * host::Elements(*q.c)[row * n + column];
      to.set(row * n + column, y);
    }
  }
}

}  // namespace tensorcraft::kernel::spmm
