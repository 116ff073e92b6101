// SPDX-License-Identifier: Apache-2.0
// The operator as a function, and by its name in the registry.
#include "tensorcraft/ops/row_center/row_center.hpp"
#include "tensorcraft/tensorcraft.hpp"

#include <iostream>

int main(int, char** argv) {
  namespace tc = tensorcraft;
  const float given[2][3] = {{1, 2, 6}, {-1, 0, 1}};
  for (const tc::Device device : {tc::Device::cpu(), tc::Device::simt()}) {
    tc::Tensor x(tc::DType::float32, {2, 3}, device);
    x.copy_from_host(given, sizeof given);
    float got[2][3];
    tc::row_center(x).copy_to_host(got, sizeof got);
    std::cout << tc::to_string(device) << ':';
    for (const auto& row : got)
      for (const float value : row) std::cout << ' ' << value;
    std::cout << '\n';
  }
  if (argv[1]) {  // the library's file, which a program that does not link it would name
    tc::add_library(argv[1]);
    std::cout << tc::find_operator("row_center").description().summary << '\n';
  }
}
