// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/tensorcraft.hpp"

#include <iostream>

int main() {
  namespace tc = tensorcraft;
  const float scores[2][3] = {{1, 2, 3}, {1, 1, 1}};
  tc::Tensor x(tc::DType::float32, {2, 3}, tc::default_device());  // the GPU if there is one
  x.copy_from_host(scores, sizeof scores);

  const tc::Tensor probabilities = tc::softmax(x);
  float got[2][3];
  probabilities.copy_to_host(got, sizeof got);
  for (const auto& row : got) std::cout << row[0] << ' ' << row[1] << ' ' << row[2] << '\n';

  try {
    tc::softmax(x, x, {.axis = 0, .variant = "fastest"});
  } catch (const tc::Error& error) {
    std::cout << error.what() << '\n';  // lists the variants there are
  }
}
