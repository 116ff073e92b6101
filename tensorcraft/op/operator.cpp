// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/operator.hpp"

namespace tensorcraft::op {

std::span<const DType> argument_dtypes(const Description& op, std::string_view argument) {
  for (const auto* parameters : {&op.inputs, &op.options})
    for (const Parameter& p : *parameters)
      if (p.name == argument)
        return p.doc.dtypes.empty() && &p == op.inputs.data() ? std::span<const DType>(op.dtypes)
                                                              : p.doc.dtypes;
  return {};
}

}  // namespace tensorcraft::op
