// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/ladder.hpp"

#include <string_view>

namespace tensorcraft::op {

// Code of the CPU by which a call may be computed.
template <class Problem>
struct HostVariant {
  std::string_view name;  // by which a call may ask for it
  std::string_view idea;  // one line: what it does and why it is fast
  // Computes a problem that it does not refuse.
  void (*run)(const Problem&);
  // Why it cannot compute a problem; empty: it can. Null: it computes every problem.
  std::string_view (*refusal)(const Problem&) = nullptr;

  // Both for the generic code.
  VariantInfo info() const { return {name, {}, idea, {}, DeviceType::cpu}; }
  std::string_view refusal_of(const Problem& problem) const {
    return refusal ? refusal(problem) : std::string_view();
  }
};

// The work a problem is, whichever variant does it.
struct Cost {
  double bytes = 0;                // each input read once, each output written once
  double flops = 0;                // a multiplication and an addition are two
  bool may_round_to_tf32 = false;  // float32 products may run on tensor cores
  int64_t m = 0, n = 0, k = 0;     // of a matrix product, a batch entry; 0: it is none
};

}  // namespace tensorcraft::op
