// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/checks/csr.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/op/checks/semiring.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

// Products of a sparse matrix on the host.
namespace tensorcraft::host {

// f(begin, end) on ranges of rows that together are all rows, with about equal work.
template <class I, class F>
void for_rows_of_equal_work(const Csr& a, F&& f) {
  constexpr int64_t kGrain = 16384;  // rows and stored elements
  const int64_t steps = a.rows + a.stored;
  parallel_for(steps, kGrain, [&](int64_t begin, int64_t end) {
    const int64_t last = end == steps ? a.rows : rows_before<I>(a, end);
    f(rows_before<I>(a, begin), last);
  });
}

// t, or a copy of its elements next to each other in `memory`.
TensorView contiguous(const TensorView& t, Tensor& memory);

// The result of a semiring for each row, of which `a` and the vector x are contiguous or not; in
// float32. Not for x * a and sums.
Tensor row_results(const op::SemiringProgram& semiring, const op::CsrView& a, const TensorView& x);
// The definition, of any semiring: in double, a step of an expression after the other.
std::vector<double> exact_row_results(const op::SemiringProgram& semiring, const op::CsrView& a,
                                      const TensorView& x);

}  // namespace tensorcraft::host
