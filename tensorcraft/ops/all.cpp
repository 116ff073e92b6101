// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/all.hpp"

#include "tensorcraft/core/error.hpp"

#include <algorithm>

namespace tensorcraft {

const op::OperatorList& operators() {
  static const auto& all = *new op::OperatorList([] {  // leaked, as the operators are
    op::OperatorList list;
    for (const auto& folder : {
             ops::attention,
             ops::batch_norm,
             ops::cross_entropy,
             ops::cumulative_sum,
             ops::elementwise,
             ops::embedding,
             ops::gated_activation,
             ops::gather,
             ops::gemm,
             ops::group_norm,
             ops::l2_normalize,
             ops::layer_norm,
             ops::masked_mean,
             ops::pad,
             ops::permute,
             ops::quantize,
             ops::reduce,
             ops::rms_norm,
             ops::rope,
             ops::scatter,
             ops::softmax,
             ops::topk,
         }) {
      const auto part = folder();
      list.insert(list.end(), part.begin(), part.end());
    }
    return list;
  }());
  return all;
}

const op::Operator& find_operator(std::string_view name) {
  for (const op::Operator* o : operators()) {
    const auto& d = o->description();
    if (d.name == name || std::find(d.aliases.begin(), d.aliases.end(), name) != d.aliases.end())
      return *o;
  }
  std::string names;
  for (const op::Operator* o : operators())
    names.append(names.empty() ? "" : ", ").append(o->description().name);
  fail(ErrorKind::key, "no operator is named \"", name, "\"; there are ", names);
}

}  // namespace tensorcraft
