// SPDX-License-Identifier: Apache-2.0
#pragma once
// Work of every rung before and after its walk over the logits of a row.
#include "tensorcraft/device/exp_sum.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/ops/cross_entropy/params.h"

namespace tensorcraft::kernel::cross_entropy {

template <class T, class Id, Config C>
class Row {
 public:
  TC_DEVICE Row(const RowParams<Params, C>& p, int64_t row) : p_(p), row_(row) {
    target_ = static_cast<const Id*>(p.targets)[row_offset(p, Params::kTargets, row)];
    logits_ = static_cast<const T*>(p.logits) + row_offset(p, Params::kLogits, row);
  }

  TC_DEVICE const T* logits() const { return logits_; }
  // The row is ignored and lse is not wanted, so its logits are not read.
  TC_DEVICE bool is_idle() const { return is_ignored() && !p_.lse; }
  TC_DEVICE void write_idle() const { p_.out[row_offset(p_, Params::kOut, row_)] = p_.ignored; }
  // NaN for a target that is no class: nothing beside the row is read.
  TC_DEVICE float picked() const {
    const bool exists = target_ >= 0 && target_ < p_.classes;
    return exists ? float(logits_[target_ * p_.class_step]) : kNan;
  }
  // The sum's logarithm is added to a difference: in lse - picked a large maximum would take digits
  // from both.
  TC_DEVICE void write(const ExpSum& total, float picked) const {
    const float loss = logf(total.sum) + (total.top - picked);
    p_.out[row_offset(p_, Params::kOut, row_)] = is_ignored() ? p_.ignored : loss;
    if (p_.lse) p_.lse[row_offset(p_, Params::kLse, row_)] = total.log_sum();
  }

 private:
  TC_DEVICE bool is_ignored() const { return target_ == p_.ignore_index; }

  const RowParams<Params, C>& p_;
  int64_t row_, target_;
  const T* logits_;
};

}  // namespace tensorcraft::kernel::cross_entropy
