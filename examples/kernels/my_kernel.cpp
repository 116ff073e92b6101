// SPDX-License-Identifier: Apache-2.0
// The same for arrays of the host: out = 2 * x.
#include "tensorcraft/core/tensor_matcher.hpp"

namespace {

void my_kernel_of_host(const tensorcraft::TensorView& out, const tensorcraft::TensorView& x) {
  namespace tc = tensorcraft;
  tc::SymbolicSize n("n");
  tc::TensorMatcher({n})
      .with_dtype<float>()
      .with_device<tc::dlpack::kDLCPU>()
      .verify(out, "my_kernel", "out")
      .verify(x, "my_kernel", "x");
  for (int64_t i = 0; i < n.unwrap(); ++i)
    out.data_as<float>()[i] = 2 * x.data_as<const float>()[i];
}

}  // namespace
