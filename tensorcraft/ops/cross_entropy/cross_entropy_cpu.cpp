// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/cross_entropy/problem.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/checks/rows.hpp"

#include <cmath>
#include <limits>
#include <vector>

namespace tensorcraft::kernel::cross_entropy {
namespace {

class Targets {
 public:
  explicit Targets(const TensorView& t) : view_(t), map_(op::element_map(t)) {}

  int64_t operator[](int64_t row) const {
    const int64_t at = map_.offset(row);
    return view_.dtype() == DType::int32 ? view_.data_as<const int32_t>()[at]
                                         : view_.data_as<const int64_t>()[at];
  }

  void check(const Problem& q) const {
    for (int64_t row = 0; row < q.rows(); ++row) {
      const int64_t target = (*this)[row];
      if ((target < 0 || target >= q.classes()) && target != q.ignore_index)
        fail(ErrorKind::index, "cross_entropy: targets: element ", row, " is ", target,
             ", expected [0, ", q.classes(), "), the classes of logits, or ignore_index ",
             q.ignore_index);
    }
  }

 private:
  TensorView view_;
  RowMap map_;
};

// The elements of a float32 tensor, any strides.
class Numbers {
 public:
  explicit Numbers(const TensorView& t) : data_(t.data_as<float>()), map_(op::element_map(t)) {}
  float& operator[](int64_t i) const { return data_[map_.offset(i)]; }

 private:
  float* data_;
  RowMap map_;
};

void cpu_rows(const Problem& q) {
  const Targets targets(q.targets);
  const host::Rows rows(q.logits, -1);
  const Numbers out(q.out), lse(q.lse.value_or(q.out));
  const int64_t n = q.classes();
  host::for_each_row(q.rows(), n, [&](int64_t row) {
    const int64_t target = targets[row];
    const bool is_ignored = target == q.ignore_index;
    if (is_ignored) out[row] = q.ignored();
    if (is_ignored && !q.lse) return;
    const float* x = rows.read(row, host::scratch(host::Slot::row_a, n));
    const float top = host::row_max(x, n);
    float log_sum = std::numeric_limits<float>::quiet_NaN();  // of what is not finite
    if (std::isfinite(top))
      log_sum = std::log(host::row_exp(host::scratch(host::Slot::row_b, n), x, top, n));
    if (!is_ignored) out[row] = log_sum + (top - x[target]);
    if (q.lse) lse[row] = std::isinf(top) ? top : top + log_sum;
  });
}

void reference_rows(const Problem& q) {
  const Targets targets(q.targets);
  const host::Elements out(q.out), lse(q.lse.value_or(q.out)), x(q.logits);
  const int64_t classes = q.classes();
  for (int64_t row = 0; row < q.rows(); ++row) {
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    const int64_t first = row * classes;
    for (int64_t i = first; i < first + classes; ++i)
      if (x[i] > top || std::isnan(x[i])) top = x[i];
    for (int64_t i = first; i < first + classes; ++i) sum += std::exp(x[i] - top);
    if (targets[row] == q.ignore_index)
      out.set(row, double(q.ignored()));
    else
      out.set(row, std::log(sum) + (top - x[first + targets[row]]));
    if (q.lse) lse.set(row, std::isinf(top) ? top : top + std::log(sum));
  }
}

// Checks the targets, lets `rows` compute all losses, and reduces them in double.
void run(const Problem& q, void (*rows)(const Problem&)) {
  Targets(q.targets).check(q);
  if (!q.is_reduced()) return rows(q);
  std::vector<float> losses(size_t(q.rows()));
  Problem each = q;
  each.out = TensorView(losses.data(), DType::float32, {q.rows()});
  rows(each);
  double sum = 0;
  int64_t count = 0;
  for (const float loss : losses) {
    sum += double(loss);
    count += !(loss == 0 && std::signbit(loss));
  }
  *q.out.data_as<float>() = float(q.reduction == LossReduction::mean ? sum / double(count) : sum);
}

}  // namespace

void cpu(const Problem& q) { run(q, cpu_rows); }
void reference(const Problem& q) { run(q, reference_rows); }

}  // namespace tensorcraft::kernel::cross_entropy
