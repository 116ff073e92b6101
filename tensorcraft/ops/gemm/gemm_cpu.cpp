// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/problem.hpp"

#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/gemm.hpp"
#include "tensorcraft/op/host/onednn.hpp"

#include <algorithm>
#include <cmath>

namespace tensorcraft::kernel::gemm {
namespace {

// Entry `index` of a matrix's outer batch dimensions; the last batch dimension stays a stride.
host::Matrix matrix_at(const TensorView& t, int64_t index) {
  int64_t offset = 0;
  for (int i = t.rank() - 4; i >= 0; --i) {
    offset += index % t.shape(i) * t.stride(i);
    index /= t.shape(i);
  }
  return {.data = t.data_as<std::byte>() + offset * int64_t(dtype_bytes(t.dtype())),
          .dtype = t.dtype(),
          .row = row_stride(t),
          .column = col_stride(t),
          .batch = t.rank() > 2 ? t.stride(t.rank() - 3) : 0};
}

// The host library takes one batch dimension: the last one.
int64_t inner_batch(const Problem& q) { return q.batch_rank() ? q.d.shape(q.batch_rank() - 1) : 1; }

host::GemmProblem host_problem(const Problem& q, int64_t outer) {
  host::GemmProblem p{.m = q.m(),
                      .n = q.n(),
                      .k = q.k(),
                      .batch = inner_batch(q),
                      .a = matrix_at(q.a, outer),
                      .b = matrix_at(q.b, outer),
                      .d = matrix_at(q.d, outer)};
  p.alpha = q.alpha;
  p.activation = q.activation;
  if (q.c) {
    p.c = matrix_at(*q.c, outer);
    p.beta = q.beta;
  }
  if (q.bias) {
    p.bias = {.data = q.bias->data(), .dtype = q.bias->dtype(), .column = q.bias->stride(0)};
  }
  return p;
}

}  // namespace

std::string_view onednn_refusal(const Problem& q) {
  if (!host::onednn::available()) return "oneDNN 3 is not installed";
  if (q.d.size() == 0) return "the result is empty";
  if (q.m() == 1 || q.n() == 1) return "one row or column: cpu reads the matrix faster";
  const char* reason = host::onednn::declines(host_problem(q, 0));
  return reason ? reason : "";
}

void onednn(const Problem& q) {
  const int64_t outer = q.batch() / inner_batch(q);
  for (int64_t i = 0; i < outer; ++i) host::onednn::matmul(host_problem(q, i));
}

void cpu(const Problem& q) {
  const int64_t outer = q.batch() / inner_batch(q);
  for (int64_t i = 0; i < outer; ++i) host::gemm(host_problem(q, i));
}

void reference(const Problem& q) {
  const host::Elements a(q.a), b(q.b), d(q.d), c(q.c.value_or(q.d)), bias(q.bias.value_or(q.d));
  const int64_t m = q.m(), n = q.n(), k = q.k();
  for (int64_t entry = 0; entry < q.batch(); ++entry) {
    for (int64_t row = entry * m; row < (entry + 1) * m; ++row) {
      for (int64_t col = 0; col < n; ++col) {
        double sum = 0;
        for (int64_t i = 0; i < k; ++i) sum += a[row * k + i] * b[(entry * k + i) * n + col];
        double x = double(q.alpha) * sum;
        if (q.c) x += double(q.beta) * c[row * n + col];
        if (q.bias) x += bias[col];
        d.set(row * n + col, host::activate(q.activation, x));
      }
    }
  }
}

}  // namespace tensorcraft::kernel::gemm
