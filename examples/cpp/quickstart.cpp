// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/tensorcraft.hpp"

#include <iostream>

int main() {
  namespace tc = tensorcraft;
  const tc::Tensor x = tc::Tensor::from({1.f, 2.f, 3.f, 1.f, 1.f, 1.f}, {2, 3},
                                        tc::default_device());  // the GPU if there is one
  const tc::Tensor probabilities = tc::softmax(x);
  std::cout << probabilities << '\n';

  try {
    tc::softmax(x, x, {.axis = 0, .variant = "fastest"});
  } catch (const tc::Error& error) {
    std::cout << error.what() << '\n';  // lists the variants there are
  }
}
