// SPDX-License-Identifier: Apache-2.0
// Uses installed headers only: names the version, makes a tensor, moves bytes, reads an error.
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/version.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <iostream>
#include <string_view>

int main() {
  namespace tc = tensorcraft;
  std::cout << "tensorcraft " << tc::version() << '\n';
  const float given[4] = {1, 2, 3, 4};
  float got[4] = {};
  tc::Tensor tensor(tc::DType::float32, {2, 2});
  tensor.copy_from_host(given, sizeof given);
  tensor.copy_to_host(got, sizeof got);
  if (got[3] != 4) return 1;
  try {
    tensor.view().reshape({3, 3});
    return 1;
  } catch (const tc::Error& error) {
    std::cout << error.what() << '\n';
    return error.kind() == tc::ErrorKind::value ? 0 : 1;
  }
}
