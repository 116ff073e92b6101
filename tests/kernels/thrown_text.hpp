// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

namespace tensorcraft::kernels {

// Returns the text of the exception that a call throws.
template <class Exception>
std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& error) {
    return error.what();
  }
  return "no such exception";
}

}  // namespace tensorcraft::kernels
